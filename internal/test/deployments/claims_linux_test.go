package deployments

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// claims are servers of which a plausible cause was named where its opposite had not been
// excluded, and servers that were ok while every client failed.
func claims() []deployment {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	return []deployment{
		{"a paused connector with an acceptCount of 10 and 30 clients", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, tomcat("acceptCount=10", "pause=2000")...)
			c.Answers("127.0.0.1:8080")
			c.Wait(4 * time.Second)
			clients := c.Hold(rig.Clients{N: 30, Text: rig.Get("/")})
			c.Until("the queue is full", func() bool { return clients.Connected.Load() >= 11 })
			c.Wait(4 * time.Second)
			c.Row.Truth = fmt.Sprintf("connector.pause(), %d of 30 clients connected, none answered: %d", clients.Connected.Load(), clients.Answered.Load())
			c.Ask(rig.Port).Verdict("losing not_accepting", "saturated not_accepting").Silent("slow_accept")
		}},
		{"bound to 127.0.0.1, asked at 127.0.0.2", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, tomcat("address=127.0.0.1")...)
			c.Answers("127.0.0.1:8080")
			n := keep(c, func() error { return once("127.0.0.2:8080") })
			c.Wait(time.Second)
			c.Row.Truth = fmt.Sprintf("%d clients at 127.0.0.2, all refused", n.Load())
			c.Ask(rig.Port, "--interval", "3s").Verdict("losing listens_elsewhere").Names("127.0.0.2:8080", "127.0.0.1:8080")
		}},
		{"SYNs that nftables drops in front of the listener", func(c *rig.Case) {
			c.Needs("nft")
			c.Embedded(rig.JVM{}, tomcat()...)
			c.Answers("127.0.0.1:8080")
			c.Do("nft", "add table inet firewall")
			c.AtEnd(func() { c.Do("nft", "delete table inet firewall") })
			c.Do("nft", "add chain inet firewall input { type filter hook input priority 0; }")
			c.Do("nft", "add rule inet firewall input tcp dport 8080 tcp flags syn counter drop")
			for range 10 {
				keep(c, func() error { return once("127.0.0.1:8080") })
			}
			c.Row.Truth = "10 clients at a time that give up after 2 s, none let in"
			c.Ask(rig.Port, "--interval", "6s").Verdict("losing before_listener")
		}},
		{"uploads of 20 MiB that are rejected, with max-swallow-size=1MB", func(c *rig.Case) {
			c.Boot("none", rig.JVM{}, "server.tomcat.max-swallow-size=1MB")
			c.Answers("127.0.0.1:8080")
			broken := keep(c, func() error {
				r, err := http.Post("http://127.0.0.1:8080/nothing-here", "application/octet-stream", io.LimitReader(zeros{}, 20<<20)) //nolint:noctx // ends with the server
				if err == nil {
					_ = r.Body.Close()
					return nil
				}
				return err
			})
			c.Until("clients are broken", func() bool { return broken.Load() >= 5 })
			said := c.Ask(rig.Port, "--interval", "3s")
			c.Row.Truth = fmt.Sprintf("%d clients broken by a reset", broken.Load())
			said.Verdict("losing server_resets")
		}},
		{"20 slots of asynchronous requests whose clients have closed", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxConnections=20", "acceptCount=50")...)
			c.Answers("127.0.0.1:8080")
			gone := c.Hold(rig.Clients{N: 20, Text: rig.Get("/?async=1")})
			c.Until("all slots are taken", func() bool { return s.Says(rig.Port).Connections >= 20 })
			c.Wait(time.Second)
			gone.HalfClose(20)
			c.Hold(rig.Clients{N: 10, Text: rig.Get("/")})
			c.Wait(3 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String()
			c.Ask(rig.Port, "--interval", "2s").Verdict("saturated max_connections", "losing max_connections").Silent("20 of 200 threads", "server.tomcat.threads")
		}},
		{"8 handlers in open(2) of a FIFO", func(c *rig.Case) {
			fifo := c.Write("fifo", "")
			c.Must(os.Remove(fifo))
			c.Must(syscall.Mkfifo(fifo, 0o600))
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=8")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get("/?open=" + fifo)})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 })
			c.Row.Truth = s.Says(rig.Port).String() + ", each in open(2)"
			c.Ask(rig.Port, "--interval", "2s").Verdict("saturated max_threads").Names("open(2)").Silent("threads.max from 8", "maxThreads from 8")
		}},
	}
}

// once connects and closes.
func once(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// zeros has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// keep has a client try again and again until the case ends; it counts the failures.
func keep(c *rig.Case, try func() error) *atomic.Int64 {
	failed := new(atomic.Int64)
	ctx, cancel := context.WithCancel(c.Ctx)
	c.AtEnd(cancel)
	go func() {
		for ctx.Err() == nil {
			if try() != nil {
				failed.Add(1)
			}
			rig.Wait(ctx, 100*time.Millisecond)
		}
	}()
	return failed
}
