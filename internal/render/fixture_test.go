package render_test

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const hostNS = 4026531840

func at() time.Time { return time.Date(2026, 5, 4, 3, 0, 12, 0, time.UTC) }

// snapshotOf is a machine with these listeners, watched for one second.
func snapshotOf(ls ...model.Listener) *model.Snapshot {
	return &model.Snapshot{
		Time: at(), Interval: time.Second, Host: "shop-7f9c", Kernel: "6.18.0", Listeners: ls,
		NetNS: []model.NetNS{{
			ID:       hostNS,
			Counters: model.Counters{"ListenOverflows": 99, "ListenDrops": 99},
			Delta:    model.Counters{"ListenOverflows": 9, "ListenDrops": 9},
			Sysctl:   map[string]int{"somaxconn": 4096, "tcp_max_syn_backlog": 2048, "tcp_syncookies": 1, "tcp_abort_on_overflow": 0},
		}},
	}
}

// tomcat is an idle Spring Boot server with Tomcat's defaults.
func tomcat(addr string) model.Listener {
	a := netip.MustParseAddrPort(addr)
	return model.Listener{
		ID: model.ListenerID{NetNS: hostNS, Address: a}, Port: a.Port(), Inode: 13201, Members: 1,
		Process: &model.Process{PID: 4242, Comm: "java", OpenFiles: new(112), OpenFilesLimit: new(20000), Threads: new(38)},
		Connector: &model.Connector{
			Server: "tomcat", Framework: "spring-boot", Version: "10.1.41", FrameworkVersion: "3.5.16", Protocol: "http-nio",
			MaxConnections:    &model.Setting[int]{Value: 8192, Kind: model.SourceEnv, Source: "env SERVER_TOMCAT_MAX_CONNECTIONS"},
			AcceptCount:       &model.Setting[int]{Value: 100, Kind: model.SourceDefault, Source: "default"},
			MaxThreads:        &model.Setting[int]{Value: 200, Kind: model.SourceFile, Source: "BOOT-INF/classes/application.yml"},
			MinSpareThreads:   &model.Setting[int]{Value: 10, Kind: model.SourceDefault, Source: "default"},
			ConnectionTimeout: &model.Setting[time.Duration]{Value: 20 * time.Second, Kind: model.SourceArgument, Source: "argument --server.tomcat.connection-timeout"},
			PoolThreads:       new(10),
		},
		SynBacklog:  &model.SynBacklog{Limit: 100},
		AcceptQueue: &model.AcceptQueue{Limit: 100, Peak: new(0), SocketDrops: new(uint64(0))},
		Connections: &model.Connections{
			Accepted: 12, Phases: [model.NumPhases]int{model.InService: 2, model.Idle: 10},
			Reset: new(0), States: map[string]int{"ESTABLISHED": 12},
		},
		Limits: []model.Limit{
			{Name: "accept_queue", Max: 101},
			{Name: "max_connections", Used: 12, Max: 8192, Ratio: 12. / 8192},
			{Name: "max_threads", Used: 2, Max: 200, Ratio: .01},
			{Name: "open_files", Used: 112, Max: 20000, Ratio: .0056},
		},
		Losses: &model.Losses{},
		Verdict: model.Verdict{
			Status: model.StatusOK, Summary: "No stage is near its limit and nothing was lost.",
			Answer: model.Answer{What: "Nothing was lost in 1 s. 8,281 more clients fit (8,192 connections + queue of 101)."},
		},
	}
}

func okIdle() *model.Snapshot { return snapshotOf(tomcat("[::]:8080")) }

