package lab

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// a1 is A1.
func a1(b *scene) {
	server := b.server(rig.Limits{})
	p := b.plan(load{requests: 300, service: 5 * time.Second, connect: k6Connect, client: time.Minute})
	l, _, r := b.underK6(server, users{n: 300, handler: 5 * time.Second, timeout: time.Minute})
	b.Holds(r.ok == 300, "not all 300 served")
	b.verdict(l, "saturated", "max_threads", "max_threads")
	b.stages(l, 200, 100, 0)
	b.capacity(l, 8293)
	b.agrees(p, r)
}

// a2 is A2.
func a2(b *scene) {
	server := b.server(rig.Limits{}, env("TOMCAT_CONNECTION_TIMEOUT=4s"))
	b.plan(load{requests: 1000, service: time.Second, connect: k6Connect, client: time.Minute})
	l, _, r := b.underK6(server, users{n: 1000, handler: time.Second, timeout: time.Minute})
	b.Holds(r.ok == 1000, "not all 1000 served")
	b.Holds(r.wall > 4500*time.Millisecond, "over before connectionTimeout could have mattered")
	b.verdict(l, "saturated", "max_threads", "max_threads")
}

// a3 is A3.
func a3(b *scene) {
	r := b.fifteenRounds(time.Second)
	p := b.plan(fifteenRounds(r.spread, time.Minute))
	b.planText += smallest(p)
	b.agrees(p, r)
}

// a3Once is A3-once.
func a3Once(b *scene) {
	r := b.fifteenRounds(0)
	sooner := b.plan(fifteenRounds(r.spread, time.Minute-tie))
	later := b.plan(fifteenRounds(r.spread, time.Minute+tie))
	b.planText += fmt.Sprintf("; with a client timeout of %s and of %s", time.Minute-tie, time.Minute+tie)
	b.Holds(sooner.Outcomes.Served < later.Outcomes.Served, "plan sees no tie")
	b.Holds(r.ok >= sooner.Outcomes.Served && r.ok <= later.Outcomes.Served,
		"plan: %d to %d served, the clients had %d", sooner.Outcomes.Served, later.Outcomes.Served, r.ok)
}

// a4500 is A4-500.
func a4500(b *scene) {
	limits := rig.Limits{Threads: 500}
	server := b.roomy(limits)
	l, _, r := b.underK6(server, users{n: 6000, handler: time.Second, timeout: 9 * time.Second})
	p := b.plan(load{Limits: limits, requests: 6000, service: time.Second, connect: k6Connect, client: 9 * time.Second, spread: r.spread})
	b.Holds(r.readTimeout > 0, "no read timeouts")
	b.Holds(p.Outcomes.ReadTimeout > 0, "plan predicts no read timeouts")
	b.Holds(l.Verdict.Cause == "max_threads", "cause %q, should be max_threads", l.Verdict.Cause)
}

// a5K6 is A5-k6.
func a5K6(b *scene) {
	limits := rig.Limits{Threads: 1000}
	server := b.roomy(limits)
	_, l, r := b.underK6(server, users{n: 10_000, handler: 5 * time.Second, timeout: time.Minute})
	b.plan(load{Limits: limits, requests: 10_000, service: 5 * time.Second, connect: k6Connect, client: time.Minute, spread: r.spread})
	b.verdict(l, "losing", "max_connections", full()...)
	b.capacity(l, 8293)
}

// a5 is A5.
func a5(b *scene) {
	limits := rig.Limits{Threads: 1000}
	p, l, r := b.burst10k(limits, limits)
	b.verdict(l, "losing", "max_connections", full()...)
	b.capacity(l, 8293)
	b.agrees(p, r)
}

// a6 is A6.
func a6(b *scene) {
	b.enough(10_000, rig.Limits{Threads: 1000, MaxConnections: 20_000}, time.Second, time.Minute)
}

// a7 is A7.
func a7(b *scene) {
	server := b.roomy(rig.Limits{Threads: 1000}, env("TOMCAT_CONNECTION_TIMEOUT=30s"))
	l, r := b.turnedAway(server)
	b.Holds(near(float64(r.connectTimeout), 1707, outcomeSlack), "%d connect timeouts, should be 1707", r.connectTimeout)
	b.verdict(l, "losing", "max_connections", full()...)
	b.capacity(l, 8293)
}

// a8 is A8.
func a8(b *scene) {
	limits := rig.Limits{Threads: 1000, AcceptCount: 2000}
	p, l, r := b.burst10k(limits, limits)
	b.Holds(r.ok == 10_000, "not all served")
	b.Holds(l.Losses.DroppedPackets == 0, "%d packets dropped, should be none", l.Losses.DroppedPackets)
	b.verdict(l, "saturated", "max_connections", "max_connections", "max_threads")
	b.capacity(l, 10_193)
	b.agrees(p, r)
}

// a8Clamped is A8-clamped.
func a8Clamped(b *scene) {
	limits := rig.Limits{Threads: 1000, AcceptCount: 2000}
	server := b.roomy(limits)
	p := b.plan(load{
		Limits: limits, requests: 10_000, service: 5 * time.Second, connect: 900 * time.Millisecond,
		client: time.Minute, spread: 2500 * time.Millisecond, somaxconn: 1000,
	})
	l, r := b.turnedAway(server)
	b.Holds(finds(l, "backlog_clamped"), "no finding backlog_clamped")
	b.Holds(near(float64(p.Outcomes.ConnectTimeout), float64(r.connectTimeout), outcomeSlack), "plan: %d connect timeouts, the clients had %d", p.Outcomes.ConnectTimeout, r.connectTimeout)
	b.Holds(l.Verdict.Status == "losing", "status %s, should be losing", l.Verdict.Status)
	b.Holds(l.Verdict.Cause == "max_connections" || l.Verdict.Cause == "backlog_clamped", "cause %q", l.Verdict.Cause)
	b.capacity(l, 9193)
}

// a9K6 is A9-k6.
func a9K6(b *scene) {
	limits := rig.Limits{Threads: 1, MinSpare: 1, MaxConnections: 1, AcceptCount: 1}
	server := b.server(limits)
	_, l, r := b.underK6(server, users{n: 10, handler: 5 * time.Second, timeout: time.Minute})
	limits.MinSpare = 0
	b.plan(load{Limits: limits, requests: 10, service: 5 * time.Second, connect: k6Connect, client: time.Minute, spread: r.spread})
	b.verdict(l, "losing", "max_connections", full()...)
	b.capacity(l, 3)
}

// a9 is A9.
func a9(b *scene) {
	l := b.ten(1, 100*time.Millisecond, 400*time.Millisecond, result{ok: 3, connectTimeout: 7})
	b.verdict(l, "losing", "max_connections")
	b.capacity(l, 3)
}

// a910 is A9-10.
func a910(b *scene) {
	l := b.ten(10, 100*time.Millisecond, 400*time.Millisecond, result{ok: 10})
	b.verdict(l, "saturated", "max_connections")
	b.Holds(l.Losses == nil || l.Losses.DroppedPackets == 0, "packets dropped")
	b.capacity(l, 12)
}
