package diagnosis

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// scenario is a published experiment, or a thing that people confuse, as two
// snapshots of it, and what must be said about it.
type scenario struct {
	name   string
	now    look
	before look // zero: a single snapshot
	change func(*symptoms.Input)

	status model.Status
	cause  model.Cause
	chain  []model.Cause
	// codes are findings that must be there, notCodes such as must not.
	codes, notCodes []string
}

func chainOf(c ...model.Cause) []model.Cause { return c }

const (
	acceptQueue    = model.CauseAcceptQueue
	maxConns       = model.CauseMaxConnections
	threads        = model.CauseMaxThreads
	keepAlive      = model.CauseKeepAliveIdle
	ok             = model.StatusOK
	warning        = model.StatusWarning
	saturated      = model.StatusSaturated
	losing         = model.StatusLosing
	down           = model.StatusDown
	syn            = model.PacketSYN
	ack            = model.PacketACK
	unknownPacket  = model.PacketUnknown
	clampedFinding = "backlog_clamped"
)

func scenarios() []scenario {
	var out []scenario
	for _, group := range [][]scenario{
		scenariosMVC(), scenariosSelfCall(), scenariosMainSettings(), scenariosVirtual(), scenariosThreads(), scenariosConfused(), scenariosStalls(), scenariosUnknown(), scenariosDownstream(), scenariosClaims(), scenariosNetwork(), scenariosUnread(),
	} {
		out = append(out, group...)
	}
	return out
}

