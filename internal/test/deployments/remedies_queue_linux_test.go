package deployments

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// sysctlAdvised sets on the running system what the advice says.
func sysctlAdvised(name string) func(*rig.Case, *rig.Server, []string) {
	return func(c *rig.Case, _ *rig.Server, groups []string) { c.SetSysctl(map[string]string{name: groups[1]}) }
}

// queueRemedies are about what waits in the kernel.
func queueRemedies() []remedy {
	return []remedy{{
		finding: "slow_accept", load: "a burst of 400 clients every second, acceptCount 1",
		world: world{embedded: true, settings: []string{"port=8080", "acceptCount=1", "maxThreads=50", "minSpareThreads=50"}, flags: []string{"--max-threads", "50", "--max-connections", "8192"}},
		press: rig.Waves(400, time.Second, "/?ms=0"),
		tries: []try{
			{says: `Raise acceptCount from \d+ to (\d+)`, did: "acceptCount=%s", apply: set("acceptCount")},
			{says: `More threads or connections would not help`, did: "maxThreads=400", apply: setting("maxThreads=400"), vain: true},
		},
	}, {
		finding: "backlog_clamped", load: "a burst of 40 requests of 200 ms for 10 connections every 1.4 s, acceptCount 500, somaxconn 8",
		world: world{
			settings: []string{"server.tomcat.max-connections=10", "server.tomcat.accept-count=500"},
			sysctl:   map[string]string{"net.core.somaxconn": "8"},
		},
		press: rig.Waves(40, 1400*time.Millisecond, "/hello?ms=200"),
		tries: []try{{says: `Set net\.core\.somaxconn to (\d+)`, did: "sysctl net.core.somaxconn=%s and a restart", apply: func(w *world, groups []string) {
			w.sysctl["net.core.somaxconn"] = groups[1]
		}}, {says: `Raising acceptCount further changes nothing`, did: "server.tomcat.accept-count=1000", apply: setting("server.tomcat.accept-count=1000"), vain: true}},
	}, {
		finding: "syn_backlog", load: "40 SYNs of clients that never answer, twice a second, acceptCount 16, no SYN cookies; 20 others/s",
		world: world{
			settings: []string{"server.tomcat.accept-count=16"},
			sysctl:   map[string]string{"net.ipv4.tcp_syncookies": "0", "net.ipv4.tcp_max_syn_backlog": "64"},
		},
		press: flooded(rig.Arrivals(20, "/hello")),
		tries: []try{{says: `sysctl -w net\.ipv4\.tcp_syncookies=(1)`, did: "sysctl net.ipv4.tcp_syncookies=%s", act: sysctlAdvised("net.ipv4.tcp_syncookies")}},
	}, {
		finding: "abort_on_overflow", load: "bursts of 40 requests of 100 ms every 0.3 s for 10 connections, acceptCount 20, tcp_abort_on_overflow 1, no SYN cookies, over a network of 2 Mbit/s; clients that wait 20 s",
		world: world{
			settings: []string{"server.tomcat.max-connections=10", "server.tomcat.accept-count=20"},
			sysctl:   map[string]string{"net.ipv4.tcp_abort_on_overflow": "1", "net.ipv4.tcp_syncookies": "0"},
			started:  func(c *rig.Case, _ *rig.Server) { c.SlowNetwork() },
		},
		press: rig.Waves(40, 300*time.Millisecond, "/hello?ms=100", func(o *demo.BurstOptions) {
			o.ConnectTimeout, o.RequestTimeout = 20*time.Second, 20*time.Second
		}),
		tries: []try{{says: `Set it to (0)`, did: "sysctl net.ipv4.tcp_abort_on_overflow=%s", act: sysctlAdvised("net.ipv4.tcp_abort_on_overflow")}},
	}, {
		finding: "listener_closed", load: "10 requests/s of 500 ms for 2 connections; SIGTERM after 3 s, another instance beside it",
		world: world{settings: []string{"server.tomcat.max-connections=2", "server.tomcat.accept-count=50"}, started: another, flags: []string{"--interval", "4s"}},
		press: stopping(false),
		tries: []try{{
			says: `Take the instance out of the load balancer first, wait until no new connections come`,
			did:  "new clients go to the other instance, SIGTERM when this one has no more", press: stopping(true), apply: setting(),
		}},
	}, {
		finding: "no_listener", load: "server.port=8090 by mistake, 10 clients/s come to 8080",
		world: world{settings: []string{"server.port=8090"}},
		press: rig.Arrivals(10, "/hello"),
		tries: []try{{says: `Look at the application's log and at "(ss -ltn)"`, did: "%s shows 8090: server.port=8080", apply: func(w *world, _ []string) {
			if out, err := exec.CommandContext(context.Background(), "ss", "-ltn").Output(); err == nil && strings.Contains(string(out), ":8090") {
				*w = w.with("server.port=8080")
			}
		}}},
	}}
}

// flooded sends SYNs of addresses that nobody has while the clients come.
func flooded(p rig.Load) rig.Load {
	return func(c *rig.Case, s *rig.Server) demo.Outcomes {
		c.RouteNowhere()
		ctx, cancel := context.WithCancel(c.Ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := 0; ctx.Err() == nil; i++ {
				_ = nettest.SYNs(netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), rig.Port), byte(1+i%250), 40)
				time.Sleep(500 * time.Millisecond)
			}
		}()
		defer func() { cancel(); <-done }()
		time.Sleep(time.Second)
		return p(c, s)
	}
}

const otherPort = 8090

// another is the instance that is to serve the clients when the first one stops.
func another(c *rig.Case, _ *rig.Server) {
	c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", fmt.Sprint("port=", otherPort))
	c.Answers(fmt.Sprintf("127.0.0.1:%d", otherPort))
}

// stopping ends the server while clients come, or when it has no more of them: the
// new ones go to the other instance by then.
func stopping(out bool) rig.Load {
	const before = 3 * time.Second
	return func(c *rig.Case, s *rig.Server) demo.Outcomes {
		var t rig.Tally
		come := func(to int, d time.Duration) {
			o := rig.Patient("/hello?ms=500")
			o.Address, o.Rate, o.Clients = fmt.Sprintf("127.0.0.1:%d", to), 10, int(10*d.Seconds())
			o.RequestTimeout = 20 * time.Second
			t.Add(rig.Burst(c.Ctx, o))
		}
		stop := func() { _ = syscall.Kill(s.PID, syscall.SIGTERM) }
		if !out {
			time.AfterFunc(before, stop)
			come(rig.Port, rig.Lasts)
			return t.Sum()
		}
		var wg sync.WaitGroup
		wg.Go(func() { time.Sleep(before); come(otherPort, rig.Lasts-before) })
		come(rig.Port, before)
		stop()
		wg.Wait()
		return t.Sum()
	}
}
