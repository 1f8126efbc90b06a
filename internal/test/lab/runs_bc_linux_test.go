package lab

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// c1 is C1.
func c1(b *scene) {
	limits := rig.Limits{Threads: 1}
	server := b.server(limits, env("TOMCAT_MIN_SPARE_THREADS=1"))
	p := b.plan(load{Limits: limits, requests: 5, service: settingsHandler, connect: 10 * time.Second, client: time.Minute})
	w := b.agent(port)
	crowd := b.start(patient())
	b.busy(server, rig.Truth{Busy: 1, Connections: 6})
	l := b.on(b.snapshot(), port)
	b.said("%s", words(l))
	b.verdict(l, "saturated", "max_threads", "max_threads")
	b.stages(l, 1, 4, 0)
	r := crowd.wait()
	b.clients("%s", r)
	b.agrees(p, r)
	w.conserved()
}

// c2 is C2.
func c2(b *scene) {
	limits := rig.Limits{MaxConnections: 1}
	server := b.server(limits)
	p := b.plan(load{Limits: limits, requests: 5, service: settingsHandler, connect: 10 * time.Second, client: time.Minute})
	crowd := b.start(patient())
	crowd.connected(5)
	b.busy(server, rig.Truth{Busy: 1, Connections: 1})
	l := b.on(b.snapshot(), port)
	b.said("%s", words(l))
	b.verdict(l, "saturated", "max_connections", "max_connections")
	b.stages(l, 1, 0, 4)
	r := crowd.wait()
	b.clients("%s", r)
	b.agrees(p, r)
}

// c3 is C3.
func c3(b *scene) {
	limits := rig.Limits{MaxConnections: 1, AcceptCount: 1}
	b.server(limits)
	p := b.plan(load{
		Limits: limits, requests: 5, service: settingsHandler, connect: 900 * time.Millisecond,
		client: 30 * time.Second, fromConnect: true, spread: 50 * time.Millisecond,
	})
	w := b.agent(port)
	o := patient()
	o.ConnectTimeout, o.RequestTimeout = 900*time.Millisecond, 30*time.Second
	r := b.start(o).wait()
	b.clients("%s", r)
	b.Holds(r.ok == 3 && r.connectTimeout == 2 && r.refused == 0, "should be 3 ok and 2 connect timeouts")
	l := w.worst(port)
	b.said("%s", words(l))
	b.verdict(l, "losing", "max_connections", "accept_queue", "max_connections")
	b.capacity(l, 3)
	b.agrees(p, r)
	w.conserved()
	w.counted(port, r)
}

// c3Abort is C3-abort.
func c3Abort(b *scene) {
	limits := rig.Limits{MaxConnections: 1, AcceptCount: 1}
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
	b.Holds(r.reset > 0, "nobody was reset")
	b.Holds(r.refused == 0, "%d refused", r.refused)
	l := w.worst(port)
	b.said("%s [%s], at worst: %v", words(l), codes(l), l.Losses.WorstCase)
	b.verdict(l, "losing", "max_connections")
	b.Holds(finds(l, "abort_on_overflow"), "no finding abort_on_overflow")
	w.conserved()
}

// c5200 is C5-200.
func c5200(b *scene) {
	r, p, l := b.fiveThousand(200)
	b.Holds(r.readTimeout > 0, "no read timeouts")
	b.agrees(p, r)
	b.planText += smallest(p)
	b.verdict(l, "saturated", "max_threads", "max_threads")
}

// c5400 is C5-400.
func c5400(b *scene) {
	r, p, l := b.fiveThousand(400)
	b.Holds(r.ok == 5000, "not all served")
	b.agrees(p, r)
	b.verdict(l, "saturated", "max_threads", "max_threads")
}