// "How many concurrent requests can a single server application handle?"
func scenariosMVC() []scenario {
	a1 := func() look { return tomcat(200, 8192, 100).pool(200).inService(200).waiting(100) }
	a2 := func() look { return tomcat(200, 8192, 100).pool(200).inService(200).waiting(800) }
	a3 := func() look { return tomcat(200, 8192, 100).pool(200).inService(200).waiting(400) }
	a5 := func() look {
		return tomcat(1000, 8192, 100).pool(1000).inService(1000).waiting(7192).queue(101, 4200*time.Millisecond)
	}
	a9 := func() look { return tomcat(1, 1, 1).pool(1).inService(1).queue(2, 400*time.Millisecond) }
	return []scenario{
		{
			name: "A1 300 clients at once, 200 threads", now: a1(), before: a1(),
			status: saturated, cause: threads, chain: chainOf(threads),
		},
		{
			name: "A2 1000 clients, connectionTimeout 20 s", now: a2().do(func(l *model.Listener) {
				l.Connector.ConnectionTimeout = &model.Setting[time.Duration]{Value: 20 * time.Second}
			}), before: a2(),
			status: saturated, cause: threads, chain: chainOf(threads),
		},
		{
			name: "A3 3000 clients, some give up after 60 s", before: a3(),
			now: a3().with(model.ClientClosed, 200).do(func(l *model.Listener) {
				l.Connections.Abandoned = 200
				l.Losses.AbandonedRequests = 200
			}),
			status: saturated, cause: threads, chain: chainOf(threads), codes: []string{"abandoned_requests"},
		},
		{
			name: "A4 6000 clients, 1000 threads", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(1000, 8192, 100).pool(1000).inService(1000).waiting(5000),
			before: tomcat(1000, 8192, 100).pool(1000).inService(1000).waiting(5000),
		},
		{
			name: "A5 10,000 clients, 1000 threads", before: a5(),
			now:    a5().lost(maxConns, syn, 1700).lost(maxConns, unknownPacket, 7),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads), codes: []string{"dropped_packets", "max_threads"},
		},
		{
			name: "A5 the look before lies before the burst", before: tomcat(1000, 8192, 100),
			now:    a5().lost(maxConns, syn, 1700),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "A5 the queue overflowed at first while connections were still free", before: a5(),
			now:    a5().lost(model.CauseSlowAccept, syn, 900).lost(maxConns, syn, 400),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "A2 in the middle of the burst: the queue overflowed, then the threads run out", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue, threads),
			now:    a2().waiting(795).queue(12, 20*time.Millisecond).do(totals(0, 0, 600*time.Millisecond)).lost(model.CauseSlowAccept, syn, 166),
			before: a2().waiting(500).queue(60, 20*time.Millisecond).do(totals(0, 0, 0)), change: minute,
			codes: []string{"max_threads"},
		},
		{
			name: "the same with a bounded executor queue", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue, model.CauseExecutorQueue, threads),
			now:    a2().do(bounded).queue(12, 20*time.Millisecond).do(totals(0, 0, 600*time.Millisecond)).lost(model.CauseSlowAccept, syn, 166),
			before: a2().do(bounded).queue(60, 20*time.Millisecond).do(totals(0, 0, 0)), change: minute,
		},
		{
			name: "the queue overflowed in a pause that is told when it is over", status: losing, cause: model.CauseJVMPause, chain: chainOf(acceptQueue, threads),
			now:    a2().queue(101, 4*time.Second).do(totals(900*time.Millisecond, 0, 0)).lost(model.CauseSlowAccept, syn, 166),
			before: a2().queue(101, 3*time.Second).do(totals(0, 0, 0)), change: minute,
		},
		{
			name: "A6 max-connections 20,000", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(1000, 20000, 100).pool(1000).inService(1000).waiting(9000),
			before: tomcat(1000, 20000, 100).pool(1000).inService(1000).waiting(9000),
		},
		{
			name: "A7 connection-timeout 30 s changes nothing", before: a5(),
			now: a5().lost(maxConns, syn, 1700).do(func(l *model.Listener) {
				l.Connector.ConnectionTimeout = &model.Setting[time.Duration]{Value: 30 * time.Second}
			}),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "A8 accept-count 2000", status: saturated, cause: maxConns, chain: chainOf(maxConns, threads),
			now:      tomcat(1000, 8192, 2000).pool(1000).inService(1000).waiting(7192).queue(1808, 4*time.Second),
			before:   tomcat(1000, 8192, 2000).pool(1000).inService(1000).waiting(7192).queue(1808, 3*time.Second),
			notCodes: []string{clampedFinding},
		},
		{
			name: "A8 accept-count 2000 where somaxconn is 128", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
			now: a5().lost(maxConns, syn, 1679).queue(129, 4*time.Second).do(clampTo(128, 2000)), before: a5().queue(129, 3*time.Second).do(clampTo(128, 2000)),
			change: func(e *symptoms.Input) { e.Sysctl["somaxconn"] = 128 }, codes: []string{clampedFinding},
		},
		{
			name: "A9 threads = max-connections = accept-count = 1, 10 clients", before: a9(),
			now:    a9().lost(maxConns, syn, 14).lost(maxConns, ack, 2),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "A9 accept-count 10", status: saturated, cause: maxConns, chain: chainOf(maxConns, threads),
			now:    tomcat(1, 1, 10).pool(1).inService(1).queue(9, 2*time.Second),
			before: tomcat(1, 1, 10).pool(1).inService(1).queue(9, time.Second),
		},
		{
			name: "A10 15,000 clients, threads 2000, max-connections 50,000, accept-count 5000, 20,000 files", status: saturated, cause: threads, chain: chainOf(threads),
			now: a10().do(files(15060, 20000)), before: a10().do(files(15060, 20000)),
			codes: []string{clampedFinding, "open_files_below_max_connections"},
		},
		{
			name: "A10 the file limit comes first", status: saturated, cause: threads, chain: chainOf(threads),
			now: a10().waiting(15000).do(files(17060, 20000)), before: a10().do(files(15060, 20000)),
			codes: []string{clampedFinding, "open_files_below_max_connections", "forecast_open_files"},
		},
	}
}

func a10() look {
	return tomcat(2000, 50000, 4096).pool(2000).inService(2000).waiting(13000).do(clampTo(4096, 5000))
}

// clampTo is a listener with less backlog in force than was configured.
func clampTo(limit, configured int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.AcceptQueue.Limit = limit
		l.Connector.AcceptCount.Value = configured
	}
}

func files(used, most int) func(*model.Listener) {
	return func(l *model.Listener) { l.Process.OpenFiles, l.Process.OpenFilesLimit = new(used), new(most) }
}

func ports(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Process.Busiest = &model.Destination{Address: netip.MustParseAddrPort("127.0.0.1:8080"), Ports: n}
	}
}