// overload is scenario A5: 10,000 clients at once, 8293 of whom get in.
func overload() *model.Snapshot {
	l := tomcat("[::]:8080")
	l.Expected = true
	l.Process.OpenFiles, l.Process.Threads = new(8460), new(240)
	l.Process.SafepointTime, l.Process.RunDelay = new(1500*time.Millisecond), new(31*time.Second)
	l.Connector.PoolThreads = new(200)
	l.SynBacklog.Length = 97
	l.AcceptQueue = &model.AcceptQueue{Length: 101, Limit: 100, Peak: new(101), OldestWait: new(4200 * time.Millisecond), SocketDrops: new(uint64(24966))}
	l.Connections = &model.Connections{
		Accepted: 8192, Phases: [model.NumPhases]int{model.Waiting: 7991, model.InService: 200, model.ClientClosed: 1},
		Reset: new(0), Abandoned: 1, States: map[string]int{"ESTABLISHED": 8191, "CLOSE_WAIT": 1},
	}
	l.Limits = []model.Limit{
		{Name: "accept_queue", Used: 101, Max: 101, Ratio: 1},
		{Name: "max_connections", Used: 8192, Max: 8192, Ratio: 1},
		{Name: "max_threads", Used: 200, Max: 200, Ratio: 1},
		{Name: "open_files", Used: 8460, Max: 20000, Ratio: .423, FullIn: new(95 * time.Second)},
	}
	l.Losses = &model.Losses{
		DroppedPackets: 1700,
		By: []model.Drops{
			{DropKey: model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}, Packets: 1688},
			{DropKey: model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketACK}, Packets: 12, Estimated: true},
		},
		Unattributed: 7, AbandonedRequests: 1, WorstCase: []string{"connect_timeout", "read_timeout"},
	}
	l.Verdict = model.Verdict{
		Status: model.StatusLosing, Cause: model.CauseMaxConnections,
		Chain: []model.Cause{model.CauseAcceptQueue, model.CauseMaxConnections, model.CauseMaxThreads},
		Answer: model.Answer{
			What: "1,707 of 10,000 clients of the last 1 s got no answer: they could not connect.",
			Why:  "All 8,192 connections are taken, because all 200 threads are busy; about 190 of them wait for a lock, a pool or a timer.",
			Do: []model.Step{
				{Text: "See what the 200 threads wait for", Command: "sudo -u app tcpdiag snapshot --port 8080 --thread-dump"},
				{Text: "Make that faster. If it cannot be, raise the number of threads", Setting: "server.tomcat.threads.max", File: "BOOT-INF/classes/application.yml", From: "200", To: "400", Limit: "max_threads", Effect: "with 400 threads all are served, the longest wait is 25 s; now 1,707 of 10,000 are turned away"},
				{Text: "Then let more of them in", Setting: "server.tomcat.max-connections", File: "env SERVER_TOMCAT_MAX_CONNECTIONS", From: "8,192", To: "10,000", Limit: "max_connections"},
			},
			Not: "acceptCount: clients only wait longer, nobody is served faster.",
		},
		Summary: "1,700 packets dropped in 1 s: the accept queue is full because maxConnections (8,192) is reached because all 200 threads are busy.",
		Findings: []model.Finding{
			{
				Code: "max_connections", Severity: model.SeverityCritical,
				Evidence: "8,192 of 8,192 connections are held and 101 more wait in the accept queue, the oldest for 4.2 s.",
				Advice:   "Shorten the work or raise server.tomcat.threads.max first: 7,991 requests wait for a thread. Raising server.tomcat.max-connections lets more clients in to wait; check the open files limit (20,000) before. Raising accept-count only lengthens the wait.",
			},
			{
				Code: "open_files", Severity: model.SeverityWarning,
				Evidence: "8,460 of 20,000 files are open and the number grows.",
				Advice:   "Raise LimitNOFILE= of the unit before raising max-connections.",
			},
		},
	}
	return snapshotOf(l)
}

// overloadedClients is A5 where the handshakes are followed.
func overloadedClients() *model.Snapshot {
	s := overload()
	c := &model.Clients{
		Observed: time.Second, Waiting: 12, PacketsLost: 3,
		Losers:   []model.ClientSource{{Addr: netip.MustParseAddr("10.0.3.7"), Clients: 900}, {Addr: netip.MustParseAddr("fd00::7"), Clients: 5}},
		Balancer: &model.ClientSource{Addr: netip.MustParseAddr("10.0.3.7"), Clients: 9000},
		Proxies:  []model.ClientSource{{Addr: netip.MustParseAddr("10.0.3.7"), Clients: 9000}, {Addr: netip.MustParseAddr("10.0.3.9"), Clients: 600}},
		Flood:    &model.ClientFlood{Attempts: 5000, Sources: 4900, Period: 10 * time.Second, Certain: true},
	}
	c.LetIn = 8293 + 312
	c.Outcomes = [model.NumClientOutcomes]uint64{
		model.ClientConnected: 8293, model.ClientDelayed: 312, model.ClientGaveUp: 1707, model.ClientStalled: 12,
	}
	c.Delays.Count, c.Delays.Sum = 312, 780
	c.Answers = model.ClientAnswers{Known: true, Answered: 8103}
	c.Responses = model.FirstResponses{
		Count: 506, Sum: 405, Bounds: outcome.ResponseBounds(), Buckets: [model.NumResponseBuckets]uint64{5: 20, 6: 260, 7: 480, 8: 495, 9: 500, 10: 500},
	}
	s.Listeners[0].Losses.Clients = c
	return s
}

