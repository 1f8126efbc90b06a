package deployments

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
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
			c.Until("it is paused", func() bool { _, err := os.Stat(filepath.Join(c.Dir, "paused")); return err == nil })
			clients := c.Hold(rig.Clients{N: 30, Text: rig.Get("/")})
			c.Until("the queue is full", func() bool { return clients.Connected.Load() >= 11 })
			c.Wait(4 * time.Second)
			c.Row.Truth = fmt.Sprintf("connector.pause(), %d of 30 clients connected, none answered: %d", clients.Connected.Load(), clients.Answered.Load())
			c.Ask(rig.Port).Verdict("losing not_accepting", "saturated not_accepting").Silent("slow_accept")
		}},
		{"a paused connector, and only probes of its port come", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, tomcat("pause=2000")...)
			c.Answers("127.0.0.1:8080")
			c.Until("it is paused", func() bool { _, err := os.Stat(filepath.Join(c.Dir, "paused")); return err == nil })
			for range 5 {
				c.Connects(rig.Port)
			}
			c.Wait(2 * time.Second)
			c.Row.Truth = "connector.pause(), nobody waits for an answer"
			c.Both(rig.Port, "ok").Names("whose clients have closed and sent nothing")
			said := c.Row.Said
			clients := c.Hold(rig.Clients{N: 1, Text: rig.Get("/")})
			c.Until("a client has come", func() bool { return clients.Connected.Load() == 1 })
			c.Row.Truth += "; then a client comes"
			c.Both(rig.Port, "saturated not_accepting")
			c.Row.Said = said + " Then: " + c.Row.Said
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
		{"uploads of 20 MiB that are rejected, with maxSwallowSize=1 MiB", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxSwallowSize=1048576")...)
			c.Answers("127.0.0.1:8080")
			ends := make(chan demo.Outcomes, 1)
			go func() {
				ends <- rig.Arrivals(5, "/", func(o *demo.BurstOptions) { o.Body = 20 << 20 })(c, s)
			}()
			c.Wait(time.Second)
			said := c.Ask(rig.Port, "--interval", "3s")
			said.Verdict("warning server_resets", "losing server_resets")
			out := <-ends
			c.Row.Truth = fmt.Sprintf("%d of %d clients reset in the midst of their upload", out.Of(demo.Reset), out.Total())
			c.Holds(out.Of(demo.Reset) > 0, "no client was reset: %v", out.Count)
		}},
		{"a queue longer than the clients' patience: less room, and more of them are answered", func(c *rig.Case) {
			answered := func(connections int) int {
				mark := c.Mark()
				defer c.UnwindTo(mark)
				s := c.Embedded(rig.JVM{}, tomcat("maxThreads=5", "acceptCount=10", fmt.Sprint("maxConnections=", connections))...)
				c.Answers("127.0.0.1:8080")
				ends := make(chan demo.Outcomes, 1)
				go func() { ends <- rig.Arrivals(30, "/?ms=500", rig.Longer(25*time.Second))(c, s) }()
				if connections == 100 {
					c.Wait(12 * time.Second)
					c.Ask(rig.Port, "--interval", "2s", "--max-connections", "100", "--max-threads", "5").
						Verdict("losing max_connections", "saturated max_connections", "saturated max_threads").Names("have given up", `"setting": "maxConnections"`)
				}
				return (<-ends).Of(demo.OK)
			}
			before := answered(100)
			after := answered(15)
			c.Row.Truth = fmt.Sprintf("10 requests/s can be served, 30 come, patience 3 s: %d answered in 25 s with maxConnections=100, %d with 15", before, after)
			c.Holds(after > before, "less room did not help: %d, then %d", before, after)
		}},
		leaving("a full accept queue whose clients have left, requests that take longer than they wait, and more room", 5*time.Second, false),
		leaving("a full accept queue whose clients have left, requests that take less time than they wait, and more room", 2*time.Second, true),
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
		{"TLS, handlers of 4 s, clients that wait for 2 s", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=60", "SSLEnabled=true", "scheme=https", "secure=true", "keystore="+c.KeystoreFile())...)
			c.Answers("127.0.0.1:8080")
			impatient(c, s, 16, "https://127.0.0.1:8080/?ms=4000")
		}},
		{"the header is sent, and the handlers hang; clients wait for 2 s", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=60")...)
			c.Answers("127.0.0.1:8080")
			impatient(c, s, 4, "http://127.0.0.1:8080/?flush=1&ms=20000")
		}},
		{"clients that shut down their side behind requests of 1.5 s, and are answered", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=60")...)
			c.Answers("127.0.0.1:8080")
			var answered, failed atomic.Int64
			for range 16 {
				go func() {
					for c.Ctx.Err() == nil {
						if halfClosing(c.Ctx, "/?ms=1500") == nil {
							answered.Add(1)
						} else {
							failed.Add(1)
						}
					}
				}()
			}
			c.Until("clients are answered", func() bool { return answered.Load() > 50 })
			said := s.Says(rig.Port)
			c.Both(rig.Port, "ok")
			c.Row.Truth = fmt.Sprintf("%s; clients: %d answered, %d not", said, answered.Load(), failed.Load())
			c.Holds(failed.Load() == 0, "%d clients failed", failed.Load())
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

// leaving is a server of 10 connections to which 10 clients a second come, who leave after 3 s, and a larger limit of them:
// whether it is advised, on the condition that requests do not wait for one another, which is so here, and whether it helps.
func leaving(name string, takes time.Duration, helps bool) deployment {
	return deployment{name, func(c *rig.Case) {
		path := fmt.Sprintf("/?ms=%d", takes.Milliseconds())
		answered := func(connections int, lasts time.Duration) int {
			mark := c.Mark()
			defer c.UnwindTo(mark)
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "acceptCount=20", fmt.Sprint("maxConnections=", connections))
			c.Answers("127.0.0.1:8080")
			ends := make(chan demo.Outcomes, 1)
			go func() { ends <- rig.Arrivals(10, path, rig.Longer(lasts))(c, s) }()
			if connections == 10 {
				c.Wait(6 * time.Second)
				said := c.Ask(rig.Port, "--interval", "2s").Verdict("losing max_connections")
				if helps {
					said.Names("Only if the requests do not wait for one another")
				} else {
					said.Names("it fills as well, with requests whose clients have left").Silent("raise maxConnections", "Raise maxConnections")
				}
			}
			return (<-ends).Of(demo.OK)
		}
		as := answered(10, 11*time.Second)
		more := answered(60, 5*time.Second)
		c.Row.Truth = fmt.Sprintf("10 clients a second, requests of %s, patience 3 s: %d of 110 answered with maxConnections=10, %d of 50 with 60", takes, as, more)
		c.Holds((more > 40) == helps, "more room: %d, then %d", as, more)
	}}
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

// halfClosing asks once, ends its own side behind the request, and reads the answer.
func halfClosing(ctx context.Context, path string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, rig.Get(path)); err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(line, " 200") {
		err = fmt.Errorf("%q", line)
	}
	return err
}

// impatient are as many clients as that, each of which asks again when it has given up.
func impatient(c *rig.Case, s *rig.Server, n int, url string) {
	client := rig.HTTPClient(rig.Unverified(), false)
	client.Timeout = 2 * time.Second
	var failed, answered atomic.Int64
	for range n {
		go func() {
			for c.Ctx.Err() == nil {
				if rig.Fetch(c.Ctx, client, url) != nil {
					failed.Add(1)
				} else {
					answered.Add(1)
				}
			}
		}()
	}
	c.Until("clients give up", func() bool { return failed.Load() >= int64(3*n) })
	said := s.Says(rig.Port)
	c.Both(rig.Port, "warning", "warning max_threads").Names("closed their connections while the server still had their requests", `"abandoned": 0`).Silent("maxThreads from", "maxConnections from")
	c.Row.Truth = fmt.Sprintf("%s; clients: %d gave up after 2 s, %d answered", said, failed.Load(), answered.Load())
}

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
