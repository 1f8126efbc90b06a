package diagnosis

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func acceptor(s model.AcceptorState) func(*model.Listener) {
	return func(l *model.Listener) { l.Acceptor = s }
}

// outcome is a number of clients that ended like that.
func outcome(o model.ClientOutcome, n uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		if l.Losses.Clients == nil {
			l.Losses.Clients = &model.Clients{Observed: time.Second}
		}
		l.Losses.Clients.Outcomes[o] = n
	}
}

// noneAnswered are clients of whom none has had an answer in that time.
func noneAnswered(n uint64, followed time.Duration) func(*model.Listener) {
	return func(l *model.Listener) {
		outcome(model.ClientConnected, n)(l)
		l.Losses.Clients.Begun, l.Losses.Clients.Observed, l.Losses.Clients.Answers.Known = n, followed, true
	}
}

// doubtful are limits that a source which could not be read may overrule.
func doubtful(l *model.Listener) {
	c := *l.Connector
	threads, connections := *c.MaxThreads, *c.MaxConnections
	threads.Uncertain, connections.Uncertain = true, true
	c.MaxThreads, c.MaxConnections = &threads, &connections
	l.Connector = &c
}

// inServiceFor is how old the oldest of the requests in service is.
func inServiceFor(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.InServiceFor = d }
}

// since is the interval of which a snapshot speaks.
func since(d time.Duration) func(*symptoms.Input) {
	return func(e *symptoms.Input) { e.Interval = d }
}

// localTrying: sockets of the listener's network namespace show clients without an answer, beside half-open connections.
func localTrying(n, halfOpen int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connections.LocalTrying = n
		l.SynBacklog = &model.SynBacklog{Length: halfOpen}
	}
}

func stillTry(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		outcome(model.ClientConnected, 0)(l)
		l.Losses.Clients.Waiting = n
	}
}

// unreached are clients that repeat a SYN which was answered: those that have given up, and those that still try.
func unreached(left uint64, trying int) func(*model.Listener) {
	return func(l *model.Listener) {
		outcome(model.ClientGaveUp, left)(l)
		l.Losses.Clients.GaveUpUnreached, l.Losses.Clients.Unreached = left, trying
	}
}

// answers are the clients that ended with one, and without.
func answers(answered, unanswered uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		outcome(model.ClientConnected, 0)(l)
		l.Losses.Clients.Answers = model.ClientAnswers{Known: true, Answered: answered, Unanswered: unanswered}
	}
}

func protocolUnknown(l *model.Listener) { l.Losses.Clients.Answers.Known = false }

func maxQueueOf(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Connector.MaxQueue = &model.Setting[int]{Value: n} }
}

func timesOut(after time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Connector.ConnectionTimeout = &model.Setting[time.Duration]{Value: after} }
}

// resetInAnswer are clients that the server reset before they had acknowledged what it sent.
func resetInAnswer(n uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		c := l.Losses.Clients
		c.ResetInAnswer, c.LetIn = n, c.Outcomes[model.ClientConnected]
	}
}

// alerted are clients of a TLS connector, of which to some the server sent no more than an alert.
func alerted(n, of, checks uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connector.TLS = true
		c := l.Losses.Clients
		c.Alerted, c.LetIn, c.Outcomes[model.ClientConnected] = n, of, of
		c.Answers = model.ClientAnswers{Checks: checks}
	}
}

// tlsEnded are clients, of which some ended their TLS handshake when they had the server's answer.
func tlsEnded(n, of, checks uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		c := l.Losses.Clients
		c.TLSEnded, c.LetIn, c.Outcomes[model.ClientConnected] = n, of, of
		c.Answers = model.ClientAnswers{Checks: checks}
	}
}

// closedByServer is how many of the unanswered were closed by the server.
func closedByServer(n uint64) func(*model.Listener) {
	return func(l *model.Listener) { l.Losses.Clients.Answers.Closed = n }
}

// cookies is whether the kernel sends SYN cookies, and how far a counter moved.
func cookies(sent int, counter string, n uint64) func(*symptoms.Input) {
	return func(e *symptoms.Input) { e.Sysctl["tcp_syncookies"], e.Delta[counter] = sent, n }
}

func refusedAt(addr string) func(*model.Listener) {
	return func(l *model.Listener) { l.Losses.Clients.RefusedAt = netip.MustParseAddrPort(addr) }
}

// losers are the addresses of those who were turned away.
func losers(addrs ...string) func(*model.Listener) {
	return func(l *model.Listener) {
		for _, a := range addrs {
			l.Losses.Clients.Losers = append(l.Losses.Clients.Losers, model.ClientSource{Addr: netip.MustParseAddr(a), Clients: 1})
		}
	}
}

func boundTo(addr string) func(*model.Listener) {
	return func(l *model.Listener) { l.ID.Address = netip.MustParseAddrPort(addr) }
}

// hasMemory is how many bytes of its cgroup's limit the process has.
func hasMemory(used, limit uint64) func(*model.Listener) {
	return func(l *model.Listener) { l.Process.MemoryUsed, l.Process.MemoryLimit = &used, &limit }
}

func onDevice(l *model.Listener) { l.ID.Device = "eth1" }

func moved(counter string, n uint64) func(*symptoms.Input) {
	return func(e *symptoms.Input) { e.Delta[counter] = n }
}

// refusedLocally is how many clients of the namespace itself a reset refused at an address, and how many resets TCP has sent there.
func refusedLocally(at string, n, own uint64) func(*symptoms.Input) {
	return func(e *symptoms.Input) {
		e.Delta[model.RefusedPrefix+at], e.Delta[model.RefusedMissed], e.Delta["OutRsts"] = n, 0, own
	}
}

// theDead is a server of 5 threads at its limit of 100 connections, in most of which nobody
// waits for an answer any more.
func theDead() look {
	return tomcat(5, 100, 10).pool(5).inService(5).waiting(25).with(model.ClientClosed, 70).queue(11, time.Second).do(func(l *model.Listener) {
		l.Connections.Abandoned = 70
	})
}

// inCalls is a server of 8 busy threads, of which some are in open(2) and in write(2).
func inCalls(opening, writing int) look {
	return tomcat(8, 8192, 100).pool(8).inService(8).waiting(16).do(func(l *model.Listener) {
		l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 8, Opening: opening, Writing: writing, Running: 8 - opening - writing}}
	})
}

// socketDrops is what the listener's own socket has dropped beside its queue.
func socketDrops(n uint64) func(*model.Listener) {
	return func(l *model.Listener) { l.Losses.SocketDrops = n }
}

// behindAnswers is a pool of 200 without a request on any connection, of whose threads the idle ones wait with a timeout, one is in write(2), and the
// others wait for a lock.
func behindAnswers(idle int) look {
	return tomcat(200, 8192, 100).pool(200).waiting(12).do(unreadFor(2 * time.Second)).do(func(l *model.Listener) {
		l.Connector.MinSpareThreads = &model.Setting[int]{Value: 10}
		l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 200, Writing: 1, Parked: 199, Timed: idle}}
	})
}

// onUDP is a server of 8 busy threads that wait for an answer over UDP.
func onUDP(peer string) look {
	return inCalls(0, 0).do(func(l *model.Listener) {
		w := &model.Workers{Threads: 8, ReceivingUDP: 8}
		w.UDPPeer, _ = netip.ParseAddrPort(peer)
		l.Process.Downstream.Workers = w
	})
}

// encryptedAt is a pool of 8 behind TLS, n of whose threads were seen to wait for a peer.
func encryptedAt(n int) look {
	return tomcat(8, 8192, 100).pool(8).waiting(2).with(model.Unclassified, 22).do(func(l *model.Listener) {
		l.Connector.TLS = true
		l.Process.Downstream = &model.Downstream{
			Workers: &model.Workers{Threads: 8, Parked: 8 - n},
			Peers:   []model.Peer{{Address: netip.MustParseAddrPort("10.0.3.7:5432"), Connections: n, InFlight: n, Workers: &n, AllInRow: 2, Mean: 2 * time.Second, Oldest: 2 * time.Second}},
		}
	})
}

func noLimits(l *model.Listener) { l.Connector.MaxThreads, l.Connector.MaxConnections = nil, nil }

func noMaxThreads(l *model.Listener) { l.Connector.MaxThreads = nil }

// pollerless is a server whose poller thread has ended.
func pollerless(waiting int) look {
	return tomcat(100, 8192, 100).pool(30).waiting(waiting).do(func(l *model.Listener) { l.Connector.WithoutPoller = true })
}

func limited(n int) func(*model.Listener) {
	return func(l *model.Listener) { l.Connector.MaxConnections.Value = n }
}

// dropsOver is an agent's look at what came after packets were dropped for want of connections: of the clients that
// began in 10 s some were let in; others gave up meanwhile.
func dropsOver(begun, letIn, gaveUp uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		c := model.Clients{AfterDrops: true, Waiting: l.Losses.Clients.Waiting, Observed: 10 * time.Second}
		c.Begun, c.Outcomes[model.ClientConnected], c.Outcomes[model.ClientGaveUp] = begun, letIn, gaveUp
		l.Lately = &model.Lately{Span: 10 * time.Second, Losses: model.Losses{Clients: &c}}
		l.Recent = &model.Recent{Packets: 116, Cause: model.CauseMaxConnections}
		l.AcceptQueue.Peak, l.AcceptQueue.PeakAge = new(l.AcceptQueue.Capacity()), 20*time.Second
	}
}

// gated is a server whose threads wait in a valve.
func gated() look {
	return tomcat(12, 8192, 100).pool(12).inService(12).waiting(28).do(func(l *model.Listener) {
		l.Connector.Gate = &model.Setting[int]{Value: 3, Kind: model.SourceFile, Source: "conf/server.xml line 8, SemaphoreValve"}
	})
}

// stood is for how long the JVM has stood still since it began.
func stood(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Process.SafepointTime = new(d) }
}

// collected is how much of that was collections.
func collected(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Process.GCTime = new(d) }
}

// probed are six threads that do not get on, and the requests of a health check with a timeout of its own.
func probed() look {
	return tomcat(6, 8192, 100).pool(6).inService(6).waiting(6).with(model.ClientClosed, 42).do(func(l *model.Listener) {
		l.Connections.Abandoned, l.Connections.Unread = 42, 25*time.Second
		l.Connector.MaxConnections = nil
	})
}

// reset is what was seen of RSTs that left the listener's port: of the server's own, and those that answered late segments.
func reset(own, late uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		outcome(model.ClientReset, 0)(l)
		l.Losses.Clients.Aborted, l.Losses.Clients.Late, l.Losses.Clients.Begun = own, late, 1
	}
}

// noOutgoing: its process has no connections to others.
func noOutgoing(l *model.Listener) { l.Process.Downstream = &model.Downstream{} }

// closing are connections that the server has closed.
func closing(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		if l.Connections == nil {
			l.Connections = &model.Connections{}
		}
		l.Connections.States = map[string]int{"TIME_WAIT": n}
	}
}