// saturated is scenario A1: 300 clients, 200 threads, nobody lost.
func saturated() *model.Snapshot {
	l := tomcat("0.0.0.0:8080")
	l.Connector.PoolThreads = new(200)
	l.Connector.MaxConnections = &model.Setting[int]{Value: 8192, Kind: model.SourceDefault, Source: "default", Note: "max-connections=-1 in application.yml is ignored by Spring Boot; Tomcat's default 8,192 is in force."}
	l.Connections = &model.Connections{
		Accepted: 300, Phases: [model.NumPhases]int{model.Waiting: 100, model.InService: 200},
		States: map[string]int{"ESTABLISHED": 300},
	}
	l.Limits[1] = model.Limit{Name: "max_connections", Used: 300, Max: 8192, Ratio: 300. / 8192}
	l.Limits[2] = model.Limit{Name: "max_threads", Used: 200, Max: 200, Ratio: 1}
	l.Verdict = model.Verdict{
		Status: model.StatusSaturated, Cause: model.CauseMaxThreads, Chain: []model.Cause{model.CauseMaxThreads},
		Summary: "All 200 threads are busy and 100 requests wait inside Tomcat; nothing was lost.",
		Answer: model.Answer{
			What: "100 requests wait inside Tomcat; nobody was turned away in the last 1 s.",
			Why:  "All 200 threads are busy.",
			Do: []model.Step{
				{Text: "See what the 200 threads wait for", Command: "sudo -u app tcpdiag snapshot --port 8080 --thread-dump"},
				{Text: "Make that faster, or raise the number of threads", Setting: "server.tomcat.threads.max", File: "BOOT-INF/classes/application.yml", From: "200", To: "300", Limit: "max_threads"},
			},
			Not: "acceptCount: the accept queue is empty.",
		},
		Findings: []model.Finding{{
			Code: "max_threads", Severity: model.SeverityWarning,
			Evidence: "100 requests have been read by nobody while 200 of 200 threads work.",
			Advice:   "Shorten the work, or raise server.tomcat.threads.max. Raising accept-count changes nothing: the accept queue is empty.",
		}},
	}
	return snapshotOf(l)
}

// down is scenario F5 next to a healthy listener.
func down() *model.Snapshot {
	s := snapshotOf(model.Listener{
		Port: 9090, Expected: true,
		Verdict: model.Verdict{
			Status: model.StatusDown, Cause: model.CauseNoListener,
			Summary: "Nothing listens on port 9090: clients are refused.",
			Answer: model.Answer{
				What: "Clients of port 9090 are refused.",
				Why:  "Nothing listens there: the application is down, still starting, or bound to another address.",
				Do: []model.Step{
					{Text: "See what listens", Command: "ss -ltnp"},
					{Text: "Read the application's log, and start it"},
				},
			},
			Findings: []model.Finding{{
				Code: "no_listener", Severity: model.SeverityCritical,
				Evidence: "No LISTEN socket on port 9090 in this network namespace.",
				Advice:   "The app is down, still starting, or bound to another address: see its log, and ss -ltn.",
			}},
		},
	}, tomcat("127.0.0.1:8080"))
	s.Targets = []model.Target{{Port: 9090, NetNS: hostNS}}
	return s
}

// unknownLimits is a server that is no Tomcat, owned by somebody unseen.
func unknownLimits() *model.Snapshot {
	a := netip.MustParseAddrPort("0.0.0.0:5432")
	s := snapshotOf(model.Listener{
		ID: model.ListenerID{NetNS: hostNS, Address: a, Device: "eth0"}, Port: 5432, Inode: 77, Members: 1,
		AcceptQueue: &model.AcceptQueue{Length: 3, Limit: 244, Peak: new(9)},
		Losses:      &model.Losses{},
		Verdict: model.Verdict{
			Status: model.StatusOK, Summary: "Nothing was lost; the limits behind the accept queue are not known.",
			Answer: model.Answer{What: "Nothing was lost in 1 s; 3 of 245 wait in the accept queue."},
		},
	})
	s.Notes = []string{"no Tomcat found: showing everything that listens"}
	s.Omitted = 2
	return s
}