// "Tomcat is able to handle more than 13,000 concurrent connections": a
// servlet that calls itself.
func scenariosSelfCall() []scenario {
	b := func(calls, used, most int) look {
		return tomcat(20000, 20000, 100).pool(calls).inService(calls).do(files(used, most))
	}
	return []scenario{
		{
			name: "B1 nofile 1024, 400 calls", now: b(400, 860, 1024), before: b(390, 840, 1024),
			status: warning, cause: model.CauseOpenFiles,
		},
		{
			name: "B1 nofile 1024, 490 calls", now: b(482, 1024, 1024).queue(30, 900*time.Millisecond), before: b(482, 1023, 1024).queue(12, 300*time.Millisecond),
			status: saturated, cause: model.CauseOpenFiles, chain: chainOf(model.CauseOpenFiles),
		},
		{
			name: "B1 nofile 1024, the queue overflows", before: b(482, 1023, 1024).queue(101, time.Second),
			now:    b(482, 1024, 1024).queue(101, 2*time.Second).lost(model.CauseOpenFiles, syn, 60),
			status: losing, cause: model.CauseOpenFiles, chain: chainOf(acceptQueue, model.CauseOpenFiles),
		},
		{name: "B2 nofile 32,768", now: b(2000, 4100, 32768), before: b(2000, 4100, 32768), status: ok},
		{
			name: "B3 outgoing connections at 24,000", now: b(12000, 24100, 1048576).do(ports(24000)), before: b(11900, 23900, 1048576).do(ports(23800)),
			status: warning, cause: model.CauseEphemeralPorts,
		},
		{
			name: "B3 the ports are used up", now: b(14116, 28400, 1048576).do(ports(28232)), before: b(14116, 28400, 1048576).do(ports(28232)),
			status: warning, cause: model.CauseEphemeralPorts, chain: chainOf(model.CauseEphemeralPorts),
		},
	}
}

// "Tomcat: main settings and tests".
func scenariosMainSettings() []scenario {
	c3 := func() look { return tomcat(200, 1, 1).inService(1).queue(2, 900*time.Millisecond) }
	c4 := func(conns int) look {
		return tomcat(2, conns, 1).pool(2).inService(2).waiting(conns-2).queue(2, time.Second)
	}
	return []scenario{
		{
			name: "C1 maxThreads 1", status: saturated, cause: threads, chain: chainOf(threads),
			now: tomcat(1, 8192, 100).pool(1).inService(1).waiting(4), before: tomcat(1, 8192, 100).pool(1).inService(1).waiting(4),
		},
		{
			name: "C2 maxConnections 1", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now: tomcat(200, 1, 100).inService(1).queue(4, 2*time.Second), before: tomcat(200, 1, 100).inService(1).queue(4, time.Second),
		},
		{
			name: "C3 maxConnections 1, acceptCount 1, 5 requests", before: c3().queue(2, 0),
			now:    c3().lost(maxConns, syn, 4).do(func(l *model.Listener) { l.Losses.WorstCase = []string{SeenConnectTimeout} }),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "C3 with tcp_abort_on_overflow=1", before: c3().queue(2, 0), now: c3().lost(maxConns, ack, 2),
			change: func(e *symptoms.Input) { e.Sysctl["tcp_abort_on_overflow"] = 1 },
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns), codes: []string{"abort_on_overflow"},
		},
		{
			name: "C4 maxThreads 2, maxConnections 3, acceptCount 1", now: c4(3), before: c4(3).queue(2, 0),
			status: saturated, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "C4 maxThreads 2, maxConnections 4, acceptCount 1", now: c4(4), before: c4(4).queue(2, 0),
			status: saturated, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "C5 5000 clients, 400 threads", status: saturated, cause: threads, chain: chainOf(threads),
			now: tomcat(400, 8192, 100).pool(400).inService(400).waiting(3000), before: tomcat(400, 8192, 100).pool(400).inService(400).waiting(3400),
		},
	}
}

func virtual(l *model.Listener) {
	l.Connector.VirtualThreads = &model.Setting[bool]{Value: true}
	l.Connector.PoolThreads = nil
}

// totals is a process after a second with a CPU of its own, less what a CPU
// limit has taken away from it in each of ten periods.
func totals(safepoint, throttled, delay time.Duration) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Process.SafepointTime, l.Process.RunDelay = new(safepoint), new(delay)
		cpu(0, 0, 0, 0)(l)
		if throttled > 0 {
			cpu(throttled, max(0, time.Second-throttled), 10, 10)(l)
		}
	}
}

