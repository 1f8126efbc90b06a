package rig

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// Clients are those that a case holds: each has a connection until the case ends.
type Clients struct {
	N       int
	Text    string      // what each sends
	Address string      // "" is 127.0.0.1 and Port
	Unix    string      // the path of a socket instead
	TLS     *tls.Config // nil is none
}

// Crowd are clients at work.
type Crowd struct {
	Connected, Answered atomic.Int64
	connections         chan net.Conn
}

// Get is the beginning of a request.
func Get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

// Half is a request of whose body the rest does not come: its handler waits for it.
func Half(path string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
}

// Hold connects clients that send their text and read whatever comes.
func (c *Case) Hold(o Clients) *Crowd {
	network, address := "tcp", o.Address
	switch {
	case o.Unix != "":
		network, address = "unix", o.Unix
	case address == "":
		address = fmt.Sprintf("127.0.0.1:%d", Port)
	}
	crowd := &Crowd{connections: make(chan net.Conn, o.N)}
	ctx, cancel := context.WithCancel(c.Ctx)
	c.AtEnd(cancel)
	for range o.N {
		go crowd.client(ctx, network, address, o.Text, o.TLS)
	}
	return crowd
}

func (w *Crowd) client(ctx context.Context, network, address, text string, config *tls.Config) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	if config != nil {
		conn = tls.Client(conn, config)
	}
	w.Connected.Add(1)
	if _, err := io.WriteString(conn, text); err != nil {
		return
	}
	w.connections <- conn
	buffer := make([]byte, 1<<12)
	if n, err := conn.Read(buffer); n > 0 && err == nil {
		w.Answered.Add(1)
	}
	_, _ = io.Copy(io.Discard, conn)
}

// Reset ends n of the connections with an RST.
func (w *Crowd) Reset(n int) {
	for range n {
		conn := <-w.connections
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// HalfClose shuts down the clients' end of n of the connections.
func (w *Crowd) HalfClose(n int) {
	for range n {
		if tcp, ok := (<-w.connections).(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
	}
}

// Again has each of the clients send the text.
func (w *Crowd) Again(c *Case, text string) {
	for range cap(w.connections) {
		_, err := (<-w.connections).Write([]byte(text))
		c.Must(err)
	}
}

// Unverified accepts the kit's own certificate.
func Unverified() *tls.Config { return &tls.Config{InsecureSkipVerify: true} } //nolint:gosec // the case's own certificate

// HTTPClient is one of HTTP/1 or 2.
func HTTPClient(config *tls.Config, http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, Protocols: new(http.Protocols), MaxIdleConnsPerHost: 50}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2 && config != nil)
	transport.Protocols.SetUnencryptedHTTP2(http2 && config == nil)
	return &http.Client{Transport: transport}
}

// Streams sends n requests over one HTTP/2 connection, after one that was answered.
func (c *Case) Streams(url string, n int, config *tls.Config) {
	client := HTTPClient(config, true)
	ctx, cancel := context.WithCancel(c.Ctx)
	c.AtEnd(client.CloseIdleConnections)
	c.AtEnd(cancel)
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
	c.Until("HTTP/2 is spoken", func() bool { return ask("/hello") == nil })
	for range n {
		go func() { _ = ask("/hello?ms=60000") }()
	}
}
