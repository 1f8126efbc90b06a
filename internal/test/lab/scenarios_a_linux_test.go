package lab

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// k6 gives up connecting after 30 s; that is not to be changed.
const k6Connect = 30 * time.Second

// full is the chain of a server with every stage full.
func full() []string { return []string{"accept_queue", "max_connections", "max_threads"} }

// concurrent are the experiments of "How many concurrent requests can a single
// server application handle?": threads 200, max-connections 8192,
// accept-count 100 unless said otherwise, and a handler that sleeps.
func concurrent() []scenario {
	return []scenario{
		{
			name: "A1", load: "k6, 300 VUs, handler 5 s; connect 30 s, request 60 s",
			run: a1,
		},
		{
			name: "A2", load: "k6, 1000 VUs, handler 1 s, connectionTimeout 4 s (a fifth of 5 s and 20 s); connect 30 s, request 60 s",
			run: a2,
		},
		{
			name: "A3", load: "k6, 3000 VUs within 1 s, handler 5 s; connect 30 s, request 60 s",
			run: a3,
		},
		{
			name: "A3-once", load: "k6, A3 all at the same moment: a tie, as the twelfth round of 5 s ends when the clients' 60 s do",
			run: a3Once,
		},
		{
			name: "A3-500", load: "k6, 3000 VUs, threads 500, handler 1 s; connect 30 s, request 12 s (a fifth)",
			run: func(b *scene) { b.enough(3000, rig.Limits{Threads: 500}, time.Second, 12*time.Second) },
		},
		{
			name: "A4-500", load: "k6, 6000 VUs, threads 500, handler 1 s; connect 30 s, request 9 s (less than a fifth: at 12 s the last round would be a tie)",
			run: a4500,
		},
		{
			name: "A4-1000", load: "k6, 6000 VUs, threads 1000, handler 1 s; connect 30 s, request 9 s",
			run: func(b *scene) { b.enough(6000, rig.Limits{Threads: 1000}, time.Second, 9*time.Second) },
		},
		{
			name: "A5-k6", load: "k6, 10,000 VUs, threads 1000, handler 5 s; connect 30 s, request 60 s: the kernel repeats the SYNs", limit: 4 * time.Minute,
			run: a5K6,
		},
		{
			name: "A5", load: "10,000 clients in 2.5 s, threads 1000, handler 5 s; connect 900 ms, request 60 s", limit: 4 * time.Minute,
			run: a5,
		},
		{
			name: "A6", load: "k6, 10,000 VUs, threads 1000, max-connections 20,000, handler 1 s; connect 30 s, request 60 s", limit: 4 * time.Minute,
			run: a6,
		},
		{
			name: "A7", load: "A5 with connection-timeout 30 s, ended when the connect timeouts are over", limit: 4 * time.Minute,
			run: a7,
		},
		{
			name: "A8", load: "A5 with accept-count 2000; connect 900 ms, request 60 s",
			run: a8,
		},
		{
			name: "A8-clamped", load: "A8 with somaxconn 1000, ended when the connect timeouts are over; connect 900 ms",
			sysctl: map[string]string{"net.core.somaxconn": "1000"},
			run:    a8Clamped,
		},
		{
			name: "A9-k6", load: "k6, 10 VUs, threads = max-connections = accept-count = 1, handler 5 s; connect 30 s, request 60 s",
			run: a9K6,
		},
		{
			name: "A9", load: "10 clients in 100 ms, threads = max-connections = accept-count = 1, handler 500 ms; connect 400 ms, request 30 s",
			run: a9,
		},
		{
			name: "A9-patient", load: "A9, all at once and with a connect timeout of 2 s: the SYNs repeated after 1 s arrive together",
			run: func(b *scene) { b.ten(1, 0, 2*time.Second, result{ok: 10}) },
		},
		{
			name: "A9-10", load: "A9 with accept-count 10; connect 400 ms, request 30 s",
			run: a910,
		},
		{
			name:   "A10", // a tenth of everything: 15,000 clients would need 20,000 open files on either side
			load:   "a tenth: 1500, then 2500 clients; threads 200, max-connections 5000, accept-count 500, somaxconn 410, 2000 files, 2824 ports; handler 5 s; connect 900 ms, request 60 s",
			sysctl: map[string]string{"net.core.somaxconn": "410", "net.ipv4.ip_local_port_range": "32768 35591"},
			run:    tenth,
		},
	}
}

