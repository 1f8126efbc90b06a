package deployments

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// outgoing are servers whose own connections are short: it is TIME_WAIT that has the
// ports, and no process has a socket in TIME_WAIT.
func outgoing() []deployment {
	const used = "100 local ports, the handlers' connections are short and leave them in TIME_WAIT; "
	return []deployment{
		{used + "tcp_tw_reuse 0", func(c *rig.Case) {
			said := shortConnections(c, "127.0.0.1", "0", 30, true)
			said.Verdict("warning ephemeral_ports")
			said.Names("in TIME_WAIT")
		}},
		{used + "the default tcp_tw_reuse (2), a backend beyond the loopback", func(c *rig.Case) {
			said := shortConnections(c, "10.77.0.1", "2", 30, true)
			said.Verdict("warning ephemeral_ports")
			said.Names("in TIME_WAIT")
		}},
		{used + "the default tcp_tw_reuse (2), a backend on the loopback, where a port is free again after a second", func(c *rig.Case) {
			said := shortConnections(c, "127.0.0.1", "2", 60, false)
			said.Verdict("ok")
		}},
	}
}

// shortConnections has the handlers ask a backend that often a second, each time by a
// connection of its own, until all ports are in TIME_WAIT.
func shortConnections(c *rig.Case, host, reuse string, rate int, fails bool) *rig.Said {
	const ports = 100
	portsFree(c)
	c.Do("ip", "address", "replace", "10.77.0.1/32", "dev", "lo")
	c.AtEnd(c.SetSysctl(map[string]string{"net.ipv4.ip_local_port_range": "40000 40099", "net.ipv4.tcp_tw_reuse": reuse}))
	s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=60")
	backend(c, host, 100)
	c.Until("the server listens", func() bool { return s.Says(rig.Port).MaxThreads > 0 })
	path := fmt.Sprintf("/?to=%d&host=%s&timeout=10000", rig.BackendPort, host)
	var all, recent rig.Tally
	ctx, cancel := context.WithCancel(c.Ctx)
	c.AtEnd(cancel)
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			go func() {
				o := c.TimedFrom(c.LocalPort(), path)
				all.Add(o)
				recent.Add(o)
			}()
		}
	}()
	c.Until("the ports are in TIME_WAIT", func() bool {
		return timeWaits(c, rig.BackendPort) >= ports-2 && (!fails || all.Sum().Of(demo.BadAnswer) > 0)
	})
	recent.Reset()
	said := c.Ask(rig.Port, "--max-threads", "60", "--max-connections", "8192", "--interval", "3s")
	o := recent.Sum()
	c.Row.Truth = fmt.Sprintf("%d of %d ports in TIME_WAIT; of %d requests meanwhile %d failed (EADDRNOTAVAIL)", timeWaits(c, rig.BackendPort), ports, o.Lost()+o.Of(demo.OK), o.Lost())
	c.Holds(fails == (o.Lost() > 0), "the load is another: %s", o)
	return said
}

// backend is what the handlers ask; it works at that many requests at a time.
func backend(c *rig.Case, host string, atOnce int) {
	(&rig.Backend{Address: net.JoinHostPort(host, fmt.Sprint(rig.BackendPort)), AtOnce: atOnce}).Serve(c)
}