// unacknowledged are connections of clients from which nothing comes back.
func unacknowledged(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		if l.Connections == nil {
			l.Connections = &model.Connections{}
		}
		l.Connections.Accepted += n
		l.Connections.Phases[model.Sending] += n
		l.Connections.Unacknowledged = n
	}
}

// leftInside are connections that their clients closed some time ago, and the server has their requests.
func leftInside(n int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connections.Accepted += n
		l.Connections.Phases[model.ClientClosed] += n
		l.Connections.Left, l.Connections.LeftFor = n, 12*time.Second
	}
}

// forgotten are connections that the server has ended, and something in between no longer knows, and others that it has ended.
func forgotten(n, others int) func(*model.Listener) {
	return func(l *model.Listener) {
		if l.Connections == nil {
			l.Connections = &model.Connections{}
		}
		l.Connections.Forgotten = n
		l.Connections.States = map[string]int{"TIME_WAIT": others, "FIN_WAIT1": n}
	}
}

// droppedInside are clients of which something in front of their sockets takes what they send.
func droppedInside(n uint64) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Losses = &model.Losses{Clients: &model.Clients{Observed: 3 * time.Second}}
		l.Losses.Clients.Unheard = n
	}
}

// leftFor is how long ago the first of them did.
func leftFor(d time.Duration) func(*model.Listener) {
	return func(l *model.Listener) { l.Connections.LeftFor = d }
}

func overTLS(l *model.Listener) { l.Connector.TLS = true }

// closedIdle: of those that have closed none seems to have anything in hand.
func closedIdle(l *model.Listener) {
	l.Connections.ClosedIdle = l.Connections.Phases[model.ClientClosed]
}

func haproxy(l *model.Listener) {
	l.Connector, l.Process.Comm = &model.Connector{Server: model.ServerOther().Name}, "haproxy"
}

func postgres(l *model.Listener) {
	l.Connector, l.Process.Comm = &model.Connector{Server: model.ServerOther().Name}, "postgres"
}

func jdkServer(l *model.Listener) {
	l.Connector = &model.Connector{Server: model.ServerJVM().Name}
}

func ajp(l *model.Listener) { l.Connector.Protocol = "ajp" }

// cameFrom is how many connections come from one address.
func cameFrom(addr string, n int) func(*model.Listener) {
	return func(l *model.Listener) {
		l.Connections.TopPeers = []model.PeerCount{{Address: netip.MustParseAddr(addr), Connections: n}}
	}
}

func narrowRange(e *symptoms.Input) {
	e.Sysctl = map[string]int{"ip_local_port_range_min": 40000, "ip_local_port_range_max": 40099}
}

// standsStill is a poller that waits as where a debugger has suspended it, or at a safepoint.
func standsStill(l *model.Listener) {
	blocked(l)
	l.Process.Downstream.Workers.PollerAway = false
}

func debugged(l *model.Listener) { l.Connector.Debugger = true }

// blocked is a poller that does a worker's work, and requests that nobody reads.
func blocked(l *model.Listener) {
	l.Process.Downstream = &model.Downstream{Workers: &model.Workers{Threads: 10, Parked: 10, PollerBlocked: true, PollerAway: true}}
	l.Connections.Unread = 3 * time.Second
}

