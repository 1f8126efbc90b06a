package diagnosis

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What people confuse.
func scenariosConfused() []scenario {
	nothingFor := func(d time.Duration) func(*model.Listener) {
		return func(l *model.Listener) { l.AcceptQueue.NoAcceptFor = &d }
	}
	nio2 := func(l *model.Listener) { l.Connector.Protocol = "http-nio2" }
	atPeer := func(l *model.Listener) {
		l.Process.Downstream = &model.Downstream{
			Workers: &model.Workers{Threads: 6},
			Peers:   []model.Peer{{Address: netip.MustParseAddrPort("10.0.3.7:5432"), Connections: 6, InFlight: 6, Workers: new(6), AllInRow: 2, Mean: time.Second, Oldest: 2 * time.Second}},
		}
	}
	tls := func(l *model.Listener) { l.Connector.TLS, l.Connector.Protocol = true, "https-jsse-nio" }
	return []scenario{
		{
			name: "F1 threads full, accept queue empty", status: saturated, cause: threads, chain: chainOf(threads),
			now: tomcat(20, 8192, 100).pool(20).inService(20).waiting(30), before: tomcat(20, 8192, 100).pool(20).inService(20).waiting(28),
		},
		{
			name: "F2 acceptCount 5000, somaxconn 128", now: tomcat(200, 8192, 5000).do(clampTo(128, 5000)), before: tomcat(200, 8192, 5000).do(clampTo(128, 5000)),
			change: func(e *symptoms.Input) { e.Sysctl["somaxconn"] = 128 },
			status: ok, cause: model.CauseBacklogClamped, codes: []string{clampedFinding},
		},
		{
			name: "acceptCount 5 from an environment that cannot be read, 100 from the jar",
			now:  tomcat(200, 8192, 100).do(clampTo(5, 100)).do(uncertainAcceptCount), before: tomcat(200, 8192, 100).do(clampTo(5, 100)),
			status: ok, notCodes: []string{clampedFinding},
		},
		{
			name: "acceptCount 5000 from the jar, somaxconn in force, the environment cannot be read",
			now:  tomcat(200, 8192, 5000).do(clampTo(128, 5000)).do(uncertainAcceptCount), before: tomcat(200, 8192, 5000).do(clampTo(128, 5000)),
			change: func(e *symptoms.Input) { e.Sysctl["somaxconn"] = 128 },
			status: ok, cause: model.CauseBacklogClamped, codes: []string{clampedFinding},
		},
		{
			name: "F2 a burst meets the clamped queue", before: tomcat(200, 8192, 5000).do(clampTo(128, 5000)),
			now:    tomcat(200, 8192, 5000).do(clampTo(128, 5000)).inService(150).lost(model.CauseSlowAccept, syn, 340),
			change: func(e *symptoms.Input) { e.Sysctl["somaxconn"] = 128 },
			status: losing, cause: model.CauseBacklogClamped, chain: chainOf(acceptQueue), codes: []string{clampedFinding},
		},
		{
			name: "F2 somaxconn was raised after the start", now: tomcat(200, 8192, 5000).do(clampTo(128, 5000)), before: tomcat(200, 8192, 5000).do(clampTo(128, 5000)),
			change: func(e *symptoms.Input) { e.Sysctl["somaxconn"] = 65535 },
			status: ok, cause: model.CauseBacklogClamped, codes: []string{clampedFinding},
		},
		{
			name: "acceptCount lowered in the file after the start", now: tomcat(200, 8192, 100).do(clampTo(100, 50)), before: tomcat(200, 8192, 100).do(clampTo(100, 50)),
			status: ok, codes: []string{"accept_count_changed"},
		},
		{
			name: "F3 accept-count 0 and max-connections -1 in Spring Boot", status: ok,
			now: tomcat(200, 8192, 100).do(func(l *model.Listener) {
				l.Connector.MaxConnections.Note = "max-connections=-1 is ignored by Spring Boot; Tomcat's default stays in force."
				l.Connector.AcceptCount.Note = "accept-count=0 is ignored by Spring Boot; Tomcat's default stays in force."
			}), before: tomcat(200, 8192, 100), codes: []string{"max_connections_note", "accept_count_note"},
		},
		{
			name: "nothing listens here, java does in a container", now: nothing().do(elsewhere), status: warning, cause: model.CauseNoListener,
		},
		{
			name: "nothing listens here, many do in containers, and clients were refused here", status: down, cause: model.CauseNoListener,
			now: nothing().do(elsewhere).do(func(l *model.Listener) { l.Elsewhere.Others = 2 }).do(func(l *model.Listener) { l.Losses = &model.Losses{} }).do(outcome(model.ClientRefused, 17)),
		},
		{
			name: "it did listen here, and another does in a container", status: down, cause: model.CauseNoListener,
			now: nothing().do(elsewhere).do(func(l *model.Listener) {
				l.Last = &model.LastListener{Address: "[::]:8080", Comm: "java", PID: 77, Ago: time.Minute}
			}),
		},
		{
			name: "a graceful shutdown that serves whom it has", status: down, cause: model.CauseNoListener, now: nothing().do(drains),
		},
		{
			name: "a graceful shutdown that serves whom it has, while another listens in a container", status: down, cause: model.CauseNoListener,
			now: nothing().do(drains).do(elsewhere),
		},
		{
			name: "a graceful shutdown that serves whom it has, with clients queued", now: nothing().do(drains), status: down, cause: model.CauseListenerClosed,
			change: func(e *symptoms.Input) { e.Closed = &model.Closed{Queued: 5, Ago: time.Second} },
		},
		{
			name: "F5 the process is up, nothing listens", now: nothing(), status: down, cause: model.CauseNoListener,
			change: func(e *symptoms.Input) { e.Delta = model.Counters{"OutRsts": 31} },
		},
		{
			name: "F6 graceful shutdown with clients queued", now: nothing(), status: down, cause: model.CauseListenerClosed,
			change: func(e *symptoms.Input) {
				e.Closed = &model.Closed{Queued: 5, Ago: time.Second}
				e.Delta = model.Counters{"OutRsts": 9, "EstabResets": 5}
			},
		},
		{
			name: "F6 and the listener is back", now: tomcat(200, 8192, 100).do(func(l *model.Listener) { l.Losses.QueueResets = 5 }),
			status: losing, cause: model.CauseListenerClosed, change: func(e *symptoms.Input) { e.Closed = &model.Closed{Queued: 5, Ago: 20 * time.Second} },
		},
		{
			name: "F6 one of two sockets with SO_REUSEPORT closes", now: tomcat(200, 8192, 100).do(func(l *model.Listener) { l.Losses.QueueResets = 5 }), before: tomcat(200, 8192, 100),
			status: losing, cause: model.CauseListenerClosed, change: func(e *symptoms.Input) { e.Closed = &model.Closed{Queued: 5, Ago: time.Second, Part: true} },
		},
		{
			name: "F6 and the one that took its place drops", now: tomcat(200, 8192, 100).lost(model.CauseSlowAccept, syn, 30).do(func(l *model.Listener) { l.Losses.QueueResets = 5 }),
			before: tomcat(200, 8192, 100), status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue), codes: []string{"queue_resets"},
		},
		{
			name: "F7 the other connector drops", status: ok, now: tomcat(200, 8192, 100).inService(20).do(func(l *model.Listener) { l.Losses.Unattributed = 40 }),
			before: tomcat(200, 8192, 100).inService(22), change: func(e *symptoms.Input) { e.Delta = model.Counters{"ListenDrops": 40, "ListenOverflows": 40} },
			codes: []string{"unattributed_drops"},
		},
		{
			name: "F8 server.xml with a shared Executor", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(50, 8192, 100).pool(50).inService(50).waiting(20).do(standalone),
			before: tomcat(50, 8192, 100).pool(50).inService(50).waiting(22).do(standalone),
		},
		{
			name: "F9 on 127.0.0.1 only", status: ok, now: tomcat(200, 8192, 100).inService(3), before: tomcat(200, 8192, 100).inService(3),
		},
		{
			name: "F10 HTTPS, requests in service", status: ok, now: tomcat(200, 8192, 100).do(tls).pool(200).with(model.Unclassified, 150), before: tomcat(200, 8192, 100).do(tls).pool(200).with(model.Unclassified, 150),
			codes: []string{"unclassified"}, notCodes: []string{"max_threads", "keep_alive_idle"},
		},
		{
			name: "F10 HTTPS, all connections taken", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:    tomcat(200, 100, 50).do(tls).pool(60).with(model.Unclassified, 100).queue(50, time.Second),
			before: tomcat(200, 100, 50).do(tls).pool(60).with(model.Unclassified, 100).queue(50, time.Second),
			codes:  []string{"unclassified"}, notCodes: []string{"max_threads", "keep_alive_idle"},
		},
		{
			name: "NIO2: all threads serve, and one of them would have to accept", status: saturated, cause: threads, chain: chainOf(threads),
			now:      tomcat(6, 60, 100).do(nio2).pool(6).inService(6).queue(22, 4*time.Second),
			before:   tomcat(6, 60, 100).do(nio2).pool(6).inService(6).queue(22, 3*time.Second),
			notCodes: []string{"queue_stands", "slow_accept"},
		},
		{
			name: "NIO2 the same, the queue overflows", status: losing, cause: threads, chain: chainOf(acceptQueue, threads),
			now:    tomcat(6, 60, 20).do(nio2).pool(6).inService(6).queue(21, 4*time.Second).lost(model.CauseSlowAccept, syn, 30),
			before: tomcat(6, 60, 20).do(nio2).pool(6).inService(6).queue(21, 3*time.Second),
		},
		{
			name: "NIO2 the same, and the packets are counted so", status: losing, cause: threads, chain: chainOf(acceptQueue, threads),
			now:    tomcat(6, 60, 20).do(nio2).pool(6).inService(6).queue(21, 4*time.Second).lost(threads, syn, 30),
			before: tomcat(6, 60, 20).do(nio2).pool(6).inService(6).queue(21, 3*time.Second),
		},
		{
			name: "NIO2 that is paused: all threads of the pool are idle, and nobody is accepted", status: warning, notCodes: []string{"max_threads"}, codes: []string{"queue_stands"},
			now:    tomcat(10, 8192, 50).do(nio2).pool(10).queue(30, 4*time.Second).do(nothingFor(4 * time.Second)),
			before: tomcat(10, 8192, 50).do(nio2).pool(10).queue(30, 3*time.Second).do(nothingFor(3 * time.Second)),
		},
		{
			name: "the same, no limit is known, and the accept queue is full", status: saturated, chain: chainOf(acceptQueue),
			now:    tomcat(10, 8192, 10).do(nio2).pool(10).unknownLimits().queue(11, 4*time.Second).do(nothingFor(4 * time.Second)),
			before: tomcat(10, 8192, 10).do(nio2).pool(10).unknownLimits().queue(11, 3*time.Second).do(nothingFor(3 * time.Second)),
		},
		{
			name: "NIO2 the same, and a worker waited for a CPU when it accepted", status: losing, cause: threads, chain: chainOf(acceptQueue, threads),
			now:    tomcat(6, 8192, 17).do(nio2).pool(6).with(model.Streaming, 6).waiting(1).queue(18, 4*time.Second).lost(model.CauseCPUSaturated, syn, 32).lost(model.CauseSlowAccept, syn, 50),
			before: tomcat(6, 8192, 17).do(nio2).pool(6).with(model.Streaming, 6).waiting(1).queue(18, 3*time.Second),
		},
		{
			name: "NIO2 the same: a connection is taken only as another ends", status: losing, cause: threads, chain: chainOf(acceptQueue, maxConns, threads),
			now:    tomcat(11, 16, 100).do(nio2).pool(11).inService(11).waiting(1).queue(101, 4*time.Second).lost(maxConns, syn, 39),
			before: tomcat(11, 16, 100).do(nio2).pool(11).inService(11).waiting(1).queue(101, 3*time.Second),
		},
		{
			name: "uploads look as if they waited, and threads for a CPU", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(10, 14, 100).pool(10).inService(5).waiting(9).do(totals(0, 0, 3200*time.Millisecond)),
			before: tomcat(10, 14, 100).pool(10).inService(5).waiting(9).do(totals(0, 0, 0)),
		},
		{
			name: "NIO2 the same, and all of them wait for a CPU", status: losing, cause: model.CauseCPUSaturated, chain: chainOf(acceptQueue, threads),
			now:    tomcat(6, 8192, 17).do(nio2).pool(6).inService(6).do(totals(0, 0, 4*time.Second)).queue(18, 4*time.Second).lost(model.CauseCPUSaturated, syn, 32),
			before: tomcat(6, 8192, 17).do(nio2).pool(6).inService(6).do(totals(0, 0, 0)).queue(18, 3*time.Second),
		},
		{
			name: "NIO2 the same, and all of them wait for a backend", status: losing, cause: model.CauseDownstream, chain: chainOf(acceptQueue, threads, model.CauseDownstream),
			now:    tomcat(6, 8192, 17).do(nio2).do(atPeer).pool(6).inService(6).queue(18, 4*time.Second).lost(model.CauseSlowAccept, syn, 30),
			before: tomcat(6, 8192, 17).do(nio2).do(atPeer).pool(6).inService(6).queue(18, 3*time.Second),
		},
		{
			name: "NIO with the same numbers: something else holds the acceptor up", status: warning,
			now:      tomcat(6, 60, 100).pool(6).inService(6).queue(22, 4*time.Second),
			before:   tomcat(6, 60, 100).pool(6).inService(6).queue(22, 3*time.Second),
			codes:    []string{"queue_stands"},
			notCodes: []string{"max_threads"},
		},
		{
			name: "WebSockets that say nothing fill maxConnections", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:      tomcat(50, 20, 10).pool(10).with(model.Unclassified, 20).do(func(l *model.Listener) { l.Connections.Outlived = 20 }).queue(5, 4*time.Second),
			before:   tomcat(50, 20, 10).pool(10).with(model.Unclassified, 20).do(func(l *model.Listener) { l.Connections.Outlived = 20 }).queue(5, 3*time.Second),
			codes:    []string{"unclassified"},
			notCodes: []string{"keep_alive_idle", "max_threads"},
		},
		{
			name: "F11 half-sent headers, as many as the pool has threads besides", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:    tomcat(200, 20, 10).pool(10).inService(10).with(model.Unclassified, 10).queue(9, 4*time.Second),
			before: tomcat(200, 20, 10).pool(10).inService(10).with(model.Unclassified, 10).queue(5, 3*time.Second),
		},
		{
			name: "F11 half-sent headers", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:    tomcat(200, 500, 100).pool(10).inService(10).with(model.Unclassified, 490).queue(30, 4*time.Second),
			before: tomcat(200, 500, 100).pool(10).inService(10).with(model.Unclassified, 490).queue(25, 3*time.Second),
			codes:  []string{"unclassified"}, notCodes: []string{"max_threads"},
		},
		{
			name: "F11 clients that reset while being served", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:    tomcat(200, 20, 10).pool(20).inService(8).do(gone(12)).queue(6, time.Second),
			before: tomcat(200, 20, 10).pool(20).inService(8).do(gone(12)).queue(5, time.Second), codes: []string{"reset_connections"}, notCodes: []string{"max_threads"},
		},
		{
			name: "F11 the same, counted from the second look on", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:    tomcat(200, 20, 10).pool(20).inService(8).do(gone(12)).queue(6, time.Second),
			before: tomcat(200, 20, 10).pool(20).inService(8).do(uncounted).queue(5, time.Second), codes: []string{"reset_connections"}, notCodes: []string{"max_threads"},
		},
		{
			name: "F11 the same, and the descriptors cannot be read", status: saturated, chain: chainOf(acceptQueue),
			now:    tomcat(200, 20, 10).pool(20).inService(8).do(uncounted).queue(11, time.Second),
			before: tomcat(200, 20, 10).pool(20).inService(8).do(uncounted).queue(11, time.Second), codes: []string{"connections_undercounted"},
		},
		{
			name: "F11 the same at the first look, with a full queue", status: ok,
			now:    tomcat(200, 20, 5).pool(20).inService(8).do(uncounted).queue(6, time.Second),
			change: first,
		},
		{
			name: "clients give up on a server that is not busy", status: ok, now: tomcat(200, 8192, 100).pool(40).inService(30).do(abandoned(3)), before: tomcat(200, 8192, 100).pool(40).inService(33),
			change: minute, codes: []string{"abandoned_requests"},
		},
		{
			name: "three give up of a proxy's connections, which are kept and bring many requests", status: ok, codes: []string{"abandoned_requests"},
			now: tomcat(200, 8192, 100).pool(40).inService(2).idle(38).do(used(36)).do(abandoned(3)), before: tomcat(200, 8192, 100).pool(40).inService(2).idle(38).do(used(36)), change: opened(3),
		},
		{
			name: "three give up of a few connections that are used all the time", status: ok, codes: []string{"abandoned_requests"},
			now: tomcat(200, 8192, 100).pool(40).inService(2).idle(8).do(used(8)).do(abandoned(3)), before: tomcat(200, 8192, 100).pool(40).inService(2).idle(8).do(used(8)), change: opened(3),
		},
		{
			name: "most of those who come give up, and those that are kept are quiet", status: warning, codes: []string{"abandoned_requests"},
			now: tomcat(200, 8192, 100).pool(40).inService(2).idle(38).do(abandoned(9)), before: tomcat(200, 8192, 100).pool(40).inService(2).idle(38), change: opened(12),
		},
		{
			name: "clients give up while others wait outside", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now: tomcat(200, 60, 100).inService(60).queue(20, time.Second).do(abandoned(1)), before: tomcat(200, 60, 100).inService(60).queue(20, time.Second),
			change: minute, codes: []string{"abandoned_requests"},
		},
		{
			name: "F12 clients that half-close after the request", status: ok, now: tomcat(200, 8192, 100).pool(40).with(model.ClientClosed, 40), before: tomcat(200, 8192, 100).pool(40).with(model.ClientClosed, 40),
			notCodes: []string{"abandoned_requests"},
		},
	}
}

