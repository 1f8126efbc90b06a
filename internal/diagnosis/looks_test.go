package diagnosis

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// look is a listener as a scan would deliver it, for tests: port 8080 of a
// Spring Boot Tomcat with the given limits.
type look struct{ *model.Listener }

func tomcat(threads, connections, accepts int) look {
	set := func(n int) *model.Setting[int] {
		return &model.Setting[int]{Value: n, Kind: model.SourceFile, Source: "application.yml"}
	}
	l := &model.Listener{
		ID:   model.ListenerID{NetNS: 4026531840, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), 8080)},
		Port: 8080, Inode: 13201, Members: 1,
		Process: &model.Process{PID: 42, Comm: "java", StartTime: 99, OpenFiles: new(60), OpenFilesLimit: new(1048576), Threads: new(240)},
		Connector: &model.Connector{
			Server: "tomcat", Framework: "spring-boot", FrameworkVersion: "3.5.16", Version: "10.1.55", Protocol: "http-nio",
			MaxConnections: set(connections), AcceptCount: set(accepts), MaxThreads: set(threads), PoolThreads: new(min(10, threads)),
		},
		SynBacklog:  &model.SynBacklog{Limit: accepts},
		AcceptQueue: &model.AcceptQueue{Limit: accepts, Peak: new(0)},
		Connections: &model.Connections{Reset: new(0)},
		Losses:      &model.Losses{},
	}
	return look{l}
}

// with sets how many accepted connections are in a phase; the files follow.
func (k look) with(p model.Phase, n int) look {
	k.Connections.Accepted += n - k.Connections.Phases[p]
	*k.Process.OpenFiles += n - k.Connections.Phases[p]
	k.Connections.Phases[p] = n
	return k
}

func (k look) inService(n int) look { return k.with(model.InService, n) }
func (k look) waiting(n int) look   { return k.with(model.Waiting, n) }
func (k look) idle(n int) look      { return k.with(model.Idle, n) }

// pool is the number of worker threads alive.
func (k look) pool(n int) look {
	k.Connector.PoolThreads = new(n)
	return k
}

// queue sets the accept queue's length, and the age of its oldest.
func (k look) queue(n int, oldest time.Duration) look {
	k.AcceptQueue.Length = n
	k.AcceptQueue.Peak = new(max(n, *k.AcceptQueue.Peak))
	if n > 0 {
		k.AcceptQueue.OldestWait = new(oldest)
	}
	return k
}

// lost adds dropped packets.
func (k look) lost(c model.Cause, p model.Packet, n uint64) look {
	k.Losses.By = append(k.Losses.By, model.Drops{DropKey: model.DropKey{Cause: c, Packet: p}, Packets: n})
	k.Losses.DroppedPackets += n
	return k
}

func (k look) do(change func(*model.Listener)) look {
	change(k.Listener)
	return k
}

// limits forgets what was configured, as for a server nobody knows.
func (k look) unknownLimits() look {
	c := k.Connector
	c.MaxConnections, c.AcceptCount, c.MaxThreads = nil, nil, nil
	return k
}

// nothing is an expected port on which nothing listens.
func nothing() look {
	return look{&model.Listener{Port: 8080, Expected: true}}
}

// sysctls of a current kernel.
func sysctls() map[string]int {
	return map[string]int{
		"somaxconn": 4096, "tcp_max_syn_backlog": 2048, "tcp_syncookies": 1, "tcp_abort_on_overflow": 0,
		"ip_local_port_range_min": 32768, "ip_local_port_range_max": 60999,
	}
}
