package lab

import (
	"os"
	"path/filepath"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// virtual are the experiments of "How many HTTP requests per second can a
// single machine handle?": virtual threads and an open-loop load.
func virtual() []scenario {
	return []scenario{
		{
			name: "D1", load: "virtual threads, 100 clients/s for 12 s, handler 20 ms; connect 5 s, request 5 s",
			run: func(b *scene) {
				b.virtualServer()
				w := b.agent(port)
				r := b.start(demo.BurstOptions{
					Clients: 1200, Rate: 100, Path: hello(20 * time.Millisecond), ConnectTimeout: 5 * time.Second, RequestTimeout: 5 * time.Second,
				}).wait()
				b.clients("%s", r)
				b.Holds(r.ok == 1200, "not all served")
				l := w.worst(port)
				b.said("%s", words(l))
				b.verdict(l, "ok", "")
				b.noPool(l)
				w.conserved()
			},
		},
		{
			name: "D2", load: "virtual threads, half a CPU by cgroup quota, 1200 clients/s for 15 s, handler burns 5 ms of CPU; connect 5 s, request 5 s",
			run: func(b *scene) {
				server := b.virtualServer()
				b.Quota(b.ServerOf(server.PID), "0.5")
				w := b.agent(port)
				r := b.start(demo.BurstOptions{
					Clients: 18_000, Rate: 1200, Path: "/burn?ms=5", ConnectTimeout: 5 * time.Second, RequestTimeout: 5 * time.Second,
				}).wait()
				b.clients("%s", r)
				b.Holds(r.connectTimeout > 0 && r.readTimeout > 0, "there should be connect timeouts and read timeouts")
				l := w.worst(port)
				b.said("%s", words(l))
				b.later(w, port, r, 0)
				b.Holds(l.Verdict.Status == "losing", "status %s, should be losing", l.Verdict.Status)
				b.Holds(l.Verdict.Cause == "cpu_throttled" || l.Verdict.Cause == "cpu_saturated", "cause %q, should name the CPU", l.Verdict.Cause)
				b.Holds(l.Losses.DroppedPackets > 0, "no dropped packets")
				b.noPool(l)
				w.conserved()
				w.counted(port, r)
			},
		},
	}
}

// virtualServer runs on a Java with virtual threads.
func (b *scene) virtualServer() *rig.Tomcat {
	b.Must(os.Setenv("PATH", filepath.Dir(b.Java25())+":"+os.Getenv("PATH")))
	server := b.launch(rig.Limits{}, heap, env("SPRING_THREADS_VIRTUAL_ENABLED=true"))
	b.visit(server, 500, 200) // Tomcat counts no busy threads when they are virtual
	b.Wait(500 * time.Millisecond)
	return server
}

// noPool checks that maxThreads is not spoken of.
func (b *scene) noPool(l *rig.Listener) {
	for _, stage := range append([]string{l.Verdict.Cause}, l.Verdict.Chain...) {
		b.Holds(stage != "max_threads", "max_threads named although the threads are virtual")
	}
	for _, limit := range l.Limits {
		b.Holds(limit.Name != "max_threads", "max_threads among the limits although the threads are virtual")
	}
}

// keepAlive are the experiments of "Spring Boot threads": Locust, 150 users on
// keep-alive connections.
func keepAlive() []scenario {
	return []scenario{
		{
			name: "E1", load: "Locust, 150 users with about 1 s of think time, handler 5 ms, threads 150, then 5; no timeouts",
			run: func(b *scene) {
				many := b.visited(rig.Limits{Threads: 150}, func(l *rig.Listener) { b.mostlyIdle(l) })
				few := b.visited(rig.Limits{Threads: 5, MinSpare: 5}, func(l *rig.Listener) { b.mostlyIdle(l) })
				b.clients("threads 150: %d requests; threads 5: %d", many.Requests, few.Requests)
				b.Holds(near(float64(few.Requests), float64(many.Requests), .05), "threads make a difference")
			},
		},
		{
			name: "E2", load: "Locust, 150 users with about 1 s of think time, handler 5 ms, defaults, then max-connections 100, accept-count 50; no timeouts",
			run: func(b *scene) {
				all := b.visited(rig.Limits{}, func(l *rig.Listener) { b.verdict(l, "ok", "") })
				some := b.visited(rig.Limits{MaxConnections: 100, AcceptCount: 50}, func(l *rig.Listener) {
					b.verdict(l, "saturated", "keep_alive_idle")
					b.Holds(l.Connections.Accepted == 100, "%d accepted, should be 100", l.Connections.Accepted)
					b.Holds(l.AcceptQueue.Length == 50, "%d in the accept queue, should be 50", l.AcceptQueue.Length)
				})
				share := float64(some.Requests) / float64(all.Requests)
				b.clients("all: %d requests of %d users; 100 + 50: %d of %d, %.2f of it", all.Requests, all.UsersAnswered, some.Requests, some.UsersAnswered, share)
				b.Holds(near(share, 2./3, .05), "throughput is %.2f, should be 0.67", share)
				b.Holds(some.UsersAnswered == 100, "%d users were answered, should be 100", some.UsersAnswered)
			},
		},
	}
}

// visited runs Locust on a server of its own and looks once in the middle.
func (b *scene) visited(limits rig.Limits, check func(*rig.Listener)) visits {
	const handler, runtime = 5 * time.Millisecond, 16 * time.Second
	const users = 150
	server := b.server(limits)
	w := b.agent(port)
	v := b.locust(users, handler, runtime, func() {
		l := b.on(b.snapshot(), port)
		b.said("%s", words(l))
		check(l)
	})
	w.counted(port, result{ok: users}) // a connection each, inside or in the queue
	w.end()
	server.Stop()
	b.Holds(v.Failures == 0, "%d requests failed", v.Failures)
	return v
}

func (b *scene) mostlyIdle(l *rig.Listener) {
	b.verdict(l, "ok", "")
	b.Holds(l.Connections.Idle > 120 && l.Connections.InService <= 20, "%d idle, %d in service", l.Connections.Idle, l.Connections.InService)
}
