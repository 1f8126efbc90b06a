package main

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/e2e"
)

// reuse is when a port in TIME_WAIT is surely free again (tcp_tw_reuse: after a
// second).
const reuse = 1500 * time.Millisecond

// selfCalling are the experiments of "Tomcat is able to handle more than 13,000
// concurrent connections": a servlet that calls itself, so that each call holds
// both sockets of its connection in one process.
func selfCalling() []scenario {
	return []scenario{
		{
			name: "B1", load: "one client, the servlet calls itself 420, then 600 deep; 1024 files; no timeouts",
			run: func(b *bench) {
				server := b.selfCaller(1024)
				w := b.agent(port)
				calm := b.deep(420, 4*time.Second)
				l := w.until(8*time.Second, "a warning before it happens", func(l e2e.Listener) bool {
					return l.Verdict.Status == "warning" && l.Verdict.Cause == "open_files"
				})
				b.said("420 deep: %s, %s", words(l), files(l))
				b.want(calm.wait().ok == 1, "420 deep: not served")
				b.idle(server)
				r := b.deep(600, 3*time.Second).wait()
				b.want(r.ok == 0, "600 deep: served")
				b.clients("420 deep: ok; 600 deep: %d failed (Too many open files)", r.other+r.reset)
				b.settle(time.Second)
				l = w.worst(port)
				b.said("worst: %s, %s", words(l), files(l))
				b.want(l.Connections.Accepted < 1000, "%d connections: not far below maxConnections", l.Connections.Accepted)
			},
		},
		{
			name: "B2", load: "600 deep with 4096 files; no timeouts",
			run: func(b *bench) {
				b.selfCaller(4096)
				w := b.agent(port)
				r := b.deep(600, 3*time.Second).wait()
				b.clients("%s", r)
				b.want(r.ok == 1, "not served")
				b.settle(time.Second)
				for _, l := range w.on(port) {
					b.want(l.Verdict.Cause != "open_files", "still says open_files")
				}
				l := w.worst(port)
				b.said("%s, %s", words(l), files(l))
				b.want(l.Verdict.Status == "ok", "status %s, should be ok", l.Verdict.Status)
			},
		},
		{
			name: "B3", load: "450, then 600 deep with 500 ephemeral ports; no timeouts",
			sysctl: map[string]string{"net.ipv4.ip_local_port_range": "32768 33267"},
			run: func(b *bench) {
				server := b.selfCaller(4096)
				w := b.agent(port)
				b.settle(reuse)
				calm := b.deep(450, 10*time.Second) // outgoing connections are read every 5 s
				l := w.until(12*time.Second, "a warning before it happens", func(l e2e.Listener) bool {
					return l.Verdict.Status == "warning" && l.Verdict.Cause == "ephemeral_ports"
				})
				b.said("450 deep: %s [%s]", words(l), codes(l))
				b.want(calm.wait().ok == 1, "450 deep: %s", calm.result())
				b.idle(server)
				b.settle(reuse)
				r := b.deep(600, 3*time.Second).wait()
				b.want(r.ok == 0, "600 deep: served")
				b.clients("450 deep: ok; 600 deep: %d failed (Cannot assign requested address)", r.other+r.reset)
				b.settle(1500 * time.Millisecond)
				l = w.worst(port)
				b.said("worst: %s", words(l))
				b.verdict(l, "warning", "ephemeral_ports")
			},
		},
	}
}

func (b *bench) selfCaller(files uint64) *e2e.Tomcat {
	server := b.server(e2e.Limits{Threads: 1000}, heap)
	b.must(limitFiles(server.PID, files))
	return server
}

// deep is one client whose request makes the server call itself so often.
func (b *bench) deep(calls int, wait time.Duration) *crowd {
	return b.start(demo.BurstOptions{Clients: 1, Path: fmt.Sprintf("/nested?depth=%d&ms=%d", calls, wait.Milliseconds())})
}

func files(l *e2e.Listener) string {
	if l.Process == nil || l.Process.OpenFiles == nil || l.Process.OpenFilesLimit == nil {
		return "files n/a"
	}
	return fmt.Sprintf("files %d/%d", *l.Process.OpenFiles, *l.Process.OpenFilesLimit)
}

