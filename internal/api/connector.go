package api

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Process owns a listener.
type Process struct {
	PID              int     `json:"pid"`
	Comm             string  `json:"comm,omitempty"`
	OpenFiles        *int    `json:"open_files,omitempty"`
	OpenFilesLimit   *int    `json:"open_files_limit,omitempty"`
	Threads          *int    `json:"threads,omitempty"`
	Stopped          bool    `json:"stopped,omitempty"`
	Frozen           bool    `json:"frozen,omitempty"`       // with its cgroup, as docker pause does
	Dumping          bool    `json:"dumping_core,omitempty"` // it has crashed, and its core dump is written
	Children         int     `json:"children,omitempty"`     // processes of the same program among those that it has started and that were read: workers
	StoppedChildren  int     `json:"stopped_children,omitempty"`
	StoppedChild     int     `json:"stopped_child,omitempty"`   // the pid of the first of these
	ChildrenUnread   int     `json:"children_unread,omitempty"` // those that it has started beyond these, of whatever program
	Container        string  `json:"container,omitempty"`
	PodUID           string  `json:"pod_uid,omitempty"`
	MemoryLimitBytes *uint64 `json:"memory_limit_bytes,omitempty"`
	MemoryUsedBytes  *uint64 `json:"memory_used_bytes,omitempty"` // by the process itself: anonymous and shared memory
	PIDsLimit        *int    `json:"pids_limit,omitempty"`
	OldBytes         *int64  `json:"old_generation_bytes,omitempty"`
	OldMaxBytes      *int64  `json:"old_generation_max_bytes,omitempty"`

	SafepointSeconds *float64 `json:"safepoint_seconds,omitempty"` // this and the next three: since the process started
	GCSeconds        *float64 `json:"gc_seconds,omitempty"`
	ThrottledSeconds *float64 `json:"cpu_throttled_seconds,omitempty"`
	RunDelaySeconds  *float64 `json:"run_delay_seconds,omitempty"`

	Busiest *Destination `json:"busiest_destination,omitempty"`

	Downstream           []Peer   `json:"downstream,omitempty"`
	DownstreamAgeSeconds *float64 `json:"downstream_age_seconds,omitempty"` // since its connections were read
	Workers              *Workers `json:"workers,omitempty"`                // while the listener is in trouble, where they may be read

	Stacks *Stacks `json:"stacks,omitempty"` // with --thread-dump, where the JVM answered
}

// Destination is the peer that takes most of the process's local ports.
type Destination struct {
	Address  string `json:"address"`
	Ports    int    `json:"ports"`               // in TIME_WAIT or not
	TimeWait int    `json:"time_wait,omitempty"` // of these
	Reusable int    `json:"reusable,omitempty"`  // of those in TIME_WAIT: a new connection to this peer gets them (tcp_tw_reuse)
	Unowned  bool   `json:"unowned,omitempty"`   // they are the network namespace's: no process is seen to hold any of them
}

// Connector is Tomcat's end of a listener, with its settings and the source of each.
type Connector struct {
	Server               string            `json:"server,omitempty"`
	Framework            string            `json:"framework,omitempty"`
	Version              string            `json:"version,omitempty"`
	FrameworkVersion     string            `json:"framework_version,omitempty"`
	Protocol             string            `json:"protocol,omitempty"`
	TLS                  bool              `json:"tls,omitempty"`
	HTTP2                bool              `json:"http2,omitempty"`
	Executor             string            `json:"executor,omitempty"`
	MaxConnections       *Setting[int]     `json:"max_connections,omitempty"`
	AcceptCount          *Setting[int]     `json:"accept_count,omitempty"`
	MaxThreads           *Setting[int]     `json:"max_threads,omitempty"`
	MinSpareThreads      *Setting[int]     `json:"min_spare_threads,omitempty"`
	MaxQueue             *Setting[int]     `json:"max_queue,omitempty"`
	MaxKeepAliveRequests *Setting[int]     `json:"max_keep_alive_requests,omitempty"`
	ConnectionTimeout    *Setting[float64] `json:"connection_timeout_seconds,omitempty"`
	KeepAliveTimeout     *Setting[float64] `json:"keep_alive_timeout_seconds,omitempty"`
	VirtualThreads       *Setting[bool]    `json:"virtual_threads,omitempty"`
	PoolThreads          *int              `json:"pool_threads,omitempty"`
	BusyThreads          *int              `json:"busy_threads,omitempty"`
	CurrentConnections   *int              `json:"current_connections,omitempty"`
}

// Setting is a configured value and where it was found.
type Setting[T any] struct {
	Value  T      `json:"value"`
	Source string `json:"source"`
	Note   string `json:"note,omitempty"`
}