// smallest says which settings would serve all.
func smallest(p plan) string {
	return "; least threads for all: " + decimal(p.Smallest.Threads)
}

// fifteenRounds is what it takes 200 threads to serve 3000 clients.
func fifteenRounds(within, timeout time.Duration) load {
	return load{requests: 3000, service: 5 * time.Second, connect: k6Connect, client: timeout, spread: within}
}

// tie is how far around the client's timeout a plan is asked for where rounds
// of requests end with it.
const tie = 600 * time.Millisecond

func (b *scene) fifteenRounds(within time.Duration) result {
	server := b.roomy(rig.Limits{})
	l, _, r := b.underK6(server, users{n: 3000, handler: 5 * time.Second, timeout: time.Minute, within: within})
	b.Holds(r.readTimeout > 0, "no read timeouts")
	b.verdict(l, "saturated", "max_threads", "max_threads")
	b.Holds(l.AcceptQueue.Length == 0, "%d in the accept queue, should be none", l.AcceptQueue.Length)
	return r
}

// underK6 lets virtual users loose on the server and returns what a snapshot
// said when the load had come, and the agent at its worst.
func (b *scene) underK6(server *rig.Tomcat, u users) (now, worst *rig.Listener, r result) {
	const patience = 20 * time.Second
	w := b.agent(server.Port)
	b.Wait(time.Second)
	midway := w.midway(2*time.Second+u.within+time.Duration(u.n)*time.Second/5000, server.Port)
	r = b.k6(u)
	b.clients("%s, started within %.1f s", r, r.spread.Seconds())
	b.Wait(time.Second)
	now, worst = midway(), w.settled(server.Port)
	b.said("midway: %s", words(now))
	b.later(w, server.Port, r, patience)
	w.conserved()
	w.counted(server.Port, r)
	if r.ok+r.readTimeout == u.n && worst.Verdict.Cause != "max_connections" {
		w.onlyHurried(worst)
	}
	return now, worst, r
}

// later checks that clients that gave up were seen: closed by the client while
// their request waits, then abandoned.
//
// Whether they had given up or only half-closed shows when the server comes to
// their requests; patience is how long to wait for that.
func (b *scene) later(w *watch, port int, r result, patience time.Duration) {
	if r.readTimeout == 0 {
		return
	}
	for end := time.Now().Add(patience); time.Now().Before(end); b.Wait(lookEvery) {
		looks := w.on(port)
		if last := looks[len(looks)-1]; last.Connections != nil && last.Connections.Accepted == 0 {
			b.Wait(time.Second)
			break
		}
	}
	closed, abandoned := 0, 0
	for _, l := range w.on(port) {
		if l.Connections != nil {
			closed = max(closed, l.Connections.ClientClosed)
		}
		if l.Losses != nil {
			abandoned = max(abandoned, l.Losses.AbandonedRequests)
		}
	}
	b.said("up to %d client_closed, %d abandoned", closed, abandoned)
	b.Holds(closed > 0 && abandoned > 0, "no connection seen as client_closed, or no request as abandoned")
}

// enough runs a load under which nobody fails.
func (b *scene) enough(vus int, limits rig.Limits, handler, timeout time.Duration) {
	server := b.roomy(limits)
	p := b.plan(load{Limits: limits, requests: vus, service: handler, connect: k6Connect, client: timeout, spread: time.Duration(vus) * time.Second / 4000})
	l, _, r := b.underK6(server, users{n: vus, handler: handler, timeout: timeout})
	b.Holds(r.ok == vus, "not all served")
	b.Holds(p.Outcomes.Served == vus, "plan: not all served")
	b.verdict(l, "saturated", "max_threads", "max_threads")
}

// tenThousand come in 2.5 s, so that the acceptor has a chance and the first
// are still being served when the last come.
func tenThousand() demo.BurstOptions {
	return demo.BurstOptions{
		Clients: 10_000, Rate: 4000, Path: hello(5 * time.Second),
		ConnectTimeout: 900 * time.Millisecond, RequestTimeout: time.Minute,
	}
}