// scenariosClaims are causes that hold on positive evidence, each with what refutes it.
func scenariosClaims() []scenario {
	fresh := func() look { return tomcat(200, 8192, 10).pool(10) }
	paused := func() look { return fresh().queue(11, 3*time.Second) }
	pausedBefore := func() look { return fresh().queue(11, 2*time.Second) }
	dead := func() look {
		return tomcat(100, 8192, 100).pool(30).with(model.ClientClosed, 53).do(func(l *model.Listener) {
			l.Connections.Abandoned, l.Connections.Unread = 53, 40*time.Second
		})
	}
	here := boundTo("127.0.0.1:8080")
	return []scenario{
		// Nobody accepts.
		{
			name: "a paused connector", status: saturated, cause: model.CauseNotAccepting, chain: chainOf(acceptQueue),
			now: paused().do(acceptor(model.AcceptorPauses)), before: pausedBefore(), notCodes: []string{"slow_accept"},
		},
		{
			name: "a debugger has suspended all threads", status: saturated, cause: model.CauseNotAccepting,
			now:    tomcat(200, 8192, 100).pool(10).waiting(1).queue(11, 3*time.Second).do(standsStill).do(debugged).do(acceptor(model.AcceptorAtLimit)),
			before: tomcat(200, 8192, 100).pool(10).waiting(1).queue(11, 2*time.Second).do(standsStill).do(debugged).do(acceptor(model.AcceptorAtLimit)), notCodes: []string{"max_connections"},
		},
		{
			name: "all threads stand, and no debugger is connected", status: warning, codes: []string{"requests_stand"},
			now:    tomcat(200, 8192, 100).pool(10).waiting(1).queue(11, 3*time.Second).do(standsStill).do(acceptor(model.AcceptorAtLimit)),
			before: tomcat(200, 8192, 100).pool(10).waiting(1).queue(11, 2*time.Second).do(standsStill).do(acceptor(model.AcceptorAtLimit)), notCodes: []string{"max_connections", "not_accepting", "not_reading", "poller_blocked"},
		},
		{
			name: "a debugger is connected, and the JVM stands still", status: saturated, cause: model.CauseJVMPause, notCodes: []string{"not_accepting", "not_reading"},
			now:    tomcat(200, 8192, 100).pool(10).waiting(1).queue(11, 3*time.Second).do(standsStill).do(debugged).do(acceptor(model.AcceptorAtLimit)).do(totals(300*time.Millisecond, 0, 0)),
			before: tomcat(200, 8192, 100).pool(10).waiting(1).queue(11, 2*time.Second).do(standsStill).do(debugged).do(acceptor(model.AcceptorAtLimit)).do(totals(0, 0, 0)),
		},
		{
			name: "an AJP connector without its secret", status: saturated, cause: model.CauseNotAccepting,
			now:    fresh().queue(7, 3*time.Second).do(acceptor(model.AcceptorMissing)).do(ajp),
			before: fresh().queue(7, 2*time.Second).do(acceptor(model.AcceptorMissing)).do(ajp),
		},
		{
			name: "haproxy at its maxconn", status: saturated, cause: model.CauseNotAccepting,
			now:    fresh().idle(20).queue(7, 3*time.Second).do(acceptor(model.AcceptorMissing)).do(haproxy),
			before: fresh().idle(20).queue(7, 2*time.Second).do(acceptor(model.AcceptorMissing)).do(haproxy),
		},
		{
			name: "a server of the JDK, which accepts and serves with one thread", status: saturated, cause: model.CauseNotAccepting,
			now:    fresh().idle(1).queue(7, 3*time.Second).do(acceptor(model.AcceptorMissing)).do(jdkServer),
			before: fresh().idle(1).queue(7, 2*time.Second).do(acceptor(model.AcceptorMissing)).do(jdkServer),
		},
		{
			name: "a server of the JDK, which takes one client in a second and a half", status: losing, chain: chainOf(acceptQueue),
			now:    fresh().idle(1).queue(11, 3*time.Second).lost(acceptQueue, syn, 40).do(jdkServer),
			before: fresh().idle(1).queue(11, 3*time.Second).do(jdkServer),
		},
		{
			name: "a child has inherited the socket of a server that has ended", status: saturated, cause: model.CauseNotAccepting,
			now:    fresh().queue(7, 3*time.Second).do(acceptor(model.AcceptorMissing)).do(haproxy),
			before: fresh().queue(7, 2*time.Second).do(acceptor(model.AcceptorMissing)).do(haproxy),
		},
		{
			name: "a paused connector drops packets", status: losing, cause: model.CauseNotAccepting, chain: chainOf(acceptQueue),
			now: paused().do(acceptor(model.AcceptorPauses)).lost(model.CauseNotAccepting, syn, 19), before: pausedBefore(),
		},
		{
			name: "a paused connector drops packets, and nothing of that moment was read", status: losing, cause: model.CauseNotAccepting, chain: chainOf(acceptQueue),
			now: paused().do(acceptor(model.AcceptorPauses)).lost(acceptQueue, syn, 19), before: pausedBefore(),
		},
		{
			name: "a paused connector on a machine that is short of CPUs drops packets", status: losing, cause: model.CauseNotAccepting, chain: chainOf(acceptQueue),
			now: paused().do(acceptor(model.AcceptorPauses)).lost(model.CauseCPUSaturated, syn, 19), before: pausedBefore(),
		},
		{
			name: "a paused connector whose limits are not known, and clients who fit into the queue", status: saturated, cause: model.CauseNotAccepting, notCodes: []string{"slow_accept"},
			now:    fresh().queue(5, 3*time.Second).do(acceptor(model.AcceptorPauses)).do(func(l *model.Listener) { l.Connector.MaxConnections = nil }),
			before: fresh().queue(5, 2*time.Second).do(func(l *model.Listener) { l.Connector.MaxConnections = nil }),
		},
		{
			name: "clients wait for seconds, and neither the limits nor the acceptor are known", status: warning,
			now:    fresh().queue(5, 3*time.Second).do(func(l *model.Listener) { l.Connector.MaxConnections = nil }),
			before: fresh().queue(5, 2*time.Second).do(func(l *model.Listener) { l.Connector.MaxConnections = nil }),
		},
		{
			name: "the acceptor sleeps, as all threads do while the JVM stands still", status: saturated, cause: model.CauseJVMPause, chain: chainOf(acceptQueue),
			now: paused().do(acceptor(model.AcceptorPauses)).do(stood(450 * time.Millisecond)), before: pausedBefore().do(stood(0)), notCodes: []string{"not_accepting", "slow_accept"},
		},
		{
			name: "no acceptor thread yet", status: saturated, cause: model.CauseNotAccepting, chain: chainOf(acceptQueue),
			now: paused().do(acceptor(model.AcceptorMissing)), before: pausedBefore(),
		},
		{
			name: "no acceptor thread yet, and only probes of the port have come", status: ok, notCodes: []string{"queue_stands", "not_accepting"},
			now:    fresh().queue(5, 3*time.Second).do(probes(5, 0)).do(acceptor(model.AcceptorMissing)),
			before: fresh().queue(4, 2*time.Second).do(probes(4, 0)),
		},
		{
			name: "the same, one of them since the connections were read", status: ok, notCodes: []string{"queue_stands", "not_accepting"},
			now:    fresh().queue(5, 3*time.Second).do(probes(4, 0)).do(acceptor(model.AcceptorMissing)),
			before: fresh().queue(4, 2*time.Second).do(probes(3, 0)),
		},
		{
			name: "the same, one of them not closed yet", status: ok, notCodes: []string{"queue_stands", "not_accepting"},
			now:    fresh().queue(5, 3*time.Second).do(probes(4, 200*time.Millisecond)).do(acceptor(model.AcceptorMissing)),
			before: fresh().queue(4, 2*time.Second).do(probes(3, 0)),
		},
		{
			name: "the same, and neither the limits nor the acceptor are known yet", status: ok,
			now:    fresh().queue(5, 3*time.Second).do(probes(4, 20*time.Millisecond)).do(func(l *model.Listener) { l.Connector = nil }),
			before: fresh().queue(4, 2*time.Second).do(probes(4, 0)).do(func(l *model.Listener) { l.Connector = nil }),
		},
		{
			name: "no acceptor thread yet, and a client waits behind the probes", status: saturated, cause: model.CauseNotAccepting,
			now:    fresh().queue(6, 3*time.Second).do(probes(5, 1200*time.Millisecond)).do(acceptor(model.AcceptorMissing)),
			before: fresh().queue(5, 2*time.Second).do(probes(4, 200*time.Millisecond)),
		},
		{
			name: "probes fill the accept queue", status: saturated, cause: model.CauseNotAccepting, chain: chainOf(acceptQueue),
			now:    paused().do(probes(11, 0)).do(acceptor(model.AcceptorMissing)),
			before: pausedBefore().do(probes(11, 0)),
		},
		{
			name: "the acceptor slept, and the oldest in the queue is another one", status: saturated, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
			now: fresh().queue(11, 900*time.Millisecond).do(acceptor(model.AcceptorPauses)), before: pausedBefore(),
		},
		{
			name: "nothing is accepted, and what the acceptor does could not be read", status: saturated, chain: chainOf(acceptQueue),
			now: paused(), before: pausedBefore(), codes: []string{"limits_unknown"}, notCodes: []string{"slow_accept", "not_accepting"},
		},
		{
			name: "nothing is accepted because all connections are taken", status: saturated, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now:    tomcat(200, 60, 10).pool(70).inService(60).queue(11, 3*time.Second).do(acceptor(model.AcceptorPauses)),
			before: tomcat(200, 60, 10).pool(70).inService(60).queue(11, 2*time.Second),
		},

		// A dead server whose clients have left.
		{name: "all clients have left, and their requests are unread", status: warning, codes: []string{"requests_stand"}, now: dead(), before: dead()},
		{
			name: "the same, and the poller has ended", status: saturated, cause: model.CauseNotReading,
			now:    dead().do(func(l *model.Listener) { l.Connector.WithoutPoller = true }),
			before: dead().do(func(l *model.Listener) { l.Connector.WithoutPoller = true }),
		},
		{
			name: "the same, and how many threads there are is not known", status: warning, codes: []string{"requests_stand"},
			now:    dead().do(func(l *model.Listener) { l.Connector.PoolThreads = nil }),
			before: dead().do(func(l *model.Listener) { l.Connector.PoolThreads = nil }),
		},

		{
			name: "all threads stand behind their answers", status: saturated, cause: threads, chain: chainOf(threads),
			now: behindAnswers(0), before: behindAnswers(0),
		},
		{
			name: "the same, not seen in the look before", status: warning, codes: []string{"requests_stand"},
			now: behindAnswers(0), before: behindAnswers(0).do(func(l *model.Listener) { l.Process.Downstream = nil }),
		},
		{
			name: "idle threads wait with a timeout, and requests are unread", status: warning, codes: []string{"requests_stand"}, notCodes: []string{"not_reading"},
			now: behindAnswers(150), before: behindAnswers(150),
		},
		{
			name: "the poller's thread is not there, and requests wait", status: saturated, cause: model.CauseNotReading,
			now: pollerless(5), before: pollerless(5),
		},
		{
			name: "the same, and all threads wait for the rest of a body", status: saturated, cause: model.CauseNotReading, chain: chainOf(threads),
			now: pollerless(46).pool(3).inService(3).do(func(l *model.Listener) { l.Connector.MaxThreads.Value = 3 }), before: pollerless(40).pool(3).inService(3).do(func(l *model.Listener) { l.Connector.MaxThreads.Value = 3 }),
		},
		{
			name: "the same, and all connections are taken", status: losing, cause: model.CauseNotReading, chain: chainOf(acceptQueue, maxConns),
			now: pollerless(60).do(limited(60)).queue(101, 2*time.Second).lost(maxConns, syn, 20), before: pollerless(60).do(limited(60)).queue(101, time.Second),
		},
		{
			name: "the same, and their limit is not known", status: losing, cause: model.CauseNotReading, chain: chainOf(acceptQueue),
			now: pollerless(60).do(noLimits).queue(101, 2*time.Second).lost(acceptQueue, syn, 20), before: pollerless(60).do(noLimits).queue(101, time.Second),
		},
		{
			name: "the poller's thread is not there, and nobody waits", status: warning, cause: model.CauseNotReading,
			now: pollerless(0), before: pollerless(0),
		},
		{
			name: "a user that may have no more threads", status: model.StatusOK, codes: []string{"user_threads_limit"},
			now: fresh().do(func(l *model.Listener) { l.Process.UserThreads, l.Process.UserThreadsLimit = new(42), new(42) }), before: fresh(),
		},

		// Sockets and threads of others.
		{
			name: "the server before still has connections of the port", status: model.StatusOK, codes: []string{"other_process"},
			now: tomcat(40, 25, 100).pool(40).inService(24).do(func(l *model.Listener) {
				l.Connections.Other = &model.OtherProcess{PID: 4711, Comm: "java", Connections: 24}
			}), before: tomcat(40, 25, 100).pool(40).inService(24),
		},
		{
			name: "a SemaphoreValve of 3 before 12 threads", status: saturated, cause: model.CauseMaxThreads, chain: chainOf(model.CauseMaxThreads), codes: []string{"semaphore_valve"},
			now: gated(), before: gated(),
		},

		{
			name: "a burst that is over, of whose moment nothing was read", status: losing, chain: chainOf(acceptQueue), codes: []string{"limits_unknown"},
			now: fresh().lost(acceptQueue, syn, 269), before: fresh(),
		},

		{
			name: "all threads are busy, and the JVM stands still for a quarter of the time", status: saturated, cause: threads, chain: chainOf(threads), codes: []string{"jvm_pause"},
			now:    tomcat(10, 200, 100).pool(10).inService(10).waiting(30).do(stood(260 * time.Millisecond)),
			before: tomcat(10, 200, 100).pool(10).inService(10).waiting(30).do(stood(0)),
		},

		{
			name: "the JVM stands still for half of the time, for histograms of its heap", status: saturated, cause: model.CauseJVMPause, chain: chainOf(threads),
			now:    tomcat(10, 200, 100).pool(10).inService(10).waiting(30).do(stood(500 * time.Millisecond)).do(collected(20 * time.Millisecond)),
			before: tomcat(10, 200, 100).pool(10).inService(10).waiting(30).do(stood(0)).do(collected(0)),
		},
		{
			name: "a safepoint that has lasted for seconds, with requests in hand", status: saturated, cause: model.CauseJVMPause, chain: chainOf(),
			now:    fresh().inService(9).do(stood(0)).do(func(l *model.Listener) { l.Process.InSafepoint = new(4 * time.Second) }),
			before: fresh().inService(9).do(stood(0)),
		},
		{
			name: "the same, and nobody is there", status: ok, chain: chainOf(),
			now:    fresh().idle(9).do(stood(0)).do(func(l *model.Listener) { l.Process.InSafepoint = new(4 * time.Second) }),
			before: fresh().idle(9).do(stood(0)),
		},
		{
			name: "the JVM stands still for most of the time, and not for collections", status: warning, cause: model.CauseJVMPause,
			now:    fresh().inService(9).do(stood(700 * time.Millisecond)).do(collected(20 * time.Millisecond)),
			before: fresh().inService(9).do(stood(0)).do(collected(0)),
		},
		{
			name: "the same, for collections of a heap that is full", status: warning, cause: model.CauseJVMPause,
			now: fresh().inService(9).do(stood(700 * time.Millisecond)).do(collected(690 * time.Millisecond)).do(func(l *model.Listener) {
				l.Process.OldUsed, l.Process.OldMax = new(int64(95<<20)), new(int64(100<<20))
			}),
			before: fresh().inService(9).do(stood(0)).do(collected(0)),
		},
		{
			name: "the same, and nobody is served", status: ok, chain: chainOf(),
			now:    fresh().idle(9).do(stood(700 * time.Millisecond)).do(collected(20 * time.Millisecond)),
			before: fresh().idle(9).do(stood(0)).do(collected(0)),
		},
		{
			name: "a long safepoint in a process that has nearly all the memory of its cgroup", status: saturated, cause: model.CauseJVMPause,
			now: fresh().inService(9).queue(4, 3*time.Second).do(stood(0)).do(standing(3 * time.Second)).do(hasMemory(183<<20, 185<<20)), before: fresh().inService(9).queue(3, 2*time.Second).do(stood(0)),
		},
		{
			name: "the same in one that has some of it", status: saturated, cause: model.CauseJVMPause,
			now: fresh().inService(9).queue(4, 3*time.Second).do(stood(0)).do(standing(3 * time.Second)).do(hasMemory(140<<20, 185<<20)), before: fresh().inService(9).queue(3, 2*time.Second).do(stood(0)),
		},
		{
			name: "the JVM stands still for half of the time, and all clients are served", status: ok, codes: []string{"jvm_pause"},
			now: fresh().inService(7).do(stood(500 * time.Millisecond)), before: fresh().inService(7).do(stood(0)),
		},

		// What waits is a probe's, which has given up.
		{
			name: "a probe's requests before busy threads", status: saturated, cause: threads, chain: chainOf(threads),
			now: probed(), before: probed(),
		},

		// A closed client's request is not work.
		{
			name: "20 slots of asynchronous requests whose clients have closed", status: saturated, cause: maxConns, chain: chainOf(maxConns), notCodes: []string{"max_threads"},
			now:    tomcat(200, 20, 50).pool(10).with(model.ClientClosed, 20).queue(10, 3*time.Second),
			before: tomcat(200, 20, 50).pool(10).with(model.ClientClosed, 20).queue(10, 2*time.Second),
		},
		{
			name: "8 threads whose clients have closed, of 10", status: saturated, cause: maxConns, chain: chainOf(maxConns),
			now:    tomcat(200, 8, 50).pool(10).with(model.ClientClosed, 8).queue(10, 3*time.Second),
			before: tomcat(200, 8, 50).pool(10).with(model.ClientClosed, 8).queue(10, 2*time.Second),
		},

		// Threads that read the rest of a request that they have answered.
		{
			name: "requests stand behind as many answered connections as there are threads", status: warning, notCodes: []string{"not_reading"},
			now:    tomcat(6, 60, 100).pool(6).waiting(24).with(model.Idle, 6).do(unreadFor(3 * time.Second)).do(noMaxThreads),
			before: tomcat(6, 60, 100).pool(6).waiting(24).with(model.Idle, 6).do(unreadFor(2 * time.Second)).do(noMaxThreads),
		},

		// Blocked in a call that is neither lock nor socket.
		{
			name: "8 handlers in open(2) of a hung mount", status: saturated, cause: threads, chain: chainOf(threads), codes: []string{"waiting_for_file"},
			now: inCalls(8, 0), before: inCalls(8, 0),
		},
		{
			name: "7 handlers in write(2) on a full pipe", status: saturated, cause: threads, chain: chainOf(threads), codes: []string{"waiting_for_file"},
			now: inCalls(0, 7), before: inCalls(0, 7),
		},
		{
			name: "8 handlers look a name up, and the name server does not answer", status: saturated, cause: threads, chain: chainOf(threads), codes: []string{"waiting_for_socket"},
			now: onUDP("10.0.0.2:53"), before: onUDP("10.0.0.2:53"),
		},
		{
			name: "8 handlers wait for UDP from a socket that is not connected", status: saturated, cause: threads, chain: chainOf(threads), codes: []string{"waiting_for_socket"},
			now: onUDP(""), before: onUDP(""),
		},
		{
			name: "one of 8 in open(2)", status: saturated, cause: threads, chain: chainOf(threads), notCodes: []string{"waiting_for_file"},
			now: inCalls(1, 0), before: inCalls(1, 0),
		},

		{
			name: "TLS: every thread of the pool was seen to wait for a peer", status: saturated, cause: model.CauseDownstream, chain: chainOf(threads, model.CauseDownstream),
			now: encryptedAt(8), before: encryptedAt(8),
		},

		// Queues of the dead.
		{
			name: "most of those who wait for a thread have given up", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns, threads), codes: []string{"max_threads"},
			now: theDead().lost(maxConns, syn, 30), before: theDead(),
		},

		// Clients' outcomes count.
		{
			name: "bound to loopback, asked at the interface's address", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().do(here).do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh().do(here),
		},
		{
			name: "bound to loopback, where a proxy is connected, asked at the interface's address", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh().idle(8).do(here),
		},
		{
			name: "a scanner is refused at the public address, and a proxy is connected at loopback", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"listens_elsewhere"},
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 1)).do(refusedAt("203.0.113.9:8080")), before: fresh().idle(8).do(here),
		},
		{
			name: "nobody but one is there, who is refused at the interface's address", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"listens_elsewhere"},
			now: fresh().do(here).do(outcome(model.ClientRefused, 1)).do(refusedAt("10.0.0.2:8080")), before: fresh().do(here),
		},
		{
			name: "nobody has been let in yet, and one's SYNs have no answer", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"before_listener"},
			now: fresh().do(outcome(model.ClientGaveUp, 1)), before: fresh(),
		},
		{
			name: "nobody but three are there, who are refused at the interface's address", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().do(here).do(outcome(model.ClientRefused, 3)).do(refusedAt("10.0.0.2:8080")).do(losers("10.0.0.7")), before: fresh().do(here),
		},
		{
			name: "a scanner tries three times at the public address, and a proxy is connected at loopback", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"listens_elsewhere"},
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 3)).do(refusedAt("203.0.113.9:8080")).do(losers("198.51.100.7")), before: fresh().idle(8).do(here),
		},
		{
			name: "one client tries twelve times, and a proxy is connected at loopback", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 12)).do(refusedAt("203.0.113.9:8080")).do(losers("198.51.100.7")), before: fresh().idle(8).do(here),
		},
		{
			name: "one client keeps trying by and by, and a proxy is connected at loopback", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 3)).do(refusedAt("203.0.113.9:8080")).do(losers("198.51.100.7")).do(func(l *model.Listener) {
				l.Losses.Clients.Losers[0].Clients = 12
			}), before: fresh().idle(8).do(here),
		},
		{
			name: "three of several addresses are refused, and a proxy is connected at loopback", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 3)).do(refusedAt("203.0.113.9:8080")).do(losers("198.51.100.7", "198.51.100.8")), before: fresh().idle(8).do(here),
		},
		{
			name: "three of this machine are refused, and a proxy is connected at loopback", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().idle(8).do(here).do(outcome(model.ClientRefused, 3)).do(refusedAt("10.0.0.2:8080")).do(losers("10.0.0.2")), before: fresh().idle(8).do(here),
		},
		{
			name: "the balancer that brings all others is refused three times", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().idle(8).do(boundTo("10.0.0.1:8080")).do(outcome(model.ClientRefused, 3)).do(refusedAt("10.0.0.2:8080")).do(losers("10.0.0.7")).do(func(l *model.Listener) {
				l.Losses.Clients.Proxies = l.Losses.Clients.Losers
			}), before: fresh().idle(8).do(boundTo("10.0.0.1:8080")),
		},
		{
			name: "a rule drops what a scanner sends three times, and a proxy is connected", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"before_listener"},
			now: fresh().idle(8).do(outcome(model.ClientGaveUp, 3)).do(losers("198.51.100.7")), before: fresh().idle(8), change: moved("nft inet firewall input handle 5 drop dport 8080", 9),
		},
		{
			name: "a local check is let in, and five are refused at the interface's address", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().do(here).do(outcome(model.ClientRefused, 5)).do(outcome(model.ClientConnected, 9)).do(refusedAt("10.0.0.2:8080")), before: fresh().do(here),
		},
		{
			name: "a scanner asks five times, and hundreds get in", status: warning, codes: []string{"clients_kept_out"},
			now: fresh().do(here).do(outcome(model.ClientRefused, 5)).do(outcome(model.ClientConnected, 300)).do(refusedAt("203.0.113.9:8080")), before: fresh().do(here),
		},
		{
			name: "a rule drops a scanner's SYNs, and others get in", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"before_listener"},
			now: fresh().do(outcome(model.ClientGaveUp, 1)).do(outcome(model.ClientConnected, 40)), before: fresh(), change: moved("nft inet firewall input handle 5 drop dport 8080", 3),
		},
		{
			name: "a scanner's SYNs have no answer so far, in two snapshots, and others are connected", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"before_listener"},
			now: fresh().idle(8).do(stillTry(1)), before: fresh().idle(8).do(stillTry(1)),
		},
		{
			name: "a rule rejects a scanner with a reset, and others get in", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"before_listener"},
			now: fresh().do(outcome(model.ClientRefused, 2)).do(outcome(model.ClientConnected, 40)).do(refusedAt("203.0.113.9:8080")), before: fresh(), change: moved("nft ip filter INPUT handle 9 reject dport 8080", 2),
		},
		{
			name: "nobody that comes gets in, and connections are held", status: losing, cause: model.CauseBeforeListener,
			now: fresh().idle(80).do(outcome(model.ClientGaveUp, 4)), before: fresh().idle(80),
		},
		{
			name: "most are refused, and packets were dropped before", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientRefused, 1741)).do(outcome(model.ClientGaveUp, 61)).do(refusedAt("10.0.0.2:8080")).do(func(l *model.Listener) {
				l.Recent = &model.Recent{Packets: 9, Cause: model.CauseSlowAccept}
			}), before: fresh(),
		},
		{
			name: "most are refused, and packets are dropped", status: losing, cause: model.CauseBeforeListener, chain: chainOf(acceptQueue),
			now: fresh().lost(model.CauseSlowAccept, syn, 9).do(outcome(model.ClientRefused, 1741)).do(refusedAt("10.0.0.2:8080")), before: fresh(),
		},
		{
			name: "most packets are dropped, and some clients refused", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
			now: fresh().lost(model.CauseSlowAccept, syn, 900).do(outcome(model.ClientRefused, 4)).do(refusedAt("10.0.0.2:8080")), before: fresh(),
		},
		{
			name: "most were refused before it listened, and packets were dropped", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
			now:    fresh().lost(model.CauseSlowAccept, syn, 9).do(outcome(model.ClientRefused, 1741)).do(refusedAt("10.0.0.2:8080")).do(func(l *model.Listener) { l.Losses.Clients.RefusedBefore = true }),
			before: fresh(),
		},
		{
			name: "refused at the address that is listened on: rejected in front of it", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh(),
		},
		{
			name: "SYNs that nothing answers, and the listener dropped none", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(),
		},
		{
			name: "SYNs that nothing has answered so far, in two snapshots", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(stillTry(8)), before: fresh().do(stillTry(5)), change: moved("nft inet firewall input handle 5 drop dport 8080", 31),
		},
		{
			name: "no handshakes are followed, and local clients' SYNs have no answer", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(localTrying(3, 1)), before: fresh(),
		},
		{
			name: "their SYN-ACKs may be lost", status: ok, now: fresh().do(localTrying(3, 3)), before: fresh(),
		},
		{
			name: "their SYNs are older than the interval", status: ok,
			now: fresh().do(localTrying(3, 0)).do(func(l *model.Listener) { l.Connections.Age = time.Minute }), before: fresh(),
		},
		{
			name: "local clients' SYNs have no answer, and the listener dropped packets", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
			now: fresh().lost(model.CauseSlowAccept, syn, 9).do(localTrying(3, 0)), before: fresh(),
		},
		{
			name: "connections are held at an address that was removed", status: warning, chain: chainOf(),
			now: fresh().inService(2).do(missing(false)), before: fresh().inService(2),
		},
		{
			name: "an address that a standby waits for", status: ok,
			now: fresh().do(missing(true)), before: fresh(),
		},
		{
			name: "no route leads to an address, and clients are let in there all the same", status: ok,
			now: fresh().inService(2).do(missing(false)).do(outcome(model.ClientConnected, 9)).do(func(l *model.Listener) { l.Losses.Clients.LetIn = 9 }), before: fresh().inService(2),
		},
		{
			name: "no route leads to an address, and connections come to its network namespace, where no handshakes are followed", status: ok,
			now: fresh().inService(2).do(missing(false)), before: fresh().inService(2), change: moved("PassiveOpens", 9),
		},
		{
			name: "handshakes are followed, and local clients' SYNs have no answer at the moment", status: ok,
			now: fresh().do(stillTry(3)).do(localTrying(3, 0)), before: fresh(),
		},
		{
			name: "no handshakes are followed, and local clients are refused", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(localTrying(2, 0)), before: fresh(), change: refusedLocally("127.0.0.1:8080", 51, 9),
		},
		{
			name: "more of them than the kernel has kept", status: losing, cause: model.CauseBeforeListener,
			now: fresh(), before: fresh(), change: func(e *symptoms.Input) {
				refusedLocally("127.0.0.1:8080", 180, 0)(e)
				e.Delta[model.RefusedMissed] = 1
			},
		},
		{
			name: "local clients are refused, and the listener dropped a few packets", status: losing, cause: model.CauseBeforeListener, chain: chainOf(acceptQueue),
			now: fresh().lost(model.CauseSlowAccept, syn, 9), before: fresh(), change: refusedLocally("127.0.0.1:8080", 51, 0),
		},
		{
			name: "local clients are refused, and the listener dropped many packets", status: losing, cause: model.CauseSlowAccept, chain: chainOf(acceptQueue),
			now: fresh().lost(model.CauseSlowAccept, syn, 30), before: fresh(), change: refusedLocally("127.0.0.1:8080", 51, 0),
		},
		{
			name: "local clients are refused, and those that had been let in fill the accept queue", status: losing, cause: model.CauseBeforeListener, chain: chainOf(acceptQueue),
			now: fresh().queue(11, time.Second), before: fresh().queue(11, time.Second), change: refusedLocally("127.0.0.1:8080", 51, 0),
		},
		{
			name: "local clients are refused by TCP itself, before it listened", status: ok,
			now: fresh(), before: fresh(), change: refusedLocally("127.0.0.1:8080", 51, 51),
		},
		{
			name: "local clients are refused, and how many resets TCP has sent is not known", status: ok,
			now: fresh(), before: fresh(), change: func(e *symptoms.Input) {
				refusedLocally("127.0.0.1:8080", 51, 0)(e)
				delete(e.Delta, "OutRsts")
			},
		},
		{
			name: "two local clients are refused", status: ok, now: fresh(), before: fresh(), change: refusedLocally("127.0.0.1:8080", 2, 0),
		},
		{
			name: "local clients are refused at another address than the listener's", status: ok,
			now: fresh().do(here), before: fresh().do(here), change: refusedLocally("10.0.0.2:8080", 51, 0),
		},
		{
			name: "local clients are refused at another port", status: ok, now: fresh(), before: fresh(), change: refusedLocally("127.0.0.1:8081", 51, 0),
		},
		{
			name: "local clients were refused, and the listener had closed meanwhile", status: ok,
			now: fresh(), before: fresh(), change: func(e *symptoms.Input) {
				refusedLocally("127.0.0.1:8080", 51, 0)(e)
				e.Closed = &model.Closed{Ago: time.Second}
			},
		},
		{
			name: "handshakes are followed, and show no client that was refused", status: ok,
			now: fresh().do(outcome(model.ClientConnected, 9)), before: fresh(), change: refusedLocally("127.0.0.1:8080", 51, 0),
		},
		{
			name: "SYNs that nothing has answered at the moment", status: ok,
			now: fresh().do(stillTry(8)), before: fresh(),
		},
		{
			name: "SYN-ACKs that did not reach those that gave up", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(unreached(92, 0)), before: fresh(),
		},
		{
			name: "SYN-ACKs that do not reach those that still try, in two snapshots", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(unreached(0, 8)), before: fresh().do(unreached(0, 5)),
		},
		{
			name: "clients that repeat an answered SYN at the moment", status: ok,
			now: fresh().do(unreached(0, 8)), before: fresh(),
		},
		{
			name: "SYN-ACKs that do not reach a few of many", status: ok,
			now: fresh().do(unreached(20, 4)).do(outcome(model.ClientConnected, 500)), before: fresh().do(unreached(0, 5)),
		},
		{
			name: "SYN-ACKs that do not reach two of twelve", status: ok,
			now: fresh().do(unreached(2, 0)).do(outcome(model.ClientConnected, 10)), before: fresh(),
		},
		{
			name: "SYN-ACKs that do not reach one of ten", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(unreached(50, 4)).do(outcome(model.ClientConnected, 500)), before: fresh().do(unreached(0, 5)),
		},
		{
			name: "SYN-ACKs that do not reach anybody, and the listener dropped packets before", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(unreached(0, 30)).do(func(l *model.Listener) { l.Recent = &model.Recent{Packets: 40, Cause: maxConns} }), before: fresh().do(unreached(0, 30)),
		},
		{
			name: "defaults that what could not be read may overrule are no numbers to count to", status: ok,
			now: fresh().inService(7).do(doubtful), before: fresh().inService(7).do(doubtful),
		},
		{
			name: "requests that were there before clients were followed", status: ok, codes: []string{"clients_before_unknown"},
			now: fresh().inService(7).do(outcome(model.ClientGaveUp, 0)).do(inServiceFor(2 * time.Second)), before: fresh().inService(7), change: since(2 * time.Second),
		},
		{
			name: "requests of clients that came while they were followed", status: ok, notCodes: []string{"clients_before_unknown"},
			now: fresh().inService(7).do(outcome(model.ClientGaveUp, 0)).do(inServiceFor(500 * time.Millisecond)), before: fresh().inService(7), change: since(2 * time.Second),
		},
		{
			name: "none of those that came has had an answer", status: ok, codes: []string{"answers_unknown"},
			now: fresh().inService(7).do(noneAnswered(7, 2*time.Second)), before: fresh().inService(7),
		},
		{
			name: "none of those that came in six seconds has had an answer", status: model.StatusWarning, codes: []string{"answers_unknown"},
			now: fresh().inService(7).do(noneAnswered(7, 6*time.Second)), before: fresh().inService(7),
		},
		{
			name: "two of six seconds are no pattern", status: ok, codes: []string{"answers_unknown"},
			now: fresh().inService(2).do(noneAnswered(2, 6*time.Second)), before: fresh().inService(2),
		},
		{
			name: "who came and asks for nothing waits for none", status: ok, notCodes: []string{"answers_unknown"},
			now: fresh().do(noneAnswered(7, 6*time.Second)), before: fresh(),
		},
		{
			name: "no client has tried", status: ok, codes: []string{"nobody_tried"},
			now: fresh().do(outcome(model.ClientGaveUp, 0)), before: fresh(),
		},
		{
			name: "the reverse path filter drops them", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("IPReversePathFilter", 30),
		},
		{
			name: "a reverse path filter that dropped two of ten is not it", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("IPReversePathFilter", 2),
		},
		{
			name: "hosts that share an address use a port again whose connection is in TIME_WAIT", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("PAWSTimewait", 30),
		},
		{
			name: "a netfilter rule with a counter drops them", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("nft inet firewall input handle 5 drop dport 8080", 31),
		},
		{
			name: "a netfilter rule drops for another port", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("nft inet firewall input handle 5 drop dport 9999", 31),
		},
		{
			name: "no counter accounts for them, and connection tracking's are known", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("nf_conntrack_drop", 0),
		},
		{
			name: "no counter accounts for them, and those of connection tracking and of the rules are known", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta[droppoints.ConntrackDrop], e.Delta[model.RulesRead] = 0, 1
			},
		},
		{
			name: "the same, and the rules were not read again", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta[droppoints.ConntrackDrop], e.Delta[model.RulesRead] = 0, 0
			},
		},
		{
			name: "connection tracking is full", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta[droppoints.ConntrackDrop] = 31
				e.Sysctl = map[string]int{"nf_conntrack_count": 262145, "nf_conntrack_max": 262144}
			},
		},
		{
			name: "connection tracking cannot insert what an address translation makes alike", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta[droppoints.ConntrackDrop], e.Delta[droppoints.ConntrackInsert] = 31, 31
			},
		},
		{
			name: "signatures that the listener does not know", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: moved("TCPMD5Unexpected", 31),
		},
		{
			name: "the socket drops them, and not for want of room", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)).do(socketDrops(30)), before: fresh(), change: moved("ListenDrops", 0),
		},
		{
			name: "the socket has dropped one packet", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)).do(socketDrops(1)), before: fresh(), change: moved("ListenDrops", 0),
		},
		{
			name: "a netfilter rule with a counter rejects them", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh(), change: moved("nft ip filter INPUT handle 9 reject dport 8080", 12),
		},
		{
			name: "SYNs are dropped, and as many packets have no route", status: losing, cause: model.CauseBeforeListener,
			now: fresh().lost(model.CauseSynBacklog, syn, 60).do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: cookies(1, "OutNoRoutes", 61),
		},
		{
			name: "SYNs are dropped, and as many SYN-ACKs cannot be delivered", status: losing, cause: model.CauseBeforeListener,
			now: fresh().lost(model.CauseSynBacklog, syn, 60).do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: cookies(1, "InDestUnreachs", 60),
		},
		{
			name: "SYNs are dropped, and a few ICMP messages come", status: losing, cause: model.CauseSynBacklog, chain: chainOf(),
			now: fresh().lost(model.CauseSynBacklog, syn, 60).do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: cookies(1, "InDestUnreachs", 6),
		},
		{
			name: "SYNs are dropped, and a few packets have no route", status: losing, cause: model.CauseSynBacklog, chain: chainOf(),
			now: fresh().lost(model.CauseSynBacklog, syn, 60).do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: cookies(1, "OutNoRoutes", 6),
		},
		{
			name: "SYNs are dropped at the SYN queue, and packets have no route", status: losing, cause: model.CauseSynBacklog, chain: chainOf(model.CauseSynBacklog),
			now: fresh().lost(model.CauseSynBacklog, syn, 60).do(outcome(model.ClientGaveUp, 10)), before: fresh(), change: func(e *symptoms.Input) {
				cookies(0, "OutNoRoutes", 61)(e)
				e.Delta["TCPReqQFullDrop"] = 60
			},
		},
		{
			name: "TCP itself refuses clients at the address that is listened on", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh(), change: moved("OutRsts", 13),
		},
		{
			name: "it is bound to a device, and TCP itself refuses clients at its address", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().do(onDevice).do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh().do(onDevice), change: moved("OutRsts", 13),
		},
		{
			name: "the same by the sockets of local clients", status: losing, cause: model.CauseListensElsewhere,
			now: fresh().do(onDevice), before: fresh().do(onDevice), change: refusedLocally("10.0.0.2:8080", 12, 13),
		},
		{
			name: "it is bound to a device, and a rule rejects clients", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(onDevice).do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")), before: fresh().do(onDevice), change: func(e *symptoms.Input) {
				e.Delta["OutRsts"], e.Delta["nft ip filter INPUT handle 9 reject dport 8080"] = 0, 12
			},
		},
		{
			name: "clients were refused before it listened", status: losing,
			now: fresh().do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")).do(func(l *model.Listener) { l.Losses.Clients.RefusedBefore = true }), before: fresh(),
		},
		{
			name: "the same, and as its predecessor ended one was reset", status: losing,
			now: fresh().do(outcome(model.ClientRefused, 797)).do(outcome(model.ClientReset, 1)).do(refusedAt("10.0.0.2:8080")).do(func(l *model.Listener) { l.Losses.Clients.RefusedBefore = true }), before: fresh(),
		},
		{
			name: "a few were refused before it listened, and it resets as many", status: losing, cause: model.CauseServerResets,
			now: fresh().do(outcome(model.ClientRefused, 7)).do(outcome(model.ClientReset, 7)).do(refusedAt("10.0.0.2:8080")).do(func(l *model.Listener) { l.Losses.Clients.RefusedBefore = true }), before: fresh(),
		},
		{
			name: "the same, and the server before was full", status: losing, chain: chainOf(),
			now: fresh().do(outcome(model.ClientRefused, 12)).do(refusedAt("10.0.0.2:8080")).do(func(l *model.Listener) {
				l.Losses.Clients.RefusedBefore, l.Recent = true, &model.Recent{Packets: 40, Cause: maxConns}
			}), before: fresh(),
		},
		{
			name: "clients gave up whose packets the listener dropped a minute ago", status: losing, cause: maxConns, chain: chainOf(),
			now: fresh().do(outcome(model.ClientGaveUp, 10)).do(func(l *model.Listener) { l.Recent = &model.Recent{Packets: 40, Cause: maxConns} }), before: fresh(),
		},
		{
			name: "one client of four leaves without an answer", status: warning, chain: chainOf(),
			now: fresh().do(answers(3, 1)), before: fresh(),
		},
		{
			name: "the only two clients leave without an answer", status: warning, chain: chainOf(),
			now: fresh().do(answers(0, 2)), before: fresh(),
		},
		{
			name: "one of four leaves without an answer, and a scanner is refused", status: warning, chain: chainOf(), codes: []string{"clients_kept_out"},
			now: fresh().do(here).do(answers(3, 1)).do(outcome(model.ClientConnected, 4)).do(outcome(model.ClientRefused, 1)).do(refusedAt("203.0.113.9:8080")), before: fresh().do(here),
		},
		{
			name: "three of twenty leave without an answer", status: losing, chain: chainOf(),
			now: fresh().do(answers(17, 3)), before: fresh(),
		},
		{
			name: "clients let in without an answer since a restart", status: losing, chain: chainOf(),
			now: fresh().do(answers(0, 4)).do(outcome(model.ClientConnected, 4)).do(func(l *model.Listener) {
				l.Recent = &model.Recent{QueueResets: 40, Cause: model.CauseListenerClosed}
			}), before: fresh(),
		},
		{
			name: "clients let in without an answer after a trouble that is over", status: losing, chain: chainOf(),
			now: fresh().do(answers(0, 40)).do(outcome(model.ClientConnected, 40)).do(outcome(model.ClientStalled, 5)).do(func(l *model.Listener) {
				l.Recent = &model.Recent{Packets: 40, Cause: maxConns, Over: true}
			}), before: fresh(),
		},
		{
			name: "clients let in without an answer, and nobody reads", status: losing, codes: []string{"requests_stand"}, chain: chainOf(),
			now:    tomcat(200, 8192, 100).pool(100).inService(12).waiting(28).do(unreadFor(2 * time.Second)).do(answers(0, 4)).do(outcome(model.ClientConnected, 4)),
			before: tomcat(200, 8192, 100).pool(100).inService(12).waiting(28).do(unreadFor(2 * time.Second)),
		},
		{
			name: "clients gave up that began when the trouble of a minute ago was over", status: losing, cause: model.CauseBeforeListener,
			now: fresh().do(outcome(model.ClientGaveUp, 10)).do(func(l *model.Listener) {
				l.Recent, l.Losses.Clients.AfterDrops = &model.Recent{Packets: 40, Cause: maxConns}, true
			}), before: fresh(),
		},
		{
			name: "a rule drops clients that still try, and the listener dropped packets before", status: losing, cause: model.CauseBeforeListener, chain: chainOf(acceptQueue, maxConns),
			now: fresh().lost(maxConns, syn, 18).do(stillTry(100)).do(func(l *model.Listener) {
				l.Recent, l.Losses.Clients.AfterDrops = &model.Recent{Packets: 18, Cause: maxConns}, true
			}), before: fresh(), change: moved("nft inet drawn in handle 2 drop dport 8080", 221),
		},
		{
			name: "more clients gave up than the packets account for that were dropped before", status: losing, cause: model.CauseBeforeListener, chain: chainOf(acceptQueue, maxConns),
			now: fresh().lost(maxConns, syn, 16).do(outcome(model.ClientGaveUp, 31)).do(stillTry(146)).do(func(l *model.Listener) {
				l.Recent, l.Losses.Clients.AfterDrops = &model.Recent{Packets: 16, Cause: maxConns}, true
			}), before: fresh(),
		},
		{
			name: "those who gave up lately had begun before the listener dropped its last packet, but for one", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now: fresh().lost(maxConns, syn, 23).do(outcome(model.ClientGaveUp, 46)).do(stillTry(1)).do(func(l *model.Listener) {
				l.Recent, l.Losses.Clients.AfterDrops, l.Losses.Clients.Begun = &model.Recent{Packets: 400, Cause: maxConns}, true, 15
			}), before: fresh(),
		},
		{
			name: "clients that begin now get no answer, and the listener drops nothing any more", status: losing, cause: model.CauseBeforeListener, chain: chainOf(),
			now: fresh().lost(maxConns, syn, 116).do(stillTry(11)).do(dropsOver(75, 48, 16)), before: fresh().do(stillTry(9)),
		},
		{
			name: "clients that begin now get no answer, and the listener drops packets as if clients of before repeated them", status: losing, cause: maxConns, chain: chainOf(),
			now: fresh().lost(maxConns, syn, 116).do(stillTry(11)).do(dropsOver(75, 48, 16)).do(func(l *model.Listener) {
				l.Lately.Delta = model.Counters{"ListenDrops": 14}
			}), before: fresh().do(stillTry(9)),
		},
		{
			name: "clients give up whose packets were dropped, and who begins now is let in", status: losing, cause: maxConns, chain: chainOf(),
			now: fresh().lost(maxConns, syn, 116).do(stillTry(11)).do(dropsOver(49, 48, 16)), before: fresh().do(stillTry(9)),
		},
		{
			name: "as many gave up as packets were dropped", status: losing, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now: fresh().lost(maxConns, syn, 160).do(outcome(model.ClientGaveUp, 31)).do(stillTry(146)).do(func(l *model.Listener) {
				l.Recent, l.Losses.Clients.AfterDrops = &model.Recent{Packets: 160, Cause: maxConns}, true
			}), before: fresh(),
		},
		{
			name: "clients got no answer before a pool", status: losing, cause: pool, chain: chainOf(threads, pool),
			now: usedUp(20, database(10, hikari(10))).do(answers(2, 30)), before: usedUp(20, database(10, hikari(10))),
		},
		{
			name: "most of them are of a SYN flood", status: ok,
			now: fresh().do(outcome(model.ClientGaveUp, 900)).do(func(l *model.Listener) {
				l.Losses.Clients.Flood = &model.ClientFlood{Attempts: 900, Sources: 900, Period: time.Second, Certain: true}
			}), before: fresh(),
		},

		// Connections that are idle for a moment.
		{
			name: "all connections are taken by responses that come in pieces", status: saturated, cause: maxConns, chain: chainOf(acceptQueue, maxConns),
			now:    tomcat(200, 57, 4).pool(70).with(model.Idle, 57).queue(5, time.Second).do(recent(50)).do(maybeBusy(40)),
			before: tomcat(200, 57, 4).pool(70).with(model.Idle, 57).queue(5, time.Second).do(recent(50)).do(maybeBusy(40)), notCodes: []string{"keep_alive_idle"},
		},
		{
			name: "all connections are taken by clients that think a second between two requests", status: saturated, cause: model.CauseKeepAliveIdle, chain: chainOf(acceptQueue, maxConns),
			now:    tomcat(200, 57, 4).pool(70).with(model.Idle, 57).queue(5, time.Second).do(recent(50)).do(maybeBusy(3)),
			before: tomcat(200, 57, 4).pool(70).with(model.Idle, 57).queue(5, time.Second).do(recent(50)).do(maybeBusy(3)),
		},
		{
			name: "all connections are taken by clients that want nothing", status: saturated, cause: model.CauseKeepAliveIdle, chain: chainOf(acceptQueue, maxConns),
			now:    tomcat(200, 57, 4).pool(70).with(model.Idle, 57).queue(5, time.Second).do(recent(5)),
			before: tomcat(200, 57, 4).pool(70).with(model.Idle, 57).queue(5, time.Second).do(recent(5)),
		},

		// Clients that were let in and had no answer, and those that believed to be.
		{
			name: "40 of 60 clients get no answer while the threads are busy", status: losing, cause: threads, chain: chainOf(threads),
			now:    tomcat(4, 20, 5).pool(4).inService(4).waiting(10).do(answers(20, 25)).do(outcome(model.ClientStalled, 15)).do(outcome(model.ClientConnected, 45)),
			before: tomcat(4, 20, 5).pool(4).inService(4).waiting(12),
		},
		{
			name: "clients that never get in make nothing fine", status: losing,
			now: fresh().do(outcome(model.ClientStalled, 2)), before: fresh(),
		},
		{
			name: "the last clients of a trouble that is over are known late", status: ok,
			now: fresh().do(outcome(model.ClientStalled, 2)).do(func(l *model.Listener) { l.Recent = &model.Recent{Packets: 40, Cause: maxConns} }), before: fresh(),
		},
		{
			name: "a third of the clients get no answer, and nothing shows why", status: losing,
			now: fresh().do(answers(20, 10)).do(outcome(model.ClientConnected, 30)), before: fresh(),
		},
		{
			name: "a third of the clients get not a byte of a server whose protocol is not known", status: losing,
			now: fresh().do(answers(0, 10)).do(outcome(model.ClientConnected, 30)).do(protocolUnknown), before: fresh(),
		},
		{
			name: "one of a thousand clients gets not a byte of a server whose protocol is not known", status: ok,
			now: fresh().do(answers(0, 1)).do(outcome(model.ClientConnected, 1000)).do(protocolUnknown), before: fresh(),
		},
		{
			name: "one of a thousand clients leaves without an answer", status: ok,
			now: fresh().do(answers(999, 1)).do(outcome(model.ClientConnected, 1000)), before: fresh(),
		},

		// Resets by the server.
		{
			name: "uploads that are rejected", status: losing, cause: model.CauseServerResets,
			now: fresh().do(outcome(model.ClientReset, 35)), before: fresh(), change: moved("TCPAbortOnClose", 35),
		},
		{
			name: "the server resets a scanner, and thousands get in", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"server_resets"},
			now: fresh().do(outcome(model.ClientReset, 1)).do(outcome(model.ClientConnected, 4000)), before: fresh(),
		},
		{
			name: "the same of a server that nobody else asks", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"server_resets"},
			now: fresh().do(outcome(model.ClientReset, 2)), before: fresh(),
		},
		{
			name: "a scanner asks by HTTP where another protocol is spoken, beside hundreds of connections that are kept", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"server_resets"},
			now: fresh().do(jdkServer).idle(400).do(outcome(model.ClientReset, 5)).do(losers("198.51.100.7", "198.51.100.8")), before: fresh().do(jdkServer).idle(400),
		},
		{
			name: "a rule of a proxy rejects a few of hundreds", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"server_resets"},
			now: fresh().do(haproxy).do(outcome(model.ClientReset, 9)).do(outcome(model.ClientConnected, 700)), before: fresh().do(haproxy),
		},
		{
			name: "a rule of a proxy rejects one of ten", status: losing, cause: model.CauseServerResets,
			now: fresh().do(haproxy).do(outcome(model.ClientReset, 9)).do(outcome(model.ClientConnected, 81)), before: fresh().do(haproxy),
		},
		{
			name: "a stranger is reset five times by a server whose proxy is connected", status: warning, codes: []string{"clients_kept_out"}, notCodes: []string{"server_resets"},
			now: fresh().idle(8).do(outcome(model.ClientReset, 5)).do(losers("198.51.100.7")), before: fresh().idle(8),
		},
		{
			name: "its proxy is reset five times", status: losing, cause: model.CauseServerResets,
			now: fresh().idle(8).do(outcome(model.ClientReset, 5)).do(losers("10.0.0.7")).do(func(l *model.Listener) {
				l.Losses.Clients.Proxies = l.Losses.Clients.Losers
			}), before: fresh().idle(8),
		},
		{
			name: "three of three uploads are rejected", status: losing, cause: model.CauseServerResets,
			now: fresh().do(outcome(model.ClientReset, 3)), before: fresh(), change: moved("TCPAbortOnClose", 3),
		},
		{
			name: "the server ends connections without an answer", status: losing, cause: model.CauseServerResets,
			now: fresh().do(answers(30, 9)).do(closedByServer(9)).do(outcome(model.ClientConnected, 39)), before: fresh(),
		},
		{
			name: "requests are cancelled, each by a connection of its own, beside a pool of connections", status: warning, cause: model.CauseServerResets,
			now: fresh().do(postgres).idle(50).do(answers(4, 60)).do(closedByServer(60)).do(outcome(model.ClientConnected, 64)), before: fresh().do(postgres).idle(50),
		},
		{
			name: "the same, and all of the pool are busy", status: warning, cause: model.CauseServerResets,
			now: fresh().do(postgres).inService(10).do(answers(0, 60)).do(closedByServer(60)).do(outcome(model.ClientConnected, 60)), before: fresh().do(postgres).inService(10),
		},
		{
			name: "a few are cancelled of many connections", status: ok, notCodes: []string{"server_resets"},
			now: fresh().do(postgres).idle(400).do(answers(0, 9)).do(closedByServer(9)).do(outcome(model.ClientConnected, 9)), before: fresh().do(postgres).idle(400),
		},
		{
			name: "some are cancelled, and others wait in vain", status: losing, notCodes: []string{"server_resets"},
			now: fresh().do(postgres).idle(400).do(answers(20, 18)).do(closedByServer(9)).do(outcome(model.ClientConnected, 38)), before: fresh().do(postgres).idle(400),
		},
		{
			name: "a forwarder has nobody behind it, and ends all connections", status: losing, cause: model.CauseServerResets,
			now: fresh().do(haproxy).do(answers(0, 40)).do(closedByServer(40)).do(outcome(model.ClientConnected, 40)).do(protocolUnknown), before: fresh().do(haproxy),
		},
		{
			name: "the same, which had passed them on before", status: losing, cause: model.CauseServerResets,
			now: fresh().do(haproxy).inService(2).do(answers(0, 40)).do(closedByServer(40)).do(outcome(model.ClientConnected, 41)), before: fresh().do(haproxy).inService(1),
		},
		{
			name: "clients leave, and the server ends a few connections", status: losing,
			now: fresh().do(answers(30, 20)).do(closedByServer(4)).do(outcome(model.ClientConnected, 50)), before: fresh(),
		},
		{
			name: "the executor rejects, and all threads are busy", status: losing, cause: model.CauseExecutorQueue, chain: chainOf(model.CauseExecutorQueue, threads),
			now:    tomcat(4, 20, 5).pool(4).inService(4).waiting(5).do(maxQueueOf(5)).do(answers(1, 9)).do(closedByServer(9)).do(outcome(model.ClientConnected, 10)),
			before: tomcat(4, 20, 5).pool(4).inService(4).waiting(5).do(maxQueueOf(5)),
		},
		{
			name: "uploads that are rejected, and handshakes are not followed", status: warning, cause: model.CauseServerResets,
			now: fresh().do(noOutgoing), before: fresh(), change: func(e *symptoms.Input) { e.Delta["TCPAbortOnClose"], e.Delta["PassiveOpens"] = 35, 40 },
		},
		{
			name: "uploads that are rejected behind an answer", status: warning, cause: model.CauseServerResets,
			now: fresh().do(reset(33, 0)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["TCPAbortOnClose"], e.Delta["PassiveOpens"] = 35, 40 },
		},
		{
			name: "clients in the same network namespace close connections unread", status: ok, codes: []string{"closed_unread"}, notCodes: []string{"server_resets"},
			now: fresh().idle(8).do(reset(0, 0)), before: fresh().idle(8), change: moved("TCPAbortOnClose", 5),
		},
		{
			name: "the same, and handshakes are not followed", status: ok, codes: []string{"closed_unread"}, notCodes: []string{"server_resets"},
			now: fresh().idle(8), before: fresh().idle(8), change: moved("TCPAbortOnClose", 5),
		},
		{
			name: "connections closed unread whose other end is on this machine: by whom is not known", status: warning, cause: model.CauseServerResets,
			now: fresh().do(noOutgoing), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta["TCPAbortOnClose"], e.Delta["EstabResets"], e.Delta["PassiveOpens"] = 35, 35, 40
			},
		},
		{
			name: "connections closed unread, and nobody came to this listener", status: ok, notCodes: []string{"server_resets"},
			now: fresh().do(outcome(model.ClientConnected, 0)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["TCPAbortOnClose"], e.Delta["PassiveOpens"] = 35, 40 },
		},
		{
			name: "one of many connections is closed unread", status: ok, codes: []string{"closed_unread"},
			now: fresh(), before: fresh(), change: func(e *symptoms.Input) { e.Delta["TCPAbortOnClose"], e.Delta["PassiveOpens"] = 6, 400 },
		},
		{
			name: "a proxy asks on connections that keepAliveTimeout has closed", status: warning, cause: model.CauseServerResets,
			now: fresh().do(closing(40)).do(reset(0, 36)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 38, 40 },
		},
		{
			name: "a stopped neighbour is checked: RSTs leave other ports", status: ok, notCodes: []string{"server_resets", "resets_unknown"},
			now: fresh().do(closing(40)).do(reset(0, 0)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 30, 50 },
		},
		{
			name: "RSTs of a network namespace whose handshakes are not followed", status: ok, codes: []string{"resets_unknown"}, notCodes: []string{"server_resets"},
			now: fresh().do(closing(40)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 38, 40 },
		},
		{
			name: "uploads that pause for longer than connectionTimeout", status: warning, cause: model.CauseServerResets,
			now: fresh().do(closing(40)).do(timesOut(time.Second)).do(reset(0, 36)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 38, 40 },
		},
		{
			name: "the server resets clients in the midst of their answer", status: warning, cause: model.CauseServerResets,
			now: fresh().do(answers(40, 0)).do(outcome(model.ClientConnected, 40)).do(resetInAnswer(30)), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta["TCPAbortOnData"], e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 40, 60, 40
			},
		},
		{
			name: "it does one of a thousand clients", status: ok, notCodes: []string{"server_resets"},
			now: fresh().do(answers(4000, 0)).do(outcome(model.ClientConnected, 4000)).do(resetInAnswer(4)), before: fresh(), change: moved("TCPAbortOnData", 4),
		},
		{
			name: "no client has a version of TLS in common with the server", status: warning, cause: model.CauseServerResets,
			now: fresh().do(answers(0, 0)).do(alerted(12, 12, 0)), before: fresh(), change: moved("PassiveOpens", 12),
		},
		{
			name: "one of three has not, beside checks of the port", status: warning, cause: model.CauseServerResets,
			now: fresh().do(answers(0, 0)).do(alerted(4, 32, 20)), before: fresh(), change: moved("PassiveOpens", 32),
		},
		{
			name: "a scanner asks for old versions of TLS, beside clients", status: ok, notCodes: []string{"server_resets"},
			now: fresh().do(answers(0, 0)).do(alerted(6, 40, 0)), before: fresh(), change: moved("PassiveOpens", 40),
		},
		{
			name: "and where nobody else comes", status: ok, notCodes: []string{"server_resets"},
			now: fresh().do(answers(0, 0)).do(alerted(2, 2, 0)), before: fresh(), change: moved("PassiveOpens", 2),
		},
		{
			name: "answers of 7 bytes where TLS is not spoken", status: ok, notCodes: []string{"server_resets", "alerts_unknown"},
			now: fresh().do(answers(12, 0)).do(alerted(12, 12, 0)).do(func(l *model.Listener) { l.Connector.TLS = false }), before: fresh(), change: moved("PassiveOpens", 12),
		},
		{
			name: "the same of a server that is not known to speak TLS or not", status: ok, codes: []string{"alerts_unknown"}, notCodes: []string{"server_resets", "tls_ended"},
			now: fresh().do(answers(12, 0)).do(alerted(12, 12, 0)).do(haproxy), before: fresh().do(haproxy), change: moved("PassiveOpens", 12),
		},
		{
			name: "the same, six of forty", status: ok, notCodes: []string{"alerts_unknown"},
			now: fresh().do(answers(40, 0)).do(alerted(6, 40, 0)).do(haproxy), before: fresh().do(haproxy), change: moved("PassiveOpens", 40),
		},
		{
			name: "no client trusts the server's certificate", status: warning, codes: []string{"tls_ended"},
			now: fresh().do(answers(0, 0)).do(overTLS).do(tlsEnded(12, 12, 0)), before: fresh().do(overTLS), change: moved("PassiveOpens", 12),
		},
		{
			name: "one of three does not, beside checks of the port", status: warning, codes: []string{"tls_ended"},
			now: fresh().do(answers(0, 0)).do(overTLS).do(tlsEnded(4, 32, 20)), before: fresh().do(overTLS), change: moved("PassiveOpens", 32),
		},
		{
			name: "no client trusts the certificate of a server that is no Tomcat", status: warning, codes: []string{"tls_ended"},
			now: fresh().do(answers(0, 0)).do(haproxy).do(tlsEnded(12, 12, 0)), before: fresh().do(haproxy), change: moved("PassiveOpens", 12),
		},
		{
			name: "clients ask for TLS on a port without it", status: warning, codes: []string{"tls_ended"},
			now: fresh().do(answers(12, 0)).do(tlsEnded(12, 12, 0)), before: fresh(), change: moved("PassiveOpens", 12),
		},
		{
			name: "and do not read the whole answer, on this machine", status: warning, codes: []string{"tls_ended"}, notCodes: []string{"server_resets", "closed_unread"},
			now: fresh().do(answers(12, 0)).do(tlsEnded(12, 12, 0)), before: fresh(), change: func(e *symptoms.Input) {
				e.Delta = map[string]uint64{"PassiveOpens": 12, "TCPAbortOnClose": 12, "EstabResets": 12, "OutRsts": 12}
			},
		},
		{
			name: "six of forty clients do not trust the certificate", status: ok, notCodes: []string{"tls_ended"},
			now: fresh().do(answers(0, 0)).do(overTLS).do(tlsEnded(6, 40, 0)), before: fresh().do(overTLS), change: moved("PassiveOpens", 40),
		},
		{
			name: "two clients look at the certificate, and nobody else comes", status: ok, notCodes: []string{"tls_ended"},
			now: fresh().do(answers(0, 0)).do(overTLS).do(tlsEnded(2, 2, 0)), before: fresh().do(overTLS), change: moved("PassiveOpens", 2),
		},
		{
			name: "answers to clients on this machine that have left are reset by its kernel", status: ok, notCodes: []string{"server_resets"},
			now:    fresh().do(closing(10)).with(model.ClientClosed, 80).do(func(l *model.Listener) { l.Connector.MaxThreads = nil }),
			before: fresh().with(model.ClientClosed, 75).do(func(l *model.Listener) { l.Connector.MaxThreads = nil }),
			change: func(e *symptoms.Input) { e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 13, 40 },
		},
		{
			name: "RSTs to a port without a listener, beside an idle server", status: ok,
			now: fresh().do(closing(2)), before: fresh(), change: func(e *symptoms.Input) { e.Delta["OutRsts"], e.Delta["PassiveOpens"] = 1000, 3 },
		},
		{
			name: "a proxy beside the server has used up the local ports towards it", status: warning, cause: model.CauseEphemeralPorts,
			now: fresh().idle(100).do(cameFrom("127.0.0.1", 100)), before: fresh().idle(100).do(cameFrom("127.0.0.1", 100)), change: narrowRange,
		},
		{
			name: "as many connections from another machine, whose range is not known", status: ok,
			now: fresh().idle(100).do(cameFrom("10.0.0.7", 100)), before: fresh().idle(100).do(cameFrom("10.0.0.7", 100)), change: narrowRange,
		},
		{
			name: "half of the local ports are in use by a proxy beside the server", status: ok,
			now: fresh().idle(50).do(cameFrom("127.0.0.1", 50)), before: fresh().idle(50).do(cameFrom("127.0.0.1", 50)), change: narrowRange,
		},
		{
			name: "clients that acknowledge nothing", status: warning, codes: []string{"unacknowledged"},
			now: fresh().do(unacknowledged(20)), before: fresh().do(unacknowledged(20)),
		},
		{
			name: "clients closed while the server still had their requests", status: warning, codes: []string{"clients_left"},
			now: fresh().inService(4).do(leftInside(5)), before: fresh().inService(4).do(leftInside(5)),
		},
		{
			name: "clients closed behind a header that came in time", status: warning, codes: []string{"clients_left"},
			now: fresh().inService(1).do(leftInside(25)).do(closedIdle), before: fresh().inService(1).do(leftInside(24)).do(closedIdle),
		},
		{
			name: "clients of TLS closed while the server still had their requests", status: warning, codes: []string{"clients_left"},
			now: fresh().with(model.Unclassified, 8).do(leftInside(8)).do(overTLS), before: fresh().with(model.Unclassified, 8).do(leftInside(8)).do(overTLS),
		},
		{
			name: "clients have ended their own side, alone it may be", status: ok, notCodes: []string{"clients_left"},
			now: fresh().inService(4).do(leftInside(5)).do(leftFor(time.Second)), before: fresh().inService(4).do(leftInside(5)),
		},
		{
			name: "clients have closed, and others had no answer", status: warning, codes: []string{"clients_left"},
			now: fresh().inService(4).do(leftInside(5)).do(leftFor(time.Second)).do(answers(3, 2)), before: fresh().inService(4).do(leftInside(5)),
		},
		{
			name: "clients have ended their own side alone: the others were answered", status: ok, notCodes: []string{"clients_left"},
			now:    fresh().inService(4).do(leftInside(5)).do(answers(20, 0)).do(leftFor(time.Second)),
			before: fresh().inService(4).do(leftInside(5)),
		},
		{
			name: "clients closed a while ago, and others were answered", status: warning, codes: []string{"clients_left"},
			now: fresh().inService(4).do(leftInside(5)).do(answers(20, 0)), before: fresh().inService(4).do(leftInside(5)),
		},
		{
			name: "clients closed behind a header that came in time, and count as answered", status: warning, codes: []string{"clients_left"},
			now:    fresh().inService(1).do(leftInside(25)).do(closedIdle).do(answers(20, 0)).do(leftFor(time.Second)),
			before: fresh().inService(1).do(leftInside(24)).do(closedIdle),
		},
		{
			name: "some of the clients in service have closed", status: ok, notCodes: []string{"clients_left"},
			now: fresh().inService(9).with(model.Unclassified, 50).do(leftInside(5)), before: fresh().inService(9).with(model.Unclassified, 50).do(leftInside(5)),
		},
		{
			name: "two clients closed while the server had their requests", status: ok, notCodes: []string{"clients_left"},
			now: fresh().inService(1).do(leftInside(2)), before: fresh().inService(1).do(leftInside(2)),
		},
		{
			name: "clients closed while the server had their requests, in one reading", status: ok, notCodes: []string{"clients_left"},
			now: fresh().inService(1).do(leftInside(5)), before: fresh().inService(6),
		},
		{
			name: "a JVM that stands still notices nobody that closes", status: ok, notCodes: []string{"clients_left"},
			now: fresh().idle(9).do(leftInside(5)).do(standing(800 * time.Millisecond)), before: fresh().idle(9).do(leftInside(5)).do(standing(800 * time.Millisecond)),
		},
		{
			name: "what connected clients send is dropped in front of their sockets", status: warning, codes: []string{"unheard_clients"},
			now: fresh().idle(10).do(droppedInside(5)), before: fresh().idle(10), change: func(e *symptoms.Input) {
				e.Delta = map[string]uint64{"nft inet firewall input handle 2 drop": 9, "nft inet firewall input handle 3 drop dport 22": 50}
			},
		},
		{
			name: "of one connected client that is so", status: ok, notCodes: []string{"unheard_clients"},
			now: fresh().idle(10).do(droppedInside(1)), before: fresh().idle(10),
		},
		{
			name: "connections that something in between has forgotten", status: warning, codes: []string{"forgotten_connections"},
			now: fresh().idle(10).do(forgotten(12, 20)), before: fresh().idle(10).do(forgotten(11, 20)),
		},
		{
			name: "a few of a hundred clients that were ended are gone", status: ok, notCodes: []string{"forgotten_connections"},
			now: fresh().idle(100).do(forgotten(5, 100)), before: fresh().idle(100).do(forgotten(5, 100)),
		},
		{
			name: "connections that something in between has forgotten, in one reading", status: ok, notCodes: []string{"forgotten_connections"},
			now: fresh().idle(10).do(forgotten(12, 20)), before: fresh().idle(10),
		},
		{
			name: "one of a hundred clients acknowledges nothing", status: ok, notCodes: []string{"unacknowledged"},
			now: fresh().idle(100).do(unacknowledged(1)), before: fresh().idle(100).do(unacknowledged(1)),
		},
		{
			name: "streams of clients whose network is gone take all connections", status: saturated, cause: model.CauseMaxConnections, chain: chainOf(maxConns),
			now:    tomcat(200, 20, 10).pool(10).do(unacknowledged(20)).queue(5, 3*time.Second),
			before: tomcat(200, 20, 10).pool(10).do(unacknowledged(20)).queue(5, 2*time.Second),
		},
		{
			name: "the poller waits for what a worker waits for", status: saturated, cause: model.CauseNotReading, codes: []string{"poller_blocked"},
			now: fresh().waiting(19).do(blocked), before: fresh().waiting(19).do(blocked),
		},
		{
			name: "it did so in one reading", status: warning, codes: []string{"requests_stand"}, notCodes: []string{"poller_blocked"},
			now: fresh().waiting(19).do(blocked), before: fresh().waiting(19).do(standsStill),
		},
		{
			name: "it waits as at a safepoint", status: warning, codes: []string{"requests_stand"}, notCodes: []string{"poller_blocked"},
			now: fresh().waiting(19).do(standsStill), before: fresh().waiting(19).do(standsStill),
		},
		{
			name: "reset because their listener closed", status: losing, cause: model.CauseListenerClosed,
			now: fresh().do(outcome(model.ClientReset, 5)), before: fresh(), change: func(e *symptoms.Input) { e.Closed = &model.Closed{Queued: 5} },
		},

		// Waiting for a CPU is no cause where the handlers do not.
		{
			name: "packets fall while the JVM's own threads wait for a CPU, and the limits are not known", status: losing, chain: chainOf(acceptQueue), notCodes: []string{"cpu_saturated", "slow_accept"},
			now:    tomcat(20, 20, 10).pool(20).inService(20).queue(11, 300*time.Millisecond).do(noLimits).do(totals(0, 0, 600*time.Millisecond)).lost(acceptQueue, syn, 500),
			before: tomcat(20, 20, 10).pool(20).inService(19).queue(8, 200*time.Millisecond).do(noLimits).do(totals(0, 0, 0)),
		},

		// Many short pauses.
		{
			name: "65 % of the time at safepoints", status: saturated, cause: model.CauseJVMPause, chain: chainOf(threads), notCodes: []string{"max_threads"},
			now:    usedUp(10).do(totals(650*time.Millisecond, 0, 0)),
			before: usedUp(10).do(totals(0, 0, 0)),
		},
		{
			name: "65 % of the time at safepoints, with a full old generation", status: saturated, cause: model.CauseJVMPause, chain: chainOf(threads), notCodes: []string{"max_threads"},
			now:    usedUp(10).do(totals(650*time.Millisecond, 0, 0)).do(func(l *model.Listener) { l.Process.OldUsed, l.Process.OldMax = new(int64(27<<20)), new(int64(27<<20)) }),
			before: usedUp(10).do(totals(0, 0, 0)),
		},
		{
			name: "the same, and the cgroup has no memory left", status: saturated, cause: model.CauseJVMPause, chain: chainOf(threads), notCodes: []string{"max_threads"},
			now: usedUp(10).do(totals(650*time.Millisecond, 0, 0)).do(hasMemory(60<<20, 64<<20)).do(func(l *model.Listener) {
				l.Process.OldUsed, l.Process.OldMax = new(int64(27<<20)), new(int64(27<<20))
			}),
			before: usedUp(10).do(totals(0, 0, 0)),
		},
		{
			name: "15 % of the time at safepoints", status: saturated, cause: threads, chain: chainOf(threads),
			now:    usedUp(10).do(totals(150*time.Millisecond, 0, 0)),
			before: usedUp(10).do(totals(0, 0, 0)),
		},
	}
}

// probes are as many in the accept queue whose clients have closed and sent nothing; the oldest of the others has
// waited for that time, 0 where no others were found.
func probes(n int, oldest time.Duration) func(*model.Listener) {
	return func(l *model.Listener) {
		if l.AcceptQueue.Probes = n; oldest > 0 {
			l.AcceptQueue.OldestClient = &oldest
		}
	}
}

// missing: no packet is delivered to the listener's address.
func missing(standby bool) func(*model.Listener) {
	return func(l *model.Listener) {
		l.ID.Address = netip.MustParseAddrPort("10.0.0.5:8080")
		l.AddressMissing = &model.AddressMissing{Standby: standby}
	}
}
