package main

import (
	"context"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// outgoing are servers whose own connections are short: it is TIME_WAIT that has the
// ports, and no process has a socket in TIME_WAIT.
func outgoing() []deployment {
	const used = "100 local ports, the handlers' connections are short and leave them in TIME_WAIT; "
	return []deployment{
		{used + "tcp_tw_reuse 0", func(b *bench) {
			said := b.shortConnections("127.0.0.1", "0", 30, true)
			b.verdict(said, "warning ephemeral_ports")
			b.names(said, "in TIME_WAIT")
		}},
		{used + "the default tcp_tw_reuse (2), a backend beyond the loopback", func(b *bench) {
			said := b.shortConnections("10.77.0.1", "2", 30, true)
			b.verdict(said, "warning ephemeral_ports")
			b.names(said, "in TIME_WAIT")
		}},
		{used + "the default tcp_tw_reuse (2), a backend on the loopback, where a port is free again after a second", func(b *bench) {
			said := b.shortConnections("127.0.0.1", "2", 60, false)
			b.verdict(said, "ok")
		}},
	}
}

// shortConnections has the handlers ask a backend that often a second, each time by a
// connection of its own, until all ports are in TIME_WAIT.
func (b *bench) shortConnections(host, reuse string, rate int, fails bool) said {
	const ports = 100
	b.portsFree()
	_ = output(b.ctx, "", "ip", "address", "add", "10.77.0.1/32", "dev", "lo")
	b.cleanup = append(b.cleanup, b.setSysctl(map[string]string{"net.ipv4.ip_local_port_range": "40000 40099", "net.ipv4.tcp_tw_reuse": reuse}))
	s := b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=60")
	b.backendOn(host, 100)
	b.until("the server listens", func() bool { return s.says(port).MaxThreads > 0 })
	path := fmt.Sprintf("/?to=%d&host=%s&timeout=10000", backendPort, host)
	var all, recent tally
	ctx, cancel := context.WithCancel(b.ctx)
	b.cleanup = append(b.cleanup, cancel)
	go func() {
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			go func() {
				o := b.from(int(b.nextPort.Add(1)+firstPort), path)
				all.add(o)
				recent.add(o)
			}()
		}
	}()
	b.until("the ports are in TIME_WAIT", func() bool {
		return b.timeWaits(backendPort) >= ports-2 && (!fails || all.sum().Of(demo.BadAnswer) > 0)
	})
	recent.reset()
	said := b.ask(port, "--max-threads", "60", "--max-connections", "8192", "--interval", "3s")
	o := recent.sum()
	b.row.Truth = fmt.Sprintf("%d of %d ports in TIME_WAIT; of %d requests meanwhile %d failed (EADDRNOTAVAIL)", b.timeWaits(backendPort), ports, o.Lost()+o.Of(demo.OK), o.Lost())
	b.holds(fails == (o.Lost() > 0), "the load is another: %s", o)
	return said
}
