package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Workers are the connectors' worker threads, by what each was waiting for at one
// moment.
type Workers struct {
	Threads    int       `json:"threads"` // that were read
	Running    int       `json:"running"` // on a CPU, or waiting for one
	WaitingFor []WaitFor `json:"waiting_for"`

	PollerBlocked bool `json:"poller_blocked,omitempty"` // the thread that hands requests to them waits for something else
}

// WaitFor is a peer that threads wait for, "lock": a lock, a pool or a timer,
// which look alike from outside, or "open", "read", "write", "file_lock", "fsync" and "stat": those system calls on a file or a pipe.
type WaitFor struct {
	Peer    string `json:"peer,omitempty"`
	On      string `json:"on,omitempty"`
	Threads int    `json:"threads"`
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
	for call, n := range d.Workers.Files() {
		if n > 0 {
			out.WaitingFor = append(out.WaitingFor, WaitFor{On: model.FileCall(call).Name(), Threads: n})
		}
	}
	if n := d.Locked(l); n > 0 {
		out.WaitingFor = append(out.WaitingFor, WaitFor{On: "lock", Threads: n})
	}
	return out
}
