package rig

import (
	"bufio"
	"context"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// BackendPort is where the handlers of the embedded server ask.
const BackendPort = 9000

// Backend is asked by the handlers of a server: it answers each line with a line after
// a while, and counts those that it has not answered yet.
type Backend struct {
	Address string        // where it listens; "" is any port of 127.0.0.1
	AtOnce  int           // how many requests it works at; 0 is as many as come
	Delay   time.Duration // how long each takes; 0 is the milliseconds that its line says

	Waiting atomic.Int64
	places  chan struct{}
}

// Serve starts the backend until the case ends.
func (b *Backend) Serve(c *Case) *Backend {
	c.Helper()
	if b.Address == "" {
		b.Address = "127.0.0.1:0"
	}
	listener, err := (&net.ListenConfig{}).Listen(c.Ctx, "tcp", b.Address)
	c.Must(err)
	b.Address = listener.Addr().String()
	if b.AtOnce > 0 {
		b.places = make(chan struct{}, b.AtOnce)
	}
	ctx, cancel := context.WithCancel(c.Ctx)
	c.AtEnd(func() { cancel(); _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			go b.serve(conn)
		}
	}()
	return b
}

func (b *Backend) serve(conn net.Conn) {
	defer conn.Close()
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		took := b.Delay
		if took == 0 {
			ms, _ := strconv.Atoi(strings.TrimSpace(lines.Text()))
			took = time.Duration(ms) * time.Millisecond
		}
		b.Waiting.Add(1)
		b.work(took)
		b.Waiting.Add(-1)
		if _, err := conn.Write([]byte("\n")); err != nil {
			return
		}
	}
}

func (b *Backend) work(d time.Duration) {
	if b.places != nil {
		b.places <- struct{}{}
		defer func() { <-b.places }()
	}
	time.Sleep(d)
}
