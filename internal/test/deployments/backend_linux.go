package main

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"time"
)

// backendPort is where the handlers of the embedded server ask.
const backendPort = 9000

// backend answers that many requests at a time, each after the milliseconds it asks for.
type backend struct {
	places chan struct{}
}

func (b *bench) backend(atOnce int) { b.backendOn("127.0.0.1", atOnce) }

func (b *bench) backendOn(host string, atOnce int) {
	listener, err := (&net.ListenConfig{}).Listen(b.ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(backendPort)))
	b.must(err)
	b.cleanup = append(b.cleanup, func() { _ = listener.Close() })
	s := &backend{places: make(chan struct{}, atOnce)}
	for range atOnce {
		s.places <- struct{}{}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(conn)
		}
	}()
}

func (s *backend) serve(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		ms, _ := strconv.Atoi(strings.TrimSpace(lines.Text()))
		<-s.places
		time.Sleep(time.Duration(ms) * time.Millisecond)
		s.places <- struct{}{}

		if _, err := conn.Write([]byte("\n")); err != nil {
			return
		}
	}
}