func newProcess(l *model.Listener) *Process {
	p := l.Process
	if p == nil {
		return nil
	}
	out := &Process{
		PID:            p.PID,
		Comm:           p.Comm,
		OpenFiles:      p.OpenFiles,
		OpenFilesLimit: p.OpenFilesLimit,
		Threads:        p.Threads,
		Stopped:        p.Stopped,
		Frozen:         p.Frozen,
		Dumping:        p.Dumping,
		Children:       p.Children, StoppedChildren: p.StoppedChildren, StoppedChild: p.StoppedChild, ChildrenUnread: p.ChildrenUnread,
		Container:        p.Container,
		PodUID:           p.PodUID,
		MemoryLimitBytes: p.MemoryLimit,
		MemoryUsedBytes:  p.MemoryUsed,
		PIDsLimit:        p.PIDsLimit,
		OldBytes:         p.OldUsed, OldMaxBytes: p.OldMax,
		SafepointSeconds: seconds(p.SafepointTime),
		GCSeconds:        seconds(p.GCTime),
		ThrottledSeconds: seconds(p.CPUThrottled),
		RunDelaySeconds:  seconds(p.RunDelay),
		Busiest:          newDestination(p.Busiest),
		Downstream:       newPeers(p.Downstream),
		Stacks:           newStacks(l, p.Stacks),
	}
	if p.Downstream != nil {
		out.DownstreamAgeSeconds = seconds(&p.Downstream.Age)
		out.Workers = newWorkers(l)
	}
	return out
}

func newDestination(d *model.Destination) *Destination {
	if d == nil {
		return nil
	}
	return &Destination{Address: d.Address.String(), Ports: d.Ports, TimeWait: d.TimeWait, Reusable: d.Reusable, Unowned: d.Unowned}
}

func newConnector(c *model.Connector) *Connector {
	if c == nil {
		return nil
	}
	return &Connector{
		Server:               c.Server,
		Framework:            c.Framework,
		Version:              c.Version,
		FrameworkVersion:     c.FrameworkVersion,
		Protocol:             c.Protocol,
		TLS:                  c.TLS,
		HTTP2:                c.HTTP2,
		Executor:             c.Executor,
		MaxConnections:       newSetting(c.MaxConnections),
		AcceptCount:          newSetting(c.AcceptCount),
		MaxThreads:           newSetting(c.MaxThreads),
		MinSpareThreads:      newSetting(c.MinSpareThreads),
		MaxQueue:             newSetting(c.MaxQueue),
		MaxKeepAliveRequests: newSetting(c.MaxKeepAliveRequests),
		ConnectionTimeout:    newDuration(c.ConnectionTimeout),
		KeepAliveTimeout:     newDuration(c.KeepAliveTimeout),
		VirtualThreads:       newSetting(c.VirtualThreads),
		PoolThreads:          c.PoolThreads,
		BusyThreads:          c.BusyThreads,
		CurrentConnections:   c.CurrentConnections,
	}
}

func newSetting[T any](s *model.Setting[T]) *Setting[T] {
	if s == nil {
		return nil
	}
	return &Setting[T]{Value: s.Value, Source: s.Origin(), Note: s.Note}
}

// newDuration keeps the sign: Tomcat reads a negative timeout as none.
func newDuration(s *model.Setting[time.Duration]) *Setting[float64] {
	if s == nil {
		return nil
	}
	return &Setting[float64]{Value: s.Value.Seconds(), Source: s.Origin(), Note: s.Note}
}

// Workers are the connectors' worker threads, by what each was waiting for at one
// moment.
type Workers struct {
	Threads    int       `json:"threads"` // that were read
	Running    int       `json:"running"` // on a CPU, or waiting for one
	WaitingFor []WaitFor `json:"waiting_for"`

	PollerBlocked bool `json:"poller_blocked,omitempty"` // the thread that hands requests to them waits for something else
}

// WaitFor is a peer that threads wait for, "lock": a lock, a pool or a timer,
// which look alike from outside, "client": their own, to take the response, or "open", "read", "write", "file_lock", "fsync" and
// "stat": those system calls on a file or a pipe, or "udp" (its Peer where it is known) and "unix_socket": an answer on such a socket.
type WaitFor struct {
	Peer    string `json:"peer,omitempty"`
	On      string `json:"on,omitempty"`
	Threads int    `json:"threads"`
}

func newWaitFor(w *model.Workers, call model.BlockingCall, n int) WaitFor {
	out := WaitFor{On: call.Name(), Threads: n}
	if call == model.UDPReceive && w.UDPPeer.IsValid() {
		out.Peer = w.UDPPeer.String()
	}
	return out
}

// newWorkers: idle workers are parked as those that wait for a lock are, so that
// these are counted only where the number of busy threads is known.
func newWorkers(l *model.Listener) *Workers {
	d := l.Process.Downstream
	if d.Workers == nil {
		return nil
	}
	out := &Workers{Threads: d.Workers.Threads, Running: d.Workers.Running, WaitingFor: []WaitFor{}, PollerBlocked: d.Workers.PollerBlocked}
	for i := range d.Peers {
		if p := &d.Peers[i]; p.Workers != nil && *p.Workers > 0 {
			out.WaitingFor = append(out.WaitingFor, WaitFor{Peer: p.Address.String(), Threads: *p.Workers})
		}
	}
	for call, n := range d.Workers.Blocked() {
		if n > 0 {
			out.WaitingFor = append(out.WaitingFor, newWaitFor(d.Workers, model.BlockingCall(call), n))
		}
	}
	if n := d.ForClients(l); n > 0 {
		out.WaitingFor = append(out.WaitingFor, WaitFor{On: "client", Threads: n})
	}
	if n := d.Locked(l); n > 0 {
		out.WaitingFor = append(out.WaitingFor, WaitFor{On: "lock", Threads: n})
	}
	return out
}