// tls is scenario F10: nothing is claimed about idle or busy.
func tls() *model.Snapshot {
	l := tomcat("[::]:8443")
	l.Connector.Protocol, l.Connector.TLS = "https-jsse-nio", true
	l.Connections = &model.Connections{
		Accepted: 60, Phases: [model.NumPhases]int{model.Waiting: 1, model.Unclassified: 59},
		States: map[string]int{"ESTABLISHED": 60},
	}
	l.Limits = l.Limits[:2]
	s := snapshotOf(l)
	s.Unavailable = []model.Unavailable{{
		What: "phases of [::]:8443", Why: "TLS hides where a request begins and ends",
		How: "set server.tomcat.mbeanregistry.enabled=true and read tomcat.threads.busy and tomcat.connections.keepalive.current of Actuator",
	}}
	return s
}

// reuseport is a group of four sockets, seen by the agent over its last minute.
func reuseport() *model.Snapshot {
	l := tomcat("0.0.0.0:8080")
	l.Members = 4
	l.AcceptQueue = &model.AcceptQueue{Length: 83, Limit: 100, Peak: new(96), PeakAge: 12 * time.Second, OldestWait: new(310 * time.Millisecond)}
	l.Limits[0] = model.Limit{Name: "accept_queue", Used: 83, Max: 101, Ratio: 83. / 101, FullIn: new(40 * time.Second)}
	l.Limits = append(l.Limits, model.Limit{Name: "ephemeral_ports", Used: 22000, Max: 28232, Ratio: 22000. / 28232})
	l.Connector.MaxConnections.Value = -1
	l.Connector.VirtualThreads = &model.Setting[bool]{Value: true, Kind: model.SourceFile, Source: "application.yml"}
	l.Connector.AcceptCount = &model.Setting[int]{Value: 5000, Kind: model.SourceProperty, Source: "-Dserver.tomcat.accept-count", Note: "somaxconn was 100 when the server called listen()."}
	l.Process.Busiest = &model.Destination{Address: netip.MustParseAddrPort("10.0.0.7:5432"), Ports: 22000}
	l.Process.Container, l.Process.PodUID, l.Process.Stopped = "3f2a9bb1c07de4a1", "0b51f7d2-3d7e-4e1f-9d3f-1f1d7a2f0c11", true
	l.Verdict = model.Verdict{Status: model.StatusWarning, Cause: model.CauseJVMPause, Summary: "The process is stopped; the accept queue fills and is full in 40 s."}
	s := snapshotOf(l)
	s.Interval, s.ScanAge = time.Minute, new(400*time.Millisecond)
	return s
}

// singleLook is the overload with --interval 0: no losses and no peak.
func singleLook() *model.Snapshot {
	s := overload()
	s.Interval = 0
	s.NetNS[0].Delta = nil
	l := &s.Listeners[0]
	l.Losses, l.AcceptQueue.Peak = nil, nil
	l.Verdict.Status, l.Verdict.Summary = model.StatusSaturated, "The accept queue is full because maxConnections (8,192) is reached because all 200 threads are busy."
	return s
}

// nobody is the overload as a user without privileges sees it.
func nobody() *model.Snapshot {
	s := overload()
	l := &s.Listeners[0]
	l.Connector.MaxConnections = &model.Setting[int]{Value: 8192, Kind: model.SourceDefault}
	l.Connector.MaxThreads = nil
	l.Connections.Reset, l.Process.SafepointTime, l.Process.RunDelay = nil, nil, nil
	l.Verdict.Answer = model.Answer{
		What: "1,700 packets of clients were dropped in the last 1 s.",
		Why:  `The accept queue is full (101 of 101). The limit behind it is not readable by user "nobody".`,
		Do:   []model.Step{{Text: "Let somebody look who may read it", Command: "sudo tcpdiag snapshot --port 8080"}},
	}
	l.Limits = l.Limits[:2]
	s.Unavailable = []model.Unavailable{
		{What: "environ of pid 4242", Why: "permission denied", How: "run as uid 1000 and gid 1000, or grant CAP_SYS_PTRACE"},
		{What: "socket descriptors of pid 4242", Why: "permission denied", How: "run as uid 1000 and gid 1000, or grant CAP_SYS_PTRACE"},
		{What: "hsperfdata of pid 4242", Why: "/tmp/hsperfdata_app/4242: permission denied", How: "run as uid 1000"},
	}
	return s
}