// settings are the experiments of "Tomcat: main settings and tests": a handler
// that sleeps 3 s.
func settings() []scenario {
	const handler = 3 * time.Second
	patient := demo.BurstOptions{Clients: 5, Rate: 100, Path: hello(handler), ConnectTimeout: 10 * time.Second, RequestTimeout: time.Minute}
	return []scenario{
		{
			name: "C1", load: "5 clients, maxThreads 1, handler 3 s; connect 10 s, request 60 s",
			run: func(b *bench) {
				limits := e2e.Limits{Threads: 1}
				server := b.server(limits, env("TOMCAT_MIN_SPARE_THREADS=1"))
				p := b.plan(load{Limits: limits, requests: 5, service: handler, connect: 10 * time.Second, client: time.Minute})
				w := b.agent(port)
				crowd := b.start(patient)
				b.busy(server, e2e.Truth{Busy: 1, Connections: 6})
				l := b.on(b.snapshot(), port)
				b.said("%s", words(l))
				b.verdict(l, "saturated", "max_threads", "max_threads")
				b.stages(l, 1, 4, 0)
				r := crowd.wait()
				b.clients("%s", r)
				b.agrees(p, r)
				w.conserved()
			},
		},
		{
			name: "C2", load: "5 clients, maxConnections 1, handler 3 s; connect 10 s, request 60 s",
			run: func(b *bench) {
				limits := e2e.Limits{MaxConnections: 1}
				server := b.server(limits)
				p := b.plan(load{Limits: limits, requests: 5, service: handler, connect: 10 * time.Second, client: time.Minute})
				crowd := b.start(patient)
				crowd.connected(5)
				b.busy(server, e2e.Truth{Busy: 1, Connections: 1})
				l := b.on(b.snapshot(), port)
				b.said("%s", words(l))
				b.verdict(l, "saturated", "max_connections", "max_connections")
				b.stages(l, 1, 0, 4)
				r := crowd.wait()
				b.clients("%s", r)
				b.agrees(p, r)
			},
		},
		{
			name: "C3", load: "5 clients in 50 ms, maxConnections 1, acceptCount 1, handler 3 s; connect 900 ms, request 30 s",
			run: func(b *bench) {
				limits := e2e.Limits{MaxConnections: 1, AcceptCount: 1}
				b.server(limits)
				p := b.plan(load{
					Limits: limits, requests: 5, service: handler, connect: 900 * time.Millisecond,
					client: 30 * time.Second, fromConnect: true, spread: 50 * time.Millisecond,
				})
				w := b.agent(port)
				o := patient
				o.ConnectTimeout, o.RequestTimeout = 900*time.Millisecond, 30*time.Second
				r := b.start(o).wait()
				b.clients("%s", r)
				b.want(r.ok == 3 && r.connectTimeout == 2 && r.refused == 0, "should be 3 ok and 2 connect timeouts")
				l := w.worst(port)
				b.said("%s", words(l))
				b.verdict(l, "losing", "max_connections", "accept_queue", "max_connections")
				b.capacity(l, 3)
				b.agrees(p, r)
				w.conserved()
				w.counted(port, r)
			},
		},
		{
			name: "C3-abort", load: "20 clients at once, maxConnections 1, acceptCount 1, tcp_abort_on_overflow 1, handler 800 ms; connect 10 s, request 30 s: the SYNs repeated after 1 s arrive together",
			sysctl: map[string]string{"net.ipv4.tcp_abort_on_overflow": "1"},
			run: func(b *bench) {
				limits := e2e.Limits{MaxConnections: 1, AcceptCount: 1}
				b.server(limits)
				b.plan(load{
					Limits: limits, requests: 20, service: 800 * time.Millisecond, connect: 10 * time.Second,
					client: 30 * time.Second, fromConnect: true, abort: true,
				})
				w := b.agent(port)
				r := b.start(demo.BurstOptions{
					Clients: 20, Path: hello(800 * time.Millisecond), ConnectTimeout: 10 * time.Second, RequestTimeout: 30 * time.Second,
				}).wait()
				b.clients("%s", r)
				b.want(r.reset > 0, "nobody was reset")
				b.want(r.refused == 0, "%d refused", r.refused)
				l := w.worst(port)
				b.said("%s [%s], at worst: %v", words(l), codes(l), l.Losses.WorstCase)
				b.verdict(l, "losing", "max_connections")
				b.want(finds(l, "abort_on_overflow"), "no finding abort_on_overflow")
				w.conserved()
			},
		},
		eachStage(3), eachStage(4),
		{
			name: "C5-200", load: "5000 clients in 2 s, threads 200, handler 600 ms (a fifth of 3 s); connect 10 s, request 10.7 s",
			run: func(b *bench) {
				r, p, l := b.fiveThousand(200)
				b.want(r.readTimeout > 0, "no read timeouts")
				b.agrees(p, r)
				b.row.Plan += smallest(p)
				b.verdict(l, "saturated", "max_threads", "max_threads")
			},
		},
		{
			name: "C5-400", load: "C5 with threads 400",
			run: func(b *bench) {
				r, p, l := b.fiveThousand(400)
				b.want(r.ok == 5000, "not all served")
				b.agrees(p, r)
				b.verdict(l, "saturated", "max_threads", "max_threads")
			},
		},
	}
}

