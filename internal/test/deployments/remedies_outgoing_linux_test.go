package deployments

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// outgoingRemedies are about what the handlers ask of others.
func outgoingRemedies() []remedy {
	ask := fmt.Sprintf("/?to=%d&hold=200&timeout=10000", rig.BackendPort)
	slow := fmt.Sprintf("/?to=%d&hold=1000&timeout=10000", rig.BackendPort)
	narrow := map[string]string{"net.ipv4.ip_local_port_range": "40000 40099", "net.ipv4.tcp_tw_reuse": "0"}
	asking := world{
		embedded: true, settings: []string{"port=8080", "maxThreads=20", "minSpareThreads=20"}, flags: []string{"--max-threads", "20", "--max-connections", "8192"},
		started: func(c *rig.Case, _ *rig.Server) { backend(c, "127.0.0.1", 4) },
	}
	roomy := asking.with("maxThreads=60")
	roomy.flags = []string{"--max-threads", "60", "--max-connections", "8192"}
	roomy.started, roomy.sysctl = func(c *rig.Case, _ *rig.Server) { portsFree(c); backend(c, "127.0.0.1", 100) }, narrow
	short := roomy // of ports that are all in TIME_WAIT nobody knows whose they were
	short.flags = append([]string{"--interval", "3s"}, roomy.flags...)
	brief := fmt.Sprintf("/?to=%d&timeout=10000", rig.BackendPort)
	lasting := rig.Get(fmt.Sprintf("/?to=%d&hold=30000&timeout=60000", rig.BackendPort))
	return []remedy{{
		finding: "ephemeral_ports", load: "100 local ports (the clients use others); 60 requests/s, for each of which the handler opens a connection to a backend, 10 of them for long",
		world: roomy, press: rig.Besides(10, lasting, elsewhere(60, rig.Lasts, ask)),
		tries: []try{
			{says: `ip_local_port_range="([\d ]+)"`, did: "sysctl net.ipv4.ip_local_port_range=%s", act: sysctlAdvised("net.ipv4.ip_local_port_range")},
			{says: `Reuse outgoing connections \(a client with a keep-alive pool\)`, did: "the handlers use a pool of connections", press: rig.Besides(10, lasting, elsewhere(60, rig.Lasts, ask+"&pool=1")), apply: setting()},
		},
	}, {
		finding: "ephemeral_ports", load: "100 local ports, all in TIME_WAIT; 60 requests/s, for each of which the handler opens a connection to a backend and closes it at once",
		world: short, press: elsewhere(60, rig.Lasts, brief),
		tries: []try{
			{says: `sysctl -w net\.ipv4\.tcp_tw_reuse=(1)`, did: "sysctl net.ipv4.tcp_tw_reuse=%s", act: sysctlAdvised("net.ipv4.tcp_tw_reuse")},
			{says: `Reuse outgoing connections \(a client with a keep-alive pool\)`, did: "the handlers use a pool of connections", press: elsewhere(60, rig.Lasts, brief+"&pool=1"), apply: setting()},
		},
	}, {
		finding: "downstream", load: "40 clients, 20 threads that wait for a backend, which answers 4 requests at a time, each in 1 s",
		world: asking, press: rig.Users(40, slow),
		tries: []try{
			{says: `Look at 127\.0\.0\.1:9000`, did: "the backend answers 20 at a time", apply: func(w *world, _ []string) {
				w.started = func(c *rig.Case, _ *rig.Server) { backend(c, "127.0.0.1", 20) }
			}},
			{says: `More threads only move the wait`, did: "maxThreads=40", apply: setting("maxThreads=40", "minSpareThreads=40"), vain: true},
		},
	}, {
		finding: "downstream", load: "the same with 40 others, whose requests need no backend",
		world: asking, press: rig.Alongside(rig.Users(40, slow), rig.Users(40, "/?ms=10")),
		tries: []try{{
			says: `A timeout on the client, below that of the callers here, frees the threads`, did: "a timeout of 500 ms on the handlers' client",
			press: rig.Alongside(rig.Users(40, fmt.Sprintf("/?to=%d&hold=1000&timeout=500", rig.BackendPort)), rig.Users(40, "/?ms=10")), apply: setting(),
		}},
	}}
}

// portsFree waits until no connection to the backend is in TIME_WAIT: a minute.
func portsFree(c *rig.Case) {
	c.Until("the ports of the last load are free", func() bool { return timeWaits(c, rig.BackendPort) == 0 })
}

// timeWaits are the connections to a port that are in TIME_WAIT (state 06).
func timeWaits(c *rig.Case, to int) int {
	v4, err := os.ReadFile("/proc/self/net/tcp")
	c.Must(err)
	v6, _ := os.ReadFile("/proc/self/net/tcp6") // a JVM's are there
	return strings.Count(string(v4)+string(v6), fmt.Sprintf(":%04X 06 ", to))
}

// elsewhere are requests at a rate from ports outside of the server's range.
func elsewhere(rate int, lasts time.Duration, path string) rig.Load {
	return func(c *rig.Case, _ *rig.Server) demo.Outcomes {
		var t rig.Tally
		var wg sync.WaitGroup
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for range rate * int(lasts.Seconds()) {
			<-tick.C
			wg.Go(func() { t.Add(c.TimedFrom(c.LocalPort(), path)) })
		}
		wg.Wait()
		return t.Sum()
	}
}

// unknownRemedies are about what tcpdiag cannot see: afterwards it has to name it.
func unknownRemedies() []remedy {
	full := world{embedded: true, settings: []string{"port=8080", "maxThreads=100", "maxConnections=60", "acceptCount=70"}}
	press := rig.Besides(60, rig.Get("/?ms=60000"), rig.Arrivals(40, "/?ms=0"))
	return []remedy{{
		finding: "max_connections", load: "limits set in code, which the acceptor shows; 60 clients hold 60 connections and 40 others/s come",
		world: full, press: press,
		tries: []try{{says: `[Rr]aise maxConnections (?:from \d+ )?to (\d+)`, did: "maxConnections=%s", apply: set("maxConnections")}},
	}, {
		finding: "limits_unknown", load: "the same, seen by a user who may not see what the acceptor does",
		unrun: "some looks name max_connections by now, since a full limit shows without rights while connections are taken only as others end",
	}, {
		finding: "not_observable", load: "HTTPS, 10 threads, 40 clients, no registry of MBeans",
		world: world{settings: []string{
			"server.tomcat.threads.max=10", "server.tomcat.mbeanregistry.enabled=false", "management.server.port=8081", "management.server.ssl.enabled=false",
			"server.ssl.key-store=KEYSTORE", "server.ssl.key-store-password=" + rig.KeystorePassword, "server.ssl.key-store-type=PKCS12",
		}},
		press: rig.Users(40, "/hello?ms=1000", func(o *demo.BurstOptions) { o.TLS = rig.Unverified() }),
		tries: []try{{
			says: `(server\.tomcat\.mbeanregistry\.enabled=true)`, did: "%s", after: "max_threads",
			apply: func(w *world, groups []string) { *w = w.with(groups[1]) },
		}},
	}}
}
