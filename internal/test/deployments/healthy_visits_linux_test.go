package deployments

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// visits are the kinds of clients. Each has connections of its own.
func visits() []*visit {
	at := func(scheme string, p int, path string) string {
		return fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, p, path)
	}
	plain := func() *http.Client { return client(nil, false) }
	return []*visit{
		{name: "keep-alive, a request of 20 ms every 2 s", clients: 15, pause: 2 * time.Second, turn: getting(plain(), at("http", rig.Port, "/hello?ms=20"))},
		{name: "a connection for each request, 5 ms, every 2 s", clients: 5, pause: 2 * time.Second, turn: func(ctx context.Context) error {
			c := plain()
			defer c.CloseIdleConnections()
			return getting(c, at("http", rig.Port, "/hello?ms=5"))(ctx)
		}},
		{name: "a request of 2 s", clients: 3, pause: 3 * time.Second, turn: getting(plain(), at("http", rig.Port, "/hello?ms=2000"))},
		{name: "25 clients at once, every 10 s", clients: 1, pause: 10 * time.Second, turn: func(ctx context.Context) error { return atOnce(ctx, 25, at("http", rig.Port, "/hello?ms=100")) }},
		{name: "asynchronous requests of 3 s", clients: 10, pause: time.Second, turn: getting(plain(), at("http", rig.Port, "/async?ms=3000"))},
		{name: "server-sent events, one a second, for 30 s", clients: 6, pause: 2 * time.Second, turn: events(at("http", rig.Port, "/events?ms=1000"), nil)},
		{name: "uploads of 1 MB at 250 kB/s", clients: 3, pause: 5 * time.Second, turn: uploading(plain(), at("http", rig.Port, "/upload"))},
		{name: "TLS, HTTP/1.1, a request of 20 ms every 2 s", clients: 8, pause: 2 * time.Second, turn: getting(client(rig.Unverified(), false), at("https", securePort, "/hello?ms=20"))},
		{name: "HTTP/2 with TLS, streams of 200 ms on one connection", clients: 8, pause: 2 * time.Second, turn: getting(client(rig.Unverified(), true), at("https", securePort, "/hello?ms=200"))},
		{name: "server-sent events with TLS", clients: 4, pause: 2 * time.Second, turn: events(at("https", securePort, "/events?ms=1000"), rig.Unverified())},
		{name: "WebSockets, a message every 2 s, for 30 s", clients: 8, pause: time.Second, turn: talking(fmt.Sprintf("127.0.0.1:%d", embeddedPort))},
		{name: "a request that burns 5 ms of CPU", clients: 2, pause: time.Second, turn: getting(plain(), at("http", embeddedPort, "/?burn=5"))},
	}
}

func client(config *tls.Config, http2 bool) *http.Client {
	transport := &http.Transport{TLSClientConfig: config, Protocols: new(http.Protocols), MaxIdleConnsPerHost: 50}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetHTTP2(http2)
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

func getting(c *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		return whole(c, request)
	}
}

func whole(c *http.Client, request *http.Request) error {
	answer, err := c.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", request.URL, answer.Status)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return err
}

func atOnce(ctx context.Context, n int, url string) error {
	errs := make(chan error, n)
	c := client(nil, false)
	defer c.CloseIdleConnections()
	for range n {
		go func() { errs <- getting(c, url)(ctx) }()
	}
	var first error
	for range n {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	return first
}

// events reads a stream for half a minute and closes it, as a browser's tab does.
func events(url string, config *tls.Config) func(context.Context) error {
	return func(ctx context.Context) error {
		c := client(config, false)
		defer c.CloseIdleConnections()
		limited, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err := getting(c, url)(limited)
		if limited.Err() != nil {
			return ctx.Err()
		}
		return err
	}
}

// uploading sends a megabyte slowly.
func uploading(c *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		read, write := io.Pipe()
		go func() {
			chunk := strings.Repeat("x", 25_000)
			for range 40 {
				rig.Wait(ctx, 100*time.Millisecond)
				if _, err := io.WriteString(write, chunk); err != nil {
					return
				}
			}
			_ = write.Close()
		}()
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, read)
		if err != nil {
			return err
		}
		return whole(c, request)
	}
}

// talking is a WebSocket with a message now and then.
func talking(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		conn, r, err := rig.WebSocket(ctx, address)
		if err != nil {
			return err
		}
		defer conn.Close()
		for i := range 15 {
			if err := rig.Echo(conn, r, fmt.Sprint("message ", i)); err != nil {
				return err
			}
			rig.Wait(ctx, 2*time.Second)
		}
		return nil
	}
}