// eachStage is C4: each stage holds exactly what it should.
func eachStage(connections int) scenario {
	return scenario{
		name: fmt.Sprintf("C4-%d", connections),
		load: fmt.Sprintf("10 clients in 250 ms, maxThreads 2, maxConnections %d, acceptCount 1, handler 3 s; connect 900 ms, request 30 s", connections),
		run: func(b *bench) {
			limits := e2e.Limits{Threads: 2, MaxConnections: connections, AcceptCount: 1}
			b.server(limits, env("TOMCAT_MIN_SPARE_THREADS=2"))
			p := b.plan(load{
				Limits: limits, requests: 10, service: 3 * time.Second, connect: 900 * time.Millisecond,
				client: 30 * time.Second, fromConnect: true, spread: 250 * time.Millisecond,
			})
			w := b.agent(port)
			crowd := b.start(demo.BurstOptions{
				Clients: 10, Rate: 40, Path: hello(3 * time.Second), ConnectTimeout: 900 * time.Millisecond, RequestTimeout: 30 * time.Second,
			})
			b.within(2500*time.Millisecond, "the others are turned away", func() bool {
				return crowd.result().connectTimeout == 10-connections-2
			})
			b.settle(300 * time.Millisecond)
			l := b.on(b.snapshot("--port", decimal(port), "--interval", "0"), port)
			b.stages(l, 2, connections-2, 2)
			r := crowd.wait()
			b.clients("%s", r)
			b.want(r.ok == connections+2, "%d ok, should be %d", r.ok, connections+2)
			worst := w.worst(port)
			b.said("%s", words(worst))
			b.verdict(worst, "losing", "max_connections", full()...)
			b.capacity(worst, connections+2)
			b.agrees(p, r)
			w.conserved()
		},
	}
}

func (b *bench) fiveThousand(threads int) (result, plan, *e2e.Listener) {
	const handler, timeout, spread = 600 * time.Millisecond, 10700 * time.Millisecond, 2 * time.Second
	limits := e2e.Limits{Threads: threads}
	b.roomy(limits)
	p := b.plan(load{
		Limits: limits, requests: 5000, service: handler, connect: 10 * time.Second,
		client: timeout, fromConnect: true, spread: spread,
	})
	w := b.agent(port)
	b.settle(time.Second)
	midway := w.midway(3*time.Second, port)
	r := b.start(demo.BurstOptions{
		Clients: 5000, Rate: 2500, Path: hello(handler), ConnectTimeout: 10 * time.Second, RequestTimeout: timeout,
	}).wait()
	b.clients("%s", r)
	b.settle(time.Second)
	l, worst := midway(), w.worst(port)
	b.said("midway: %s", words(l))
	if worst.Verdict.Status == "losing" {
		b.said("worst: %s", words(worst))
	}
	b.later(w, port, r, 10*time.Second)
	w.conserved()
	w.onlyHurried(worst)
	return r, p, l
}