func standalone(l *model.Listener) {
	l.Connector.Framework, l.Connector.FrameworkVersion, l.Connector.Executor = "", "", "tomcatThreadPool"
}

func gone(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.Reset = new(n) }
}

func uncounted(l *model.Listener) { l.Connections.Reset = nil }

// F4 and the other ways in which a process does not get on with it.
func scenariosStalls() []scenario {
	loaded := func() look { return tomcat(200, 8192, 100).pool(120).inService(60).do(totals(0, 0, 0)) }
	stop := func(l *model.Listener) { l.Process.Stopped = true }
	encrypted := func(l *model.Listener) { l.Connector.TLS = true }
	full := func(k look) look { return k.queue(101, 1800*time.Millisecond) }
	return []scenario{
		{
			name: "F4 the JVM is stopped", now: full(loaded()).do(stop).lost(model.CauseJVMPause, syn, 210), before: loaded(),
			status: losing, cause: model.CauseJVMPause, chain: chainOf(acceptQueue),
		},
		{
			name: "F4 stopped with all connections taken", status: saturated, cause: model.CauseJVMPause, chain: chainOf(maxConns),
			now: tomcat(200, 60, 100).inService(60).queue(20, time.Second).do(stop), before: tomcat(200, 60, 100).inService(60).queue(20, time.Second).do(stop),
		},
		{
			name: "stopped behind HTTPS: whether anybody waits cannot be seen", status: warning, cause: model.CauseJVMPause, chain: chainOf(),
			now: tomcat(200, 60, 100).do(encrypted).with(model.Unclassified, 4).do(stop), before: tomcat(200, 60, 100).do(encrypted).with(model.Unclassified, 4).do(stop),
		},
		{
			name: "the same, and nobody is connected", status: ok, codes: []string{"process_stopped"},
			now: tomcat(200, 60, 100).do(encrypted).do(stop), before: tomcat(200, 60, 100).do(encrypted).do(stop),
		},
		{
			name: "the same, stopped at one look", status: ok,
			now: tomcat(200, 60, 100).do(encrypted).with(model.Unclassified, 4).do(stop), before: tomcat(200, 60, 100).do(encrypted).with(model.Unclassified, 4),
		},
		{
			name: "F4 a long collection", before: loaded(), now: full(loaded()).do(totals(1900*time.Millisecond, 0, 0)).lost(model.CauseJVMPause, syn, 210),
			change: func(e *symptoms.Input) { e.Elapsed = 2 * time.Second },
			status: losing, cause: model.CauseJVMPause, chain: chainOf(acceptQueue),
		},
		{
			name: "F4 a collection that goes on", before: loaded(),
			now:    full(loaded()).do(totals(0, 0, 0)).do(standing(1400*time.Millisecond)).lost(model.CauseJVMPause, syn, 210),
			status: losing, cause: model.CauseJVMPause, chain: chainOf(acceptQueue),
		},
		{
			name: "F4 a collection longer than the looks are apart", before: loaded(),
			now:    full(loaded()).do(totals(1900*time.Millisecond, 0, 0)).lost(model.CauseJVMPause, syn, 210),
			status: losing, cause: model.CauseJVMPause, chain: chainOf(acceptQueue),
		},
		{
			name: "all connections are taken, most of them by requests whose clients have left", before: tomcat(200, 34, 16).pool(20).inService(14).with(model.ClientClosed, 20).queue(16, 4*time.Second).do(virtual),
			now:    tomcat(200, 34, 16).pool(20).inService(14).with(model.ClientClosed, 20).queue(16, 5*time.Second).do(virtual).lost(maxConns, syn, 53),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "all connections are taken, and a third of those that were let in left before their answer", before: tomcat(200, 34, 16).pool(20).inService(34).queue(16, 4*time.Second).do(virtual),
			now:    tomcat(200, 34, 16).pool(20).inService(34).queue(16, 5*time.Second).do(virtual).lost(maxConns, syn, 53).do(answers(32, 20)).do(inServiceFor(4 * time.Second)),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "all connections are taken, and clients leave who wait much longer than a request is in service", before: tomcat(200, 34, 16).pool(20).inService(34).queue(16, 4*time.Second).do(virtual),
			now:    tomcat(200, 34, 16).pool(20).inService(34).queue(16, 5*time.Second).do(virtual).lost(maxConns, syn, 53).do(answers(32, 20)).do(inServiceFor(time.Second / 2)),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "all connections are taken, most of them by requests whose clients have closed their side and get their answers", before: tomcat(200, 34, 16).pool(20).inService(14).with(model.ClientClosed, 20).queue(16, 4*time.Second).do(virtual),
			now:    tomcat(200, 34, 16).pool(20).inService(14).with(model.ClientClosed, 20).queue(16, 5*time.Second).do(virtual).lost(maxConns, syn, 53).do(answers(52, 0)),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "all connections are taken, and most of those in the accept queue have left", before: tomcat(200, 34, 16).pool(20).inService(34).queue(17, 4*time.Second).do(virtual),
			now: tomcat(200, 34, 16).pool(20).inService(34).queue(17, 5*time.Second).do(virtual).lost(maxConns, syn, 53).do(func(l *model.Listener) {
				l.AcceptQueue.Left, l.Connections.InServiceFor = 15, 3*time.Second
			}),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "all connections are taken, and those that were idle at moments are not", before: tomcat(4, 10, 5).inService(4).waiting(6).queue(6, 4*time.Second),
			now:    tomcat(4, 10, 5).inService(4).waiting(6).queue(6, 5*time.Second).lost(model.CauseKeepAliveIdle, syn, 27).lost(model.CauseMaxConnections, syn, 26),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "a burst on a busy machine: first the acceptor waits for a CPU, then all connections are taken", before: tomcat(4, 10, 5).inService(4).waiting(6).queue(6, 4*time.Second),
			now:    tomcat(4, 10, 5).inService(4).waiting(6).queue(6, 5*time.Second).lost(model.CauseCPUSaturated, syn, 21).lost(model.CauseMaxConnections, syn, 20),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "the same, and no packet was dropped since", before: tomcat(4, 10, 5).inService(4).waiting(6).queue(6, 4*time.Second),
			now:    tomcat(4, 10, 5).inService(4).waiting(6).queue(6, 5*time.Second).lost(model.CauseCPUSaturated, syn, 21),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
		},
		{
			name: "the JVM stood still when a packet was dropped, and nobody has been accepted since", before: tomcat(200, 8192, 3).with(model.Idle, 2).queue(3, 2*time.Second).do(totals(0, 0, 0)),
			now: tomcat(200, 8192, 3).with(model.Idle, 2).queue(4, 3*time.Second).do(totals(150*time.Millisecond, 0, 0)).lost(model.CauseJVMPause, syn, 1).do(func(l *model.Listener) {
				l.AcceptQueue.NoAcceptFor = new(3 * time.Second)
			}),
			status: losing, chain: chainOf(acceptQueue),
		},
		{
			name: "F4 a stop that fell between two snapshots", before: loaded(),
			now: loaded().lost(model.CauseSlowAccept, syn, 210).do(func(l *model.Listener) {
				l.AcceptQueue.Peak, l.AcceptQueue.PeakAge = new(101), 700*time.Millisecond
			}),
			status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue), codes: []string{"accept_queue_peak"},
		},
		{
			name: "F4 a pause that lost nothing", before: loaded(),
			now: loaded().do(func(l *model.Listener) {
				l.AcceptQueue.Peak, l.AcceptQueue.PeakAge = new(95), 700*time.Millisecond
			}),
			status: ok, codes: []string{"accept_queue_peak"},
		},
		{
			name: "the CPU limit throttles", before: loaded(), now: full(loaded()).do(totals(0, 600*time.Millisecond, 0)).lost(model.CauseCPUThrottled, syn, 44),
			status: losing, cause: model.CauseCPUThrottled, chain: chainOf(acceptQueue),
		},
		{
			name: "the CPU limit throttled for a moment, and all connections are taken", before: tomcat(200, 100, 100).inService(100).queue(101, time.Second).do(totals(0, 0, 0)),
			now:    tomcat(200, 100, 100).inService(100).queue(101, time.Second).do(totals(0, 100*time.Millisecond, 0)).lost(model.CauseCPUThrottled, syn, 44),
			status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
		},
		{
			name: "200 busy threads, and 16 CPUs each throttled for 3 % of the time", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)).do(cpu(512*time.Millisecond, 8*time.Second, 10, 10)),
			before: tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)),
		},
		{
			name: "200 busy threads, and a collection on 16 CPUs that is throttled in one period of ten", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)).do(cpu(1280*time.Millisecond, 300*time.Millisecond, 1, 10)),
			before: tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)), codes: []string{"cpu_throttled"},
		},
		{
			name: "200 busy threads that a quota keeps from running", status: saturated, cause: model.CauseCPUThrottled, chain: chainOf(threads),
			now:    tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)).do(cpu(12*time.Second, 4*time.Second, 10, 10)),
			before: tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)),
		},
		{
			name: "200 busy threads that all wait for a CPU", status: saturated, cause: model.CauseCPUSaturated, chain: chainOf(threads),
			now:    tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 150*time.Second)),
			before: tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)),
		},
		{
			name: "200 busy threads that wait for a database", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 3*time.Second)),
			before: tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(totals(0, 0, 0)),
		},
		{
			name: "a burst larger than the queue", before: tomcat(200, 8192, 100), now: tomcat(200, 8192, 100).inService(190).lost(model.CauseSlowAccept, syn, 60),
			status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
		},
		{
			name: "a queue at 90 % in two snapshots", before: tomcat(200, 8192, 100).queue(88, time.Second).inService(50), now: tomcat(200, 8192, 100).queue(91, time.Second).inService(50),
			status: warning, cause: model.CauseSlowAccept,
		},
		{
			name: "drops at the SYN queue without cookies", before: tomcat(200, 8192, 100), now: tomcat(200, 8192, 100).lost(model.CauseSynBacklog, syn, 5000).do(func(l *model.Listener) { l.SynBacklog.Length = 101 }),
			change: func(e *symptoms.Input) {
				e.Sysctl["tcp_syncookies"], e.Delta = 0, model.Counters{"TCPReqQFullDrop": 5000, "ListenDrops": 5000}
			},
			status: losing, cause: model.CauseSynBacklog, chain: chainOf(model.CauseSynBacklog),
		},
		{
			name: "the SYN queue overflows with cookies", before: tomcat(200, 8192, 100), now: tomcat(200, 8192, 100),
			change: func(e *symptoms.Input) { e.Delta = model.Counters{"SyncookiesSent": 812} },
			status: ok, codes: []string{"syncookies"},
		},
		{
			name: "TCP memory pressure", before: tomcat(200, 8192, 100), now: tomcat(200, 8192, 100),
			change: func(e *symptoms.Input) { e.Delta = model.Counters{"TCPMemoryPressures": 3} },
			status: ok, codes: []string{"tcp_memory_pressure"},
		},
	}
}