// machine is --all on a big machine: n quiet listeners and two in trouble.
func machine(n int) *model.Snapshot {
	s := snapshotOf()
	for i := range n {
		l := tomcat(fmt.Sprintf("[::]:%d", 10000+i))
		l.Process.PID += i
		if i%2 == 1 {
			l.Connector = nil
			l.Process.Comm = "a-long-name-cut"
		}
		s.Listeners = append(s.Listeners, l)
	}
	s.Listeners = append(s.Listeners, saturated().Listeners[0], overload().Listeners[0])
	return s
}

// warning is a queue that fills.
func warning() *model.Snapshot {
	l := tomcat("[::]:8080")
	l.AcceptQueue.Length, l.AcceptQueue.Peak = 85, new(90)
	l.Limits[0] = model.Limit{Name: "accept_queue", Used: 85, Max: 101, Ratio: .84, FullIn: new(9 * time.Second)}
	l.Verdict = model.Verdict{
		Status: model.StatusWarning, Cause: model.CauseMaxConnections, Summary: "The accept queue fills: 85 of 101.",
		Answer: model.Answer{
			What: "85 clients wait to be let in; nobody was turned away in the last 1 s.",
			Why:  "The accept queue is at 84 % and is full in about 9 s.",
			Do:   []model.Step{{Text: "Let more of them in", Setting: "server.tomcat.max-connections", From: "8,192", To: "9,000", Limit: "max_connections"}},
			Not:  "connectionTimeout: it ends no client that sends its request.",
		},
	}
	return snapshotOf(l)
}

// pool is scenario G1: three connections to a database, and 17 threads without one.
func pool() *model.Snapshot {
	s := overload()
	l := &s.Listeners[0]
	l.Process.Downstream = &model.Downstream{Peers: []model.Peer{{
		Address: netip.MustParseAddrPort("10.0.3.7:5432"), Name: "orders", Connections: 3, InFlight: 3, Oldest: 2500 * time.Millisecond,
	}}}
	l.Verdict.Cause, l.Verdict.Chain = model.CauseConnectionPool, append(l.Verdict.Chain, model.CauseConnectionPool)
	l.Verdict.Answer.Why = "All 8,192 connections are taken, because all 200 threads are busy, because 3 of 3 connections to orders (10.0.3.7:5432) are in use and 197 threads wait for one."
	l.Verdict.Answer.Do = []model.Step{
		{Text: "See why orders answers after 2.5 s"},
		{Text: "If it can take more at once, raise the pool", Setting: "spring.datasource.hikari.maximum-pool-size", File: "BOOT-INF/classes/application.yml", From: "3", To: "10"},
	}
	l.Verdict.Answer.Not = "more threads: they would only wait for one of the 3 connections."
	return s
}

func scenarios() map[string]*model.Snapshot {
	return map[string]*model.Snapshot{
		"a5_overload":    overload(),
		"a5_clients":     overloadedClients(),
		"a1_saturated":   saturated(),
		"ok_idle":        okIdle(),
		"f5_down":        down(),
		"unknown_limits": unknownLimits(),
		"f10_tls":        tls(),
		"reuseport":      reuseport(),
		"single_look":    singleLook(),
		"nobody":         nobody(),
		"many":           machine(8),
		"stacks":         stacks(),
		"warning":        warning(),
		"g1_pool":        pool(),
		"nothing":        snapshotOf(),
	}
}

// stacks is a server whose JVM said what its threads do.
func stacks() *model.Snapshot {
	s := saturated()
	l := &s.Listeners[0]
	p := *l.Process
	p.Stacks = &model.Stacks{
		At: s.Time, Took: 12 * time.Millisecond, Threads: 30, Workers: 20, Others: 2, Deadlocked: true,
		Groups: []model.StackGroup{
			{
				Threads: 16, Worker: true, State: "TIMED_WAITING",
				Library: "com.zaxxer.hikari.HikariDataSource.getConnection", Application: "com.acme.OrderService.find",
				Frames: []string{"jdk.internal.misc.Unsafe.park", "com.zaxxer.hikari.HikariDataSource.getConnection", "com.acme.OrderService.find"},
			},
			{Threads: 2, Worker: true, State: "RUNNABLE", Library: "com.acme.\x1b[31mReport.draw", Application: "com.acme.\x1b[31mReport.draw", Frames: []string{}},
			{Threads: 2, Worker: true, Idle: true, State: "WAITING", Library: "org.apache.tomcat.util.threads.TaskQueue.take", Frames: []string{}},
			{Threads: 8, State: "WAITING", Library: "java.lang.Object.wait", Frames: []string{}},
		},
	}
	l.Process = &p
	return s
}
