package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// crowd are clients that hold a connection each until the case ends.
type crowd struct {
	connected, answered atomic.Int64
	connections         chan net.Conn
}

// get is the beginning of a request.
func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

// hold connects n clients that send the text and read whatever comes.
func (b *bench) hold(network, address string, n int, text string, config *tls.Config) *crowd {
	c := &crowd{connections: make(chan net.Conn, n)}
	ctx, cancel := context.WithCancel(b.ctx)
	b.cleanup = append(b.cleanup, cancel)
	for range n {
		go c.client(ctx, network, address, text, config)
	}
	return c
}

func (c *crowd) client(ctx context.Context, network, address, text string, config *tls.Config) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if config != nil {
		conn = tls.Client(conn, config)
	}
	c.connected.Add(1)
	if _, err := io.WriteString(conn, text); err != nil {
		return
	}
	c.connections <- conn
	buffer := make([]byte, 1<<12)
	if n, err := conn.Read(buffer); n > 0 && err == nil {
		c.answered.Add(1)
	}
	_, _ = io.Copy(io.Discard, conn)
}

// reset ends n of the connections with an RST.
func (c *crowd) reset(n int) {
	for range n {
		conn := <-c.connections
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// halfClose shuts down the clients' end of n of the connections.
func (c *crowd) halfClose(n int) {
	for range n {
		if tcp, ok := (<-c.connections).(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
}

func unverified() *tls.Config { return &tls.Config{InsecureSkipVerify: true} } //nolint:gosec // the case's own certificate

// streams sends n requests over one HTTP/2 connection.
func (b *bench) streams(url string, n int, config *tls.Config) {
	transport := &http.Transport{TLSClientConfig: config, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP2(config != nil)
	transport.Protocols.SetUnencryptedHTTP2(config == nil)
	client := &http.Client{Transport: transport}
	ctx, cancel := context.WithCancel(b.ctx)
	b.cleanup = append(b.cleanup, cancel, transport.CloseIdleConnections)
	ask := func(path string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.ProtoMajor != 2 {
			return fmt.Errorf("answered by %s", response.Proto)
		}
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	b.until("HTTP/2 is spoken", func() bool { return ask("/hello") == nil })
	for range n {
		go func() { _ = ask("/hello?ms=60000") }()
	}
}