// Limits that nobody knows, one snapshot only, and load that is no problem.
func scenariosUnknown() []scenario {
	byHand := func(l *model.Listener) { l.Process.Comm, l.Connector.Server = "demo-server", "other" }
	nginx := func(l *model.Listener) { l.Process.Comm, l.Connector = "nginx", &model.Connector{Server: "other"} }
	https := func(l *model.Listener) { l.Connector.TLS = true }
	noConnectionLimit := func(l *model.Listener) { l.Connector.MaxConnections = nil }
	uncertain := func(l *model.Listener) {
		l.Connector.MaxConnections = new(*l.Connector.MaxConnections)
		l.Connector.MaxConnections.Uncertain = true
	}
	return []scenario{
		{
			name: "maxConnections not known, the queue is full", status: saturated, chain: chainOf(acceptQueue),
			now: tomcat(200, 8192, 100).unknownLimits().inService(50).queue(101, 3*time.Second), before: tomcat(200, 8192, 100).unknownLimits().inService(50).queue(101, 2*time.Second),
			codes: []string{"limits_unknown"}, notCodes: []string{"slow_accept"},
		},
		{
			name: "maxConnections not known, packets are dropped", status: losing, chain: chainOf(acceptQueue),
			now: tomcat(200, 8192, 100).unknownLimits().inService(50).queue(101, 3*time.Second).lost(acceptQueue, syn, 12), before: tomcat(200, 8192, 100).unknownLimits().inService(50),
			codes: []string{"limits_unknown"}, notCodes: []string{"slow_accept"},
		},
		{
			name: "maxConnections read where the environment may overrule it", status: losing, chain: chainOf(acceptQueue),
			now: tomcat(200, 8192, 100).do(uncertain).inService(50).queue(101, 3*time.Second).lost(acceptQueue, syn, 12), before: tomcat(200, 8192, 100).do(uncertain).inService(50).queue(101, 2*time.Second),
			codes: []string{"limits_unknown"}, notCodes: []string{"slow_accept"},
		},
		{
			name: "an uncertain maxConnections that is reached", status: losing, cause: model.CauseMaxConnections,
			now: tomcat(200, 60, 100).do(uncertain).inService(60).queue(101, 3*time.Second).lost(maxConns, syn, 12), before: tomcat(200, 60, 100).do(uncertain).inService(60).queue(101, 2*time.Second),
			chain: chainOf(acceptQueue, maxConns), notCodes: []string{"limits_unknown"},
		},
		{
			name: "not all connections were counted", status: losing, chain: chainOf(acceptQueue),
			now: tomcat(200, 8192, 100).do(partly).inService(50).queue(101, 3*time.Second).lost(acceptQueue, syn, 12), before: tomcat(200, 8192, 100).inService(50).queue(101, 2*time.Second),
			codes: []string{"limits_unknown", "connections_partial"}, notCodes: []string{"slow_accept"},
		},
		{
			name: "maxConnections unlimited: the queue is full for another reason", status: saturated, notCodes: []string{"slow_accept"}, chain: chainOf(acceptQueue),
			now: tomcat(200, -1, 100).inService(50).queue(101, 3*time.Second), before: tomcat(200, -1, 100).inService(50).queue(101, 2*time.Second),
		},
		{
			name: "the acceptor sleeps as at a safepoint that cannot be seen, and connections are free", status: losing, chain: chainOf(acceptQueue),
			now:    tomcat(200, 8192, 100).inService(20).idle(160).queue(101, 3*time.Second).do(nobodyAccepted(3*time.Second)).lost(acceptQueue, syn, 12),
			before: tomcat(200, 8192, 100).inService(20).idle(160).queue(101, 2*time.Second), notCodes: []string{"slow_accept", "max_connections"},
		},
		{
			name: "it sleeps so, and clients may have reset the connections that are not counted", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
			now:    tomcat(4, 10, 3).pool(4).inService(2).waiting(2).queue(4, 3*time.Second).do(nobodyAccepted(3*time.Second)).do(uncounted).do(acceptor(model.AcceptorAtLimit)).lost(maxConns, syn, 12),
			before: tomcat(4, 10, 3).pool(4).inService(2).waiting(2).queue(4, 2*time.Second).do(uncounted),
		},
		{
			name: "maxConnections not known, threads and the queue", status: saturated, cause: threads,
			now: tomcat(4, 0, 100).do(noConnectionLimit).pool(4).inService(4).waiting(9).queue(3, 3*time.Second), before: tomcat(4, 0, 100).do(noConnectionLimit).pool(4).inService(4).waiting(9).queue(3, 2*time.Second),
			chain: chainOf(threads), codes: []string{"limits_unknown"},
		},
		{
			name: "maxConnections not reached, threads and the queue", status: saturated, cause: threads,
			now: tomcat(4, 8192, 100).pool(4).inService(4).waiting(9).queue(3, 3*time.Second), before: tomcat(4, 8192, 100).pool(4).inService(4).waiting(9).queue(3, 2*time.Second),
			chain: chainOf(threads), codes: []string{"queue_stands"}, notCodes: []string{"limits_unknown"},
		},
		{
			name: "threads, and who passes through the queue", status: saturated, cause: threads,
			now: tomcat(4, 0, 100).do(noConnectionLimit).pool(4).inService(4).waiting(9).queue(3, 20*time.Millisecond), before: tomcat(4, 0, 100).do(noConnectionLimit).pool(4).inService(4).waiting(9).queue(3, 20*time.Millisecond),
			chain: chainOf(threads), notCodes: []string{"limits_unknown", "queue_stands"},
		},
		{
			name: "nginx with a full queue", status: saturated, chain: chainOf(acceptQueue),
			now: tomcat(1, 1, 511).do(nginx).inService(700).queue(512, time.Second), before: tomcat(1, 1, 511).do(nginx).inService(700).queue(512, time.Second),
		},
		{
			name: "a server of no known kind accepts nobody, and its limits were given by hand: it has no JVM that could be asked", status: saturated, chain: chainOf(acceptQueue),
			now: tomcat(1, 20, 5).do(byHand).queue(6, 22*time.Second), before: tomcat(1, 20, 5).do(byHand).queue(6, 21*time.Second),
		},
		{
			name: "a single look", status: saturated, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
			now: tomcat(4, 10, 5).pool(4).inService(4).waiting(6).queue(6, 2*time.Second).do(func(l *model.Listener) { l.Losses = nil }),
		},
		{
			name: "four threads, ten connections, five in the queue: 14 clients", status: saturated, cause: maxConns, chain: chainOf(maxConns, threads),
			now: tomcat(4, 10, 5).pool(4).inService(4).waiting(6).queue(4, 2*time.Second).do(func(l *model.Listener) { l.Losses = nil }),
		},
		{
			name: "the executor's queue is bounded and full", status: saturated, cause: model.CauseExecutorQueue, chain: chainOf(model.CauseExecutorQueue, threads),
			now: tomcat(20, 8192, 100).pool(20).inService(20).waiting(96).do(bounded), before: tomcat(20, 8192, 100).pool(20).inService(20).waiting(100).do(bounded),
		},
		{
			name: "the executor's queue is bounded and nearly full", status: saturated, cause: threads, chain: chainOf(threads),
			now: tomcat(20, 8192, 100).pool(20).inService(20).waiting(96).do(bounded), before: tomcat(20, 8192, 100).pool(20).inService(20).waiting(99).do(bounded),
		},
		{
			name: "the executor's queue has no place left", status: saturated, cause: model.CauseExecutorQueue, chain: chainOf(model.CauseExecutorQueue, threads),
			now: tomcat(20, 8192, 100).pool(20).inService(19).waiting(103).do(bounded), before: tomcat(20, 8192, 100).pool(20).inService(20).waiting(99).do(bounded),
		},
		{
			name: "busy but healthy at 75 % of the threads", status: ok,
			now: tomcat(200, 8192, 100).pool(200).inService(150).waiting(2).idle(300), before: tomcat(200, 8192, 100).pool(200).inService(148).waiting(3).idle(310),
		},
		{
			name: "90 % of the threads, and requests wait in both looks", status: warning, cause: threads,
			now: tomcat(200, 8192, 100).pool(186).inService(178).waiting(5), before: tomcat(200, 8192, 100).pool(186).inService(176).waiting(4),
		},
		{
			name: "the threads fill up, and nobody waits: they come and go too fast to be foretold", status: ok,
			now: tomcat(200, 8192, 100).pool(186).inService(195), before: tomcat(200, 8192, 100).pool(186).inService(162),
		},
		{
			name: "idle connections fill up", status: ok,
			now:    tomcat(200, 1000, 100).inService(5).idle(895),
			before: tomcat(200, 1000, 100).inService(5).idle(850),
		},
		{
			name: "connections fill up", status: warning, cause: maxConns,
			now:    tomcat(200, 10000, 100).do(virtual).inService(8800),
			before: tomcat(200, 10000, 100).do(virtual).inService(8200),
		},
		{
			name: "HTTPS, the pool is at its maximum and requests pile up", status: saturated, cause: threads, chain: chainOf(threads),
			now:    tomcat(200, 8192, 100).pool(200).do(https).waiting(120).with(model.Unclassified, 210),
			before: tomcat(200, 8192, 100).pool(200).do(https).waiting(110).with(model.Unclassified, 210),
		},
		{
			name: "a minute ago the connections ran out, now it is calm", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now: tomcat(200, 1000, 100).inService(12).idle(40).lost(maxConns, syn, 300), before: tomcat(200, 1000, 100).inService(10).idle(40),
			change: minute,
		},
		{
			name: "a minute ago the queue overflowed, then the connections ran out", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now: tomcat(200, 1000, 100).inService(12).lost(model.CauseSlowAccept, syn, 700).lost(maxConns, syn, 300), before: tomcat(200, 1000, 100).inService(10),
			change: minute,
		},
		{
			name: "one odd packet does not name the cause", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
			now:    tomcat(200, 1000, 100).inService(12).lost(model.CauseSlowAccept, syn, 700).lost(model.CauseSynBacklog, syn, 1).lost(model.CauseJVMPause, syn, 2),
			before: tomcat(200, 1000, 100).inService(10), change: minute,
		},
		{
			name: "a minute ago idle connections were in the way", status: losing, cause: keepAlive, chain: chainOf(acceptQueue, maxConns),
			now: tomcat(200, 100, 100).inService(2).idle(40).lost(keepAlive, syn, 300), before: tomcat(200, 100, 100).inService(2).idle(40),
			change: minute,
		},
		{
			name: "a minute ago the files ran out", status: losing, cause: model.CauseOpenFiles, chain: chainOf(acceptQueue, model.CauseOpenFiles),
			now: tomcat(200, 8192, 100).inService(2).do(files(300, 1024)).lost(model.CauseOpenFiles, syn, 30), before: tomcat(200, 8192, 100).inService(2).do(files(300, 1024)),
			change: minute,
		},
		{
			name: "a minute ago the CPU was throttled", status: losing, cause: model.CauseCPUThrottled, chain: chainOf(acceptQueue),
			now: tomcat(200, 8192, 100).inService(2).lost(model.CauseCPUThrottled, syn, 30), before: tomcat(200, 8192, 100).inService(2),
			change: minute,
		},
		{
			name: "a single look at a quiet server", status: ok, now: tomcat(200, 8192, 100).inService(3).do(func(l *model.Listener) { l.Losses = nil }),
		},
		{
			name: "the only listener, and packets that its counter missed", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now: tomcat(200, 100, 100).inService(100).queue(101, time.Second).do(func(l *model.Listener) {
				l.Losses.DroppedPackets, l.Losses.Unattributed = 8, 8
			}),
			before: tomcat(200, 100, 100).inService(100).queue(101, time.Second), codes: []string{"dropped_packets"}, notCodes: []string{"unattributed_drops"},
		},
		{
			name: "the first look at a busy server, before losses can be told", status: ok,
			now: tomcat(200, 8192, 100).pool(200).inService(200).waiting(100).do(func(l *model.Listener) { l.Losses = nil }), change: first,
		},
		{
			name: "the first look at a server that is at its limits", status: ok,
			now: tomcat(200, 200, 100).pool(200).inService(200).queue(95, time.Second), change: first,
		},
		{
			name: "the first look at a stopped process", status: ok,
			now: tomcat(200, 200, 100).inService(20).queue(5, time.Second).do(func(l *model.Listener) { l.Process.Stopped = true }), change: first,
		},
		{
			name: "the first look at a listener that drops", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now: tomcat(200, 100, 100).inService(100).queue(101, time.Second).lost(maxConns, syn, 12), change: first,
		},
		{
			name: "a queue that is full in one snapshot and drops nothing", status: ok,
			now: tomcat(200, 8192, 100).inService(50).queue(101, 5*time.Millisecond), before: tomcat(200, 8192, 100).inService(50),
		},
		{
			name: "a rate is known", status: saturated, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads),
			now:    tomcat(200, 8192, 100).pool(200).inService(200).waiting(7992).queue(101, 2500*time.Millisecond),
			before: tomcat(200, 8192, 100).pool(200).inService(200).waiting(7992).queue(101, 2500*time.Millisecond),
		},
	}
}

