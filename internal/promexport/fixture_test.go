package promexport_test

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const netns = 4026531840

// overloaded is a Tomcat of which everything is known, while it loses packets.
func overloaded(port uint16, pid int) model.Listener {
	l := model.Listener{
		ID:       model.ListenerID{NetNS: netns, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)},
		Port:     port,
		Inode:    13201,
		Members:  1,
		Expected: true,
		Process: &model.Process{
			PID: pid, Comm: "java", OpenFiles: new(8460), OpenFilesLimit: new(20000), Threads: new(240),
			Container: "3f2a", PodUID: "0b51", SafepointTime: new(1500 * time.Millisecond),
			CPUThrottled: new(2 * time.Second), RunDelay: new(30 * time.Second),
		},
		Connector: &model.Connector{
			Server: "tomcat", Framework: "spring-boot", Version: "10.1.41", Protocol: "http-nio",
			MaxConnections:  &model.Setting[int]{Value: 8192, Kind: model.SourceEnv, Source: "env SERVER_TOMCAT_MAX_CONNECTIONS"},
			AcceptCount:     &model.Setting[int]{Value: 100, Kind: model.SourceDefault},
			MaxThreads:      &model.Setting[int]{Value: 200, Kind: model.SourceFile, Source: "application.yml"},
			MinSpareThreads: &model.Setting[int]{Value: 10, Kind: model.SourceDefault},
			PoolThreads:     new(200),
		},
		SynBacklog:  &model.SynBacklog{Length: 97, Limit: 100},
		AcceptQueue: &model.AcceptQueue{Length: 101, Limit: 100, Peak: new(101), OldestWait: new(4200 * time.Millisecond), SocketDrops: new(uint64(24966))},
		Connections: &model.Connections{
			At: time.Unix(1_700_000_000, 0), Age: 250 * time.Millisecond,
			Accepted: 8192, Phases: [model.NumPhases]int{model.Waiting: 7991, model.InService: 200, model.ClientClosed: 1},
			Reset: new(0), Abandoned: 1,
		},
		Limits: []model.Limit{
			{Name: "syn_backlog", Used: 97, Max: 100, Ratio: .97},
			{Name: "accept_queue", Used: 101, Max: 101, Ratio: 1},
			{Name: "max_connections", Used: 8192, Max: 8192, Ratio: 1},
			{Name: "max_threads", Used: 200, Max: 200, Ratio: 1},
			{Name: "open_files", Used: 8460, Max: 20000, Ratio: .423},
		},
		Verdict: model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections},
	}
	l.Totals = model.Totals{
		Dropped: map[model.DropKey]uint64{
			{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: 1700,
		},
		AbandonedRequests: 1, QueueResets: 2, FullSeconds: 12.5,
	}
	l.Totals.Clients = clientTotals()
	l.Losses = &model.Losses{Clients: &model.Clients{Proxies: make([]model.ClientSource, 2)}}
	for _, ratio := range []float64{0, 0, .01, .25, .5, 1, 1} {
		l.Totals.Fill.Observe(ratio)
	}
	return l
}

func waitsForBackend() *model.Downstream {
	return &model.Downstream{
		Age: time.Second,
		Peers: []model.Peer{{
			Address: netip.MustParseAddrPort("10.0.3.7:5432"), Name: "orders", Connections: 13, InFlight: 10, Unknown: 1, Connecting: 1,
			Workers: new(3), Oldest: 4900 * time.Millisecond, OldestConnect: time.Second, Mean: 2 * time.Second,
			AllInFlight: new(.5), PerSecond: new(4.1), Background: new(0),
			Pool: &model.Pool{Library: "HikariCP", Setting: "spring.datasource.hikari.maximum-pool-size", Size: model.Setting[int]{Value: 13, Kind: model.SourceFile, Source: "application.yml"}},
		}},
		Others: &model.Peer{Connections: 4},
	}
}

