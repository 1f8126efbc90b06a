package deployments

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofClients are reports of what clients see, leave behind or do.
func ofClients() []report {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	return []report{
		{"D", "https://github.com/cloudfoundry/java-buildpack/issues/881", "the proxy keeps connections for longer than Tomcat's keepAliveTimeout, and uses one that is closed", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("keepAliveTimeout=1000")...)
			c.Answers("127.0.0.1:8080")
			var answered, reset atomic.Int64
			for range 20 {
				keep(c, func() error { return late(c.Ctx, 3*time.Second, &answered, &reset) })
				c.Wait(150 * time.Millisecond) // they come all the time
			}
			c.Until("requests are reset", func() bool { return reset.Load() > 20 })
			c.Both(rig.Port, "warning server_resets", "losing server_resets").Names("keepAliveTimeout").Silent("maxSwallowSize")
			c.Row.Truth = fmt.Sprintf("%s; keepAliveTimeout 1 s, a second request after 3 s: %d answered, %d reset", s.Says(rig.Port), answered.Load(), reset.Load())
		}},
		{"D", "https://github.com/spring-projects/spring-boot/issues/42726", "max-queue-capacity: what is too much is rejected, and its connection closed", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.threads.max=4", "server.tomcat.threads.max-queue-capacity=5")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 9, Text: rig.Get("/hello?ms=600000")})
			c.Until("threads and queue are full", func() bool { return s.Says(rig.Port).Busy >= 4 && s.Says(rig.Port).Connections >= 9 })
			failed := keep(c, func() error { return rejected(c.Ctx, "/hello") })
			c.Until("clients are rejected", func() bool { return failed.Load() > 5 })
			c.Both(rig.Port, "losing executor_queue").Names("max-queue-capacity")
			c.Row.Truth = fmt.Sprintf("%s, 5 of 5 queued; %d more closed without an answer", s.Says(rig.Port), failed.Load())
		}},
		{"D", "https://github.com/spring-projects/spring-boot/issues/43482", "a request whose header is too large: 400, and a reset in front of it", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxHttpHeaderSize=8192")...)
			c.Answers("127.0.0.1:8080")
			var refused atomic.Int64
			for range 5 {
				keep(c, func() error {
					refused.Add(1)
					return rejected(c.Ctx, "/?"+strings.Repeat("x", 1<<19))
				})
			}
			c.Until("requests are rejected", func() bool { return refused.Load() > 20 })
			c.Both(rig.Port, "warning server_resets", "losing server_resets")
			c.Row.Truth = fmt.Sprintf("%s; maxHttpHeaderSize 8 KiB, %d requests with a line of 512 KiB", s.Says(rig.Port), refused.Load())
		}},
		{"E", "https://github.com/javaee/jersey/issues/3047", "event streams of clients whose network has gone: writes succeed, and the slots stay taken", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.max-connections=20", "server.tomcat.accept-count=10")
			c.Answers("127.0.0.1:8080")
			streams := c.Hold(rig.Clients{N: 20, Text: rig.Get("/events?ms=300"), Address: "127.0.0.5:8080"})
			c.Until("all have events", func() bool { return streams.Answered.Load() >= 20 })
			nft(c, `table inet lost { chain input { type filter hook input priority 0; ip daddr 127.0.0.5 drop; ip saddr 127.0.0.5 drop; }; }`)
			c.Hold(rig.Clients{N: 5, Text: rig.Get("/hello")})
			c.Wait(12 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; no client of these has acknowledged anything for 12 s"
			c.Both(rig.Port, "saturated max_connections", "losing max_connections").Names("acknowledged").Silent("keep-alive-timeout", "keepAliveTimeout")
		}},
		{"O", "https://github.com/gravitational/teleport/issues/6889", "all clients come back while the server starts; then they wait because its connections are taken", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxConnections=20", "acceptCount=10", "maxThreads=30", "deploy=6000")...)
			c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/?ms=600000")})
			c.Until("the connections are taken", func() bool { return s.Says(rig.Port).Connections >= 20 && s.Says(rig.Port).Busy >= 20 })
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; nobody was accepted for the first 6 s"
			c.Ask(rig.Port, "--interval", "3s", "--max-connections", "20", "--max-threads", "30").Verdict("losing max_connections", "saturated max_connections").Silent("slow_accept", "no acceptor thread")
		}},
		{"O", "https://github.com/firezone/firezone/issues/11493", "all clients come back while the server stands still for a moment; then its connections are taken", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxConnections=20", "acceptCount=10", "maxThreads=30")...)
			c.Answers("127.0.0.1:8080")
			c.Must(syscall.Kill(s.PID, syscall.SIGSTOP))
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/?ms=600000")})
			c.Wait(1500 * time.Millisecond)
			c.Must(syscall.Kill(s.PID, syscall.SIGCONT))
			c.Until("the connections are taken", func() bool { return s.Says(rig.Port).Connections >= 20 && s.Says(rig.Port).Busy >= 20 })
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; it was stopped for 1.5 s when they came"
			c.Both(rig.Port, "losing max_connections", "saturated max_connections").Silent("slow_accept", "jvm_pause\"")
		}},
		{"O", "https://github.com/mattermost/mattermost-webapp/pull/10960", "a proxy's restart: all streams are opened again at the same moment, and more than there is room for", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.max-connections=20", "server.tomcat.accept-count=10")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/events?ms=300")})
			c.Until("the connections are taken", func() bool { return s.Says(rig.Port).Connections >= 20 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 60 came at once"
			c.Both(rig.Port, "losing max_connections", "saturated max_connections").Silent("slow_accept", "keep-alive-timeout")
		}},
		{"J", "https://github.com/freeunitorg/freeunit/issues/198", "after a stall the oldest requests are served first, whose clients have left long ago", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=4")...)
			c.Answers("127.0.0.1:8080")
			ends := make(chan demo.Outcomes, 1)
			go func() { ends <- rig.Arrivals(12, "/?ms=1000", rig.Longer(40*time.Second))(c, s) }()
			c.Wait(15 * time.Second)
			said := s.Says(rig.Port)
			c.Both(rig.Port, "saturated max_threads", "losing max_threads").Names("from clients that have closed").Silent("maxConnections from 8192 to")
			out := <-ends
			c.Row.Truth = fmt.Sprintf("%s; 4 requests/s can be served, 12 come, patience 3 s: %d of %d answered", said, out.Of(demo.OK), out.Total())
		}},
		{"J", "https://github.com/pegasystems/docker-pega-web-ready/pull/285", "a connector for the probes alone has one thread: a slow liveness check holds up the readiness checks", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Connector port="8080" protocol="HTTP/1.1"/><Connector port="8081" protocol="HTTP/1.1" maxThreads="1" minSpareThreads="1"/>`)
			c.Answers("127.0.0.1:8080")
			c.Answers("127.0.0.1:8081")
			var failed atomic.Int64
			probe := func(every time.Duration, path string) {
				for ; c.Ctx.Err() == nil; rig.Wait(c.Ctx, every) {
					go func() {
						client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
						if rig.Fetch(c.Ctx, client, "http://127.0.0.1:8081"+path) != nil {
							failed.Add(1)
						}
					}()
				}
			}
			go probe(2*time.Second, "/slow.jsp?ms=4000")
			go probe(time.Second, "/slow.jsp?ms=1")
			c.Until("probes fail", func() bool { return failed.Load() > 30 })
			said := s.Says(8081)
			c.Both(8081, "saturated max_threads", "losing max_threads").Names("have given up").Silent("maxConnections from", "acceptCount from")
			c.Row.Truth = fmt.Sprintf("%s; %d probes failed after 1 s, and what waits is theirs", said, failed.Load())
		}},
		{"J", "https://github.com/kubernetes/kubernetes/issues/110083", "a probe with a timeout of 1 s every half second in front of busy threads: what waits is the probe's", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=6")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 6, Text: rig.Get("/?ms=600000")})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 6 })
			go rig.Arrivals(2, "/", rig.Longer(60*time.Second))(c, s)
			c.Wait(15 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 6 requests in service, the others are those of a probe that has given up"
			c.Both(rig.Port, "saturated max_threads", "losing max_threads").Names("have given up").Silent("maxConnections from 8192", "maxThreads from 6 to 3", "maxThreads from 6 to 4")
		}},
	}
}

// late asks twice on one connection, without a look at whether it was closed in between.
func late(ctx context.Context, pause time.Duration, answered, reset *atomic.Int64) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:8080")
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(pause + 5*time.Second))
	for i := range 2 {
		if _, err := io.WriteString(conn, rig.Get("/")); err != nil {
			reset.Add(1)
			return err
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err != nil || !strings.Contains(line, "200") {
			reset.Add(1)
			return fmt.Errorf("%q: %w", line, err)
		}
		if answered.Add(1); i == 0 {
			rig.Wait(ctx, pause)
		}
	}
	return nil
}

// rejected asks once, and fails where there is no 200.
func rejected(ctx context.Context, path string) error {
	return rejectedAt(ctx, "127.0.0.1:8080", path)
}

func rejectedAt(ctx context.Context, address, path string) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(3 * time.Second))
	if _, err := io.WriteString(conn, rig.Get(path)); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && !strings.Contains(line, " 200") {
		err = fmt.Errorf("%q", line)
	}
	return err
}
