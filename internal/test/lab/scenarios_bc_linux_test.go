package lab

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
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
			run: func(b *scene) {
				server := b.selfCaller(1024)
				w := b.agent(port)
				calm := b.deep(420, 4*time.Second)
				l := w.until(8*time.Second, "a warning before it happens", func(l rig.Listener) bool {
					return l.Verdict.Status == "warning" && l.Verdict.Cause == "open_files"
				})
				b.said("420 deep: %s, %s", words(l), files(l))
				b.Holds(calm.wait().ok == 1, "420 deep: not served")
				b.idle(server)
				r := b.deep(600, 3*time.Second).wait()
				b.Holds(r.ok == 0, "600 deep: served")
				b.clients("420 deep: ok; 600 deep: %d failed (Too many open files)", r.other+r.reset)
				b.Wait(time.Second)
				l = w.worst(port)
				b.said("worst: %s, %s", words(l), files(l))
				b.Holds(l.Connections.Accepted < 1000, "%d connections: not far below maxConnections", l.Connections.Accepted)
			},
		},
		{
			name: "B2", load: "600 deep with 4096 files; no timeouts",
			run: func(b *scene) {
				b.selfCaller(4096)
				w := b.agent(port)
				r := b.deep(600, 3*time.Second).wait()
				b.clients("%s", r)
				b.Holds(r.ok == 1, "not served")
				b.Wait(time.Second)
				for _, l := range w.on(port) {
					b.Holds(l.Verdict.Cause != "open_files", "still says open_files")
				}
				l := w.worst(port)
				b.said("%s, %s", words(l), files(l))
				b.Holds(l.Verdict.Status == "ok", "status %s, should be ok", l.Verdict.Status)
			},
		},
		{
			name: "B3", load: "450, then 600 deep with 500 ephemeral ports; no timeouts",
			sysctl: map[string]string{"net.ipv4.ip_local_port_range": "32768 33267"},
			run: func(b *scene) {
				server := b.selfCaller(4096)
				w := b.agent(port)
				b.Wait(reuse)
				calm := b.deep(450, 10*time.Second) // outgoing connections are read every 5 s
				l := w.until(12*time.Second, "a warning before it happens", func(l rig.Listener) bool {
					return l.Verdict.Status == "warning" && l.Verdict.Cause == "ephemeral_ports"
				})
				b.said("450 deep: %s [%s]", words(l), codes(l))
				b.Holds(calm.wait().ok == 1, "450 deep: %s", calm.result())
				b.idle(server)
				b.Wait(reuse)
				r := b.deep(600, 3*time.Second).wait()
				b.Holds(r.ok == 0, "600 deep: served")
				b.clients("450 deep: ok; 600 deep: %d failed (Cannot assign requested address)", r.other+r.reset)
				b.Wait(1500 * time.Millisecond)
				l = w.worst(port)
				b.said("worst: %s", words(l))
				b.verdict(l, "warning", "ephemeral_ports")
			},
		},
	}
}

func (b *scene) selfCaller(files uint64) *rig.Tomcat {
	server := b.server(rig.Limits{Threads: 1000}, heap)
	b.Must(limitFiles(server.PID, files))
	return server
}

// deep is one client whose request makes the server call itself so often.
func (b *scene) deep(calls int, wait time.Duration) *crowd {
	return b.start(demo.BurstOptions{Clients: 1, Path: fmt.Sprintf("/nested?depth=%d&ms=%d", calls, wait.Milliseconds())})
}

func files(l *rig.Listener) string {
	if l.Process == nil || l.Process.OpenFiles == nil || l.Process.OpenFilesLimit == nil {
		return "files n/a"
	}
	return fmt.Sprintf("files %d/%d", *l.Process.OpenFiles, *l.Process.OpenFilesLimit)
}

// settingsHandler is how long the requests of the experiments with settings take.
const settingsHandler = 3 * time.Second

// patient are clients of theirs that wait.
func patient() demo.BurstOptions {
	return demo.BurstOptions{Clients: 5, Rate: 100, Path: hello(settingsHandler), ConnectTimeout: 10 * time.Second, RequestTimeout: time.Minute}
}