func clientTotals() *model.ClientTotals {
	t := &model.ClientTotals{Outcomes: [model.NumClientOutcomes]uint64{
		model.ClientConnected: 8293, model.ClientDelayed: 2, model.ClientGaveUp: 1707, model.ClientStalled: 12,
	}}
	t.Answers = model.ClientAnswers{Known: true, Answered: 8250, Unanswered: 40, Closed: 7, Checks: 3}
	t.Delays = model.ConnectDelays{
		Count: 2, Sum: 4.1,
		Bounds:  [model.NumDelayBuckets]float64{.25, .75, 1.5, 2.5, 3.5, 5.5, 9, 17, 25, 50},
		Buckets: [model.NumDelayBuckets]uint64{0, 0, 1, 1, 2, 2, 2, 2, 2, 2},
	}
	t.Responses = model.FirstResponses{
		Count: 3, Sum: 6.2,
		Bounds:  [model.NumResponseBuckets]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		Buckets: [model.NumResponseBuckets]uint64{0, 0, 0, 0, 1, 1, 1, 2, 3, 3, 3},
	}
	return t
}

// fleet is a snapshot of n such Tomcats, each a process of its own.
func fleet(n int) *model.Snapshot {
	s := &model.Snapshot{
		Time: time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC), Interval: time.Minute,
		ScanAge: new(250 * time.Millisecond), Omitted: 3,
		NetNS: []model.NetNS{{
			ID: netns,
			Counters: model.Counters{
				"ListenOverflows": 99, "ListenDrops": 103, "TCPReqQFullDrop": 0, "SyncookiesSent": 4,
				"OutRsts": 5, "AttemptFails": 6, "TCPSynRetrans": 7, "EmbryonicRsts": 8,
			},
			Sysctl:       map[string]int{"somaxconn": 4096, "tcp_max_syn_backlog": 2048, "tcp_syncookies": 1, "tcp_abort_on_overflow": 0},
			Sockstat:     map[string]int{"inuse": 10, "orphan": 0, "tw": 3, "alloc": 20, "mem": 2},
			Unattributed: 7,
		}},
		Targets:     []model.Target{{Port: 8080, NetNS: netns, Up: true}, {Port: 9090, NetNS: netns, Refused: new(uint64(42))}},
		TargetInfos: []model.TargetInfo{{Port: 9090, NetNS: netns}},
		Self: model.Self{
			MissedTicks: 2, FailedSamples: 3, LongestGap: 31 * time.Millisecond, ScanInterval: 1500 * time.Millisecond, CalmInterval: 20 * time.Millisecond,
			SourceUp: map[string]bool{"sock_diag": true, "owner": false},
			Agent: model.Agent{
				Config:    &model.ConfigReload{LastSuccess: time.Date(2026, 5, 4, 1, 0, 0, 0, time.UTC)},
				Incidents: &model.Incidents{Total: 3, Open: 1, LostFrames: 2, WriteErrors: 1},
				Shares:    []model.Share{{Resource: "connections", Refused: 1, Evicted: 7}, {Resource: "streams"}},
			},
		},
	}
	s.Self.SampleSeconds.Observe(2 * time.Microsecond)
	s.Self.ScanSeconds.Observe(12 * time.Millisecond)
	for i := range n {
		s.Listeners = append(s.Listeners, overloaded(uint16(8080+i), 42+i))
		s.TargetInfos = append(s.TargetInfos, model.TargetInfo{Port: uint16(8080 + i), NetNS: netns})
	}
	if n > 0 {
		s.Listeners[0].Process.Downstream = waitsForBackend()
	}
	return s
}

// plain is a listener that is no Tomcat, one of many of a process.
func plain(port uint16) model.Listener {
	l := overloaded(port, 42)
	l.Connector = nil
	l.Connections.Reset = nil
	l.Process = &model.Process{PID: 42, Comm: "server", OpenFiles: new(300), OpenFilesLimit: new(1024), Threads: new(8), CPUThrottled: new(time.Second), RunDelay: new(time.Second)}
	l.Limits = l.Limits[:2]
	l.Totals.Dropped = nil
	l.Totals.Clients.Delays = model.ConnectDelays{}
	l.Totals.Clients.Answers.Closed = 0
	return l
}

func source(s *model.Snapshot) func() *model.Snapshot {
	return func() *model.Snapshot { return s }
}