// first: another snapshot will follow.
func first(e *symptoms.Input) { e.First = true }

func minute(e *symptoms.Input) { e.Interval = time.Minute }

// bounded gives the executor a queue of 100 places.
func bounded(l *model.Listener) {
	l.Connector.MaxQueue = &model.Setting[int]{Value: 100, Kind: model.SourceFile}
}

// abandoned are requests whose clients closed before the answer.
// used of the idle connections were within two seconds.
func used(n int) func(*model.Listener) { return func(l *model.Listener) { l.Connections.Recent = n } }

// opened is how many connections came within a minute.
func opened(n uint64) func(*symptoms.Input) {
	return func(e *symptoms.Input) {
		minute(e)
		e.Delta["PassiveOpens"] = n
	}
}

func abandoned(n uint64) func(*model.Listener) {
	return func(l *model.Listener) { l.Losses.AbandonedRequests = n }
}

func uncertainAcceptCount(l *model.Listener) { l.Connector.AcceptCount.Uncertain = true }

func drains(l *model.Listener) {
	l.Draining = &model.OtherProcess{PID: 1077, Comm: "java", Connections: 24}
}

func elsewhere(l *model.Listener) {
	l.Elsewhere = &model.Elsewhere{Port: 8080, PID: 2024, Comm: "java", Pod: &model.Pod{Namespace: "shop", Name: "orders-7"}}
}
