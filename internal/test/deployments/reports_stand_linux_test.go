package deployments

import (
	"fmt"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ofStanding are reports of servers that are there and serve nobody new.
func ofStanding() []report {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	return []report{
		{"C", "https://github.com/spring-projects/spring-boot/issues/24617", "a graceful shutdown: the connector takes nobody, and serves for minutes those whom it has", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.shutdown=graceful", "spring.lifecycle.timeout-per-shutdown-phase=10m")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get("/hello?ms=600000")})
			c.Until("24 requests are served", func() bool { return s.Says(rig.Port).Busy >= 24 })
			c.Must(syscall.Kill(s.PID, syscall.SIGTERM))
			c.Until("its listener is closed", func() bool { return !c.Connects(rig.Port) })
			var refused atomic.Int64
			keep(c, func() error {
				err := rejected(c.Ctx, "/hello")
				if err != nil {
					refused.Add(1)
				}
				return err
			})
			c.Until("clients are refused", func() bool { return refused.Load() > 5 })
			c.Both(rig.Port, "down no_listener").Names("were refused", "24 connections that came through it, as in a graceful shutdown").Silent("max_connections", "slow_accept")
			c.Row.Truth = fmt.Sprintf("%s; the listener is closed, %d clients refused", s.Says(rig.Port), refused.Load())
		}},
		{"M", "https://github.com/mp911de/logstash-gelf/issues/157", "the log's server does not read: one thread stands in the write of its line, and the others wait to write theirs", func(c *rig.Case) {
			deaf, err := (&net.ListenConfig{}).Listen(c.Ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", rig.BackendPort))
			c.Must(err)
			c.AtEnd(func() { _ = deaf.Close() })
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=8")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get(fmt.Sprintf("/?log=%d", rig.BackendPort))})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 && s.Says(rig.Port).Connections >= 24 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; one in the write to the log's server, which reads nothing, the others wait for its lock"
			c.Both(rig.Port, "saturated max_threads", "saturated downstream").Names("7 of the threads wait for a lock", "127.0.0.1:9000").Silent("maxThreads from 8", "threads.max from 8")
		}},
	}
}