// settings are the experiments of "Tomcat: main settings and tests": a handler
// that sleeps 3 s.
func settings() []scenario {
	return []scenario{
		{
			name: "C1", load: "5 clients, maxThreads 1, handler 3 s; connect 10 s, request 60 s",
			run: c1,
		},
		{
			name: "C2", load: "5 clients, maxConnections 1, handler 3 s; connect 10 s, request 60 s",
			run: c2,
		},
		{
			name: "C3", load: "5 clients in 50 ms, maxConnections 1, acceptCount 1, handler 3 s; connect 900 ms, request 30 s",
			run: c3,
		},
		{
			name: "C3-abort", load: "20 clients at once, maxConnections 1, acceptCount 1, tcp_abort_on_overflow 1, handler 800 ms; connect 10 s, request 30 s: the SYNs repeated after 1 s arrive together",
			sysctl: map[string]string{"net.ipv4.tcp_abort_on_overflow": "1"},
			run:    c3Abort,
		},
		eachStage(3), eachStage(4),
		{
			name: "C5-200", load: "5000 clients in 2 s, threads 200, handler 600 ms (a fifth of 3 s); connect 10 s, request 10.7 s",
			run: c5200,
		},
		{
			name: "C5-400", load: "C5 with threads 400",
			run: c5400,
		},
	}
}

// eachStage is C4: each stage holds exactly what it should.
func eachStage(connections int) scenario {
	return scenario{
		name: fmt.Sprintf("C4-%d", connections),
		load: fmt.Sprintf("10 clients in 250 ms, maxThreads 2, maxConnections %d, acceptCount 1, handler 3 s; connect 900 ms, request 30 s", connections),
		run: func(b *scene) {
			limits := rig.Limits{Threads: 2, MaxConnections: connections, AcceptCount: 1}
			b.server(limits, env("TOMCAT_MIN_SPARE_THREADS=2"))
			p := b.plan(load{
				Limits: limits, requests: 10, service: 3 * time.Second, connect: 900 * time.Millisecond,
				client: 30 * time.Second, fromConnect: true, spread: 250 * time.Millisecond,
			})
			w := b.agent(port)
			crowd := b.start(demo.BurstOptions{
				Clients: 10, Rate: 40, Path: hello(3 * time.Second), ConnectTimeout: 900 * time.Millisecond, RequestTimeout: 30 * time.Second,
			})
			b.Within(2500*time.Millisecond, "the others are turned away", func() bool {
				return crowd.result().connectTimeout == 10-connections-2
			})
			b.Wait(300 * time.Millisecond)
			l := b.on(b.snapshot("--port", decimal(port), "--interval", "0"), port)
			b.stages(l, 2, connections-2, 2)
			r := crowd.wait()
			b.clients("%s", r)
			b.Holds(r.ok == connections+2, "%d ok, should be %d", r.ok, connections+2)
			worst := w.worst(port)
			b.said("%s", words(worst))
			b.verdict(worst, "losing", "max_connections", full()...)
			b.capacity(worst, connections+2)
			b.agrees(p, r)
			w.conserved()
		},
	}
}

func (b *scene) fiveThousand(threads int) (result, plan, *rig.Listener) {
	const handler, timeout, spread = 600 * time.Millisecond, 10700 * time.Millisecond, 2 * time.Second
	limits := rig.Limits{Threads: threads}
	b.roomy(limits)
	p := b.plan(load{
		Limits: limits, requests: 5000, service: handler, connect: 10 * time.Second,
		client: timeout, fromConnect: true, spread: spread,
	})
	w := b.agent(port)
	b.Wait(time.Second)
	midway := w.midway(3*time.Second, port)
	r := b.start(demo.BurstOptions{
		Clients: 5000, Rate: 2500, Path: hello(handler), ConnectTimeout: 10 * time.Second, RequestTimeout: timeout,
	}).wait()
	b.clients("%s", r)
	b.Wait(time.Second)
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