// burst10k compares 10,000 clients with the plan.
func (b *scene) burst10k(limits, planned rig.Limits) (plan, *rig.Listener, result) {
	server := b.roomy(limits)
	p := b.plan(load{
		Limits: planned, requests: 10_000, service: 5 * time.Second, connect: 900 * time.Millisecond,
		client: time.Minute, fromConnect: true, spread: 2500 * time.Millisecond,
	})
	w := b.agent(server.Port)
	b.Wait(time.Second)
	midway := w.midway(2300*time.Millisecond, server.Port)
	r := b.start(tenThousand()).wait()
	b.clients("%s", r)
	l, now := w.settled(server.Port), midway()
	if l.Verdict.Status != "losing" {
		b.said("midway: %s", words(now))
		l = now
	}
	w.conserved()
	w.counted(server.Port, r)
	return p, l, r
}

// turnedAway lets 10,000 come and leave again once it is clear who got in.
func (b *scene) turnedAway(server *rig.Tomcat) (*rig.Listener, result) {
	w := b.agent(server.Port)
	crowd := b.start(tenThousand())
	b.Wait(4500 * time.Millisecond)
	r := crowd.result()
	r.wall = time.Since(crowd.began)
	b.clients("%d connect timeouts, %d connected", r.connectTimeout, crowd.Now().Open)
	b.Wait(4 * time.Second) // the agent's verdict settles
	l := w.settled(server.Port)
	w.conserved()
	now := crowd.result()
	now.ok += crowd.Now().Open
	w.counted(server.Port, now)
	crowd.leave()
	return l, r
}

// ten is A9 with the own clients.
func (b *scene) ten(acceptCount int, spread, connect time.Duration, want result) *rig.Listener {
	limits := rig.Limits{Threads: 1, MaxConnections: 1, AcceptCount: acceptCount}
	server := b.server(limits, env("TOMCAT_MIN_SPARE_THREADS=1"))
	p := b.plan(load{
		Limits: limits, requests: 10, service: 500 * time.Millisecond, connect: connect,
		client: 30 * time.Second, fromConnect: true, spread: spread,
	})
	w := b.agent(server.Port)
	b.Wait(300 * time.Millisecond)
	o := demo.BurstOptions{Clients: 10, Path: hello(500 * time.Millisecond), ConnectTimeout: connect, RequestTimeout: 30 * time.Second}
	if spread > 0 {
		o.Rate = 10 / spread.Seconds()
	}
	r := b.start(o).wait()
	b.clients("%s", r)
	b.Holds(r.ok == want.ok && r.connectTimeout == want.connectTimeout, "should be %d ok, %d connect timeouts", want.ok, want.connectTimeout)
	b.Wait(1200 * time.Millisecond)
	l := w.worst(server.Port)
	b.said("%s", words(l))
	w.conserved()
	w.counted(server.Port, r)
	b.agrees(p, r)
	return l
}

// tenth asks which comes first, files, ports or maxConnections, and goes there.
func tenth(b *scene) {
	server := b.roomy(rig.Limits{Threads: 200, MaxConnections: 5000, AcceptCount: 500})
	b.Must(limitFiles(server.PID, 2000))
	before := b.on(b.snapshot(), port)
	b.Holds(finds(before, "backlog_clamped"), "no finding backlog_clamped before the load")
	b.Holds(finds(before, "open_files_below_max_connections"), "not said before the load that the files come first")
	b.said("before: %s", codes(before))
	w := b.agent(server.Port)
	o := demo.BurstOptions{
		Clients: 1500, Rate: 1500, Path: hello(time.Second), ConnectTimeout: 900 * time.Millisecond, RequestTimeout: time.Minute,
	}
	r := b.start(o).wait()
	b.clients("1500: %s", r)
	b.Holds(r.ok == 1500, "not all 1500 served")
	b.idle(server)
	o.Clients, o.Path = 2500, hello(5*time.Second)
	crowd := b.start(o)
	l := w.until(15*time.Second, "files run out", func(l rig.Listener) bool { return l.Verdict.Cause == "open_files" })
	b.said("at 2500: %s", words(l))
	b.Wait(2 * time.Second)
	l = w.worst(port)
	b.said("worst: %s", words(l))
	b.verdict(l, "losing", "open_files")
	r = crowd.result()
	b.clients("2500: %d connect timeouts so far, %d connected", r.connectTimeout, crowd.Now().Open)
	crowd.leave()
	w.conserved()
}