// cpu are the totals of a cgroup: what its CPU limit kept back, summed over CPUs,
// what it got, and the periods.
func cpu(kept, used time.Duration, throttled, periods uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Process.CPUThrottled, l.Process.CPUUsed = new(kept), new(used)
		l.Process.CPUPeriodsThrottled, l.Process.CPUPeriods = new(throttled), new(periods)
	}
}

// "How many HTTP requests per second can a single machine handle?": virtual
// threads on one CPU.
func scenariosVirtual() []scenario {
	d2 := func() look {
		return tomcat(200, 8192, 100).do(virtual).inService(4200).waiting(900).with(model.ClientClosed, 700).queue(101, 1500*time.Millisecond).do(totals(0, 0, 0))
	}
	return []scenario{
		{
			name: "D1 moderate load, virtual threads", status: ok, now: tomcat(200, 8192, 100).do(virtual).inService(450), before: tomcat(200, 8192, 100).do(virtual).inService(430),
			notCodes: []string{"max_threads"},
		},
		{
			name: "D2 4000 requests/s on one CPU", before: d2(),
			now: d2().do(totals(20*time.Millisecond, 0, 2600*time.Millisecond)).lost(model.CauseCPUSaturated, syn, 3200).do(func(l *model.Listener) {
				l.Losses.AbandonedRequests = 510
			}),
			status: losing, cause: model.CauseCPUSaturated, chain: chainOf(acceptQueue), codes: []string{"abandoned_requests", "dropped_packets"}, notCodes: []string{"max_threads"},
		},
		{
			name: "D2 half a CPU by quota on a machine with two", before: d2(),
			now: d2().do(totals(0, 0, 9*time.Second)).do(cpu(1480*time.Millisecond, 500*time.Millisecond, 10, 10)).do(func(l *model.Listener) { l.Process.CPULimit = new(.5) }).
				lost(model.CauseCPUThrottled, syn, 3200),
			status: losing, cause: model.CauseCPUThrottled, chain: chainOf(acceptQueue),
		},
		{
			name: "D2 with a CPU limit, and the connections run out", before: d2().inService(7492).waiting(0),
			now:    d2().inService(7492).waiting(0).do(totals(0, 640*time.Millisecond, 900*time.Millisecond)).lost(maxConns, syn, 3200),
			status: losing, cause: model.CauseCPUThrottled, chain: chainOf(acceptQueue, maxConns),
		},
	}
}

// "Spring Boot threads": 150 users on keep-alive connections.
func scenariosThreads() []scenario {
	e2 := func(k look) look { return k.inService(8).idle(92).queue(50, 1200*time.Millisecond) }
	short := func(l *model.Listener) {
		l.Connector.KeepAliveTimeout = &model.Setting[time.Duration]{Value: time.Minute}
	}
	return []scenario{
		{name: "E1 150 users, 150 threads", now: tomcat(150, 8192, 100).pool(20).inService(4).idle(146), before: tomcat(150, 8192, 100).pool(20).inService(5).idle(145), status: ok},
		{name: "E1 150 users, 5 threads", now: tomcat(5, 8192, 100).pool(5).inService(2).idle(147).waiting(1), before: tomcat(5, 8192, 100).pool(5).inService(3).idle(146).waiting(1), status: ok},
		{
			name: "E2 max-connections 100, accept-count 50", now: e2(tomcat(200, 100, 50)).do(short), before: e2(tomcat(200, 100, 50)),
			status: saturated, cause: keepAlive, chain: chainOf(maxConns),
		},
		{
			name: "E2 with 200 users: the queue overflows", status: losing, cause: keepAlive, chain: chainOf(acceptQueue, maxConns),
			now: e2(tomcat(200, 100, 50)).queue(51, 2*time.Second).lost(keepAlive, syn, 90), before: e2(tomcat(200, 100, 50)).queue(51, time.Second),
		},
		{
			name: "all connections idle, nobody waits", now: tomcat(200, 100, 50).idle(100), before: tomcat(200, 100, 50).idle(100), status: ok,
		},
	}
}
