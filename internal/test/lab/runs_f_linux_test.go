package lab

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// f1 is F1.
func f1(b *scene) {
	server := b.server(rig.Limits{Threads: 4, MaxConnections: 100, AcceptCount: 50}, env("TOMCAT_MIN_SPARE_THREADS=4"))
	crowd := b.start(demo.BurstOptions{
		Clients: 20, Rate: 200, Path: hello(2 * time.Second), ConnectTimeout: 10 * time.Second, RequestTimeout: time.Minute,
	})
	b.busy(server, rig.Truth{Busy: 4, Connections: 21})
	l := b.on(b.snapshot(), port)
	b.said("%s: “%s”", words(l), l.Verdict.Summary)
	b.verdict(l, "saturated", "max_threads", "max_threads")
	b.stages(l, 4, 16, 0)
	b.clients("%s", crowd.wait())
}

// f2 is F2.
func f2(b *scene) {
	b.server(rig.Limits{MaxConnections: 10, AcceptCount: 5000})
	before := b.on(b.snapshot(), port)
	b.said("before: limit %d, acceptCount %s, %s", before.AcceptQueue.Limit, setting(before.Connector.AcceptCount), codes(before))
	b.Holds(before.AcceptQueue.Limit == 128, "effective %d, should be 128", before.AcceptQueue.Limit)
	b.Holds(finds(before, "backlog_clamped"), "no finding backlog_clamped")
	w := b.agent(port)
	crowd := b.start(demo.BurstOptions{
		Clients: 200, Rate: 500, Path: hello(3 * time.Second), ConnectTimeout: 900 * time.Millisecond, RequestTimeout: time.Minute,
	})
	b.Within(2500*time.Millisecond, "61 are turned away", func() bool { return crowd.result().connectTimeout == 200-10-129 })
	b.clients("61 connect timeouts, %d connected", crowd.Now().Open)
	b.Wait(time.Second)
	l := w.worst(port)
	b.said("%s", words(l))
	b.Holds(l.Verdict.Status == "losing", "status %s, should be losing", l.Verdict.Status)
	b.Holds(l.Verdict.Cause == "max_connections" || l.Verdict.Cause == "backlog_clamped", "cause %q", l.Verdict.Cause)
	b.Holds(finds(l, "backlog_clamped"), "no finding backlog_clamped under load")
	b.capacity(l, 139)
	w.conserved()
}

// f3 is F3.
func f3(b *scene) {
	b.server(rig.Limits{}, env("TOMCAT_ACCEPT_COUNT=0", "TOMCAT_MAX_CONNECTIONS=-1"))
	l := b.on(b.snapshot(), port)
	c := l.Connector
	b.said("acceptCount %s, maxConnections %s", setting(c.AcceptCount), setting(c.MaxConnections))
	b.Holds(c.AcceptCount != nil && c.AcceptCount.Value == 100, "acceptCount should be 100")
	b.Holds(c.MaxConnections != nil && c.MaxConnections.Value == 8192, "maxConnections should be 8192")
	b.capacity(l, 8293)
	b.clients("none")
}

// f5 is F5.
func f5(b *scene) {
	b.server(rig.Limits{})
	w := b.agent(port, extraPort)
	r := b.start(demo.BurstOptions{Address: "127.0.0.1:" + decimal(extraPort), Clients: 5}).wait()
	b.clients("%s", r)
	b.Holds(r.refused == 5, "should be refused")
	b.Wait(time.Second)
	l := w.worst(extraPort)
	b.said("8443: %s", words(l))
	b.verdict(l, "down", "no_listener")
	w.counted(extraPort, r)
}

// f7 is F7.
func f7(b *scene) {
	b.server(rig.Limits{}, func(o *rig.TomcatOptions) {
		o.ExtraPort, o.ExtraTLS, o.ExtraLimits = extraPort, true, rig.Limits{Threads: 2, MaxConnections: 2, AcceptCount: 1}
	})
	w := b.agent(port, extraPort)
	o := demo.BurstOptions{Clients: 10, Rate: 40, Path: hello(3 * time.Second), ConnectTimeout: 900 * time.Millisecond, RequestTimeout: 30 * time.Second}
	calm := b.start(o)
	o.Address, o.TLS = "127.0.0.1:"+decimal(extraPort), rig.Unverified()
	lost := b.start(o)
	b.clients("8080: %s; 8443: %s", calm.wait(), lost.wait())
	b.Holds(calm.result().ok == 10, "8080: not all served")
	b.Holds(lost.result().connectTimeout == 6, "8443: %d connect timeouts, should be 6", lost.result().connectTimeout)
	quietOne, one := w.worst(port), w.worst(extraPort)
	b.said("8080: %s; 8443: %s", words(quietOne), words(one))
	b.Holds(quietOne.Verdict.Status == "ok" && quietOne.Losses.DroppedPackets == 0, "drops on the wrong connector")
	b.Holds(one.Verdict.Status == "losing" && one.Losses.DroppedPackets >= 6, "no drops on 8443")
	w.conserved()
}

// f9Netns is F9-netns.
func f9Netns(b *scene) {
	server := b.server(rig.Limits{})
	d := b.elsewhere("snapshot", "--output", "json", "--pid", decimal(server.PID))
	l := b.on(d, port)
	b.said("%s in namespace %d: %s", l.Address, d.NetNS[0].ID, words(l))
	b.Holds(l.Address == "[::]:8080", "address %s", l.Address)
	b.verdict(l, "ok", "")
	b.clients("none")
}
