package clients

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Tap follows the handshakes of one namespace (handshake.Tap).
type Tap interface {
	SetPorts(ports []uint16) error
	// Alert has everything read that the tap can read, for some time.
	Alert()
	// Alone reports whether every port on which something listens in the namespace is
	// followed.
	Alone() bool
	Report() (handshake.Report, error)
	Close() error
}

// Where is a namespace to tap.
type Where struct {
	NetNS         uint64
	PID           int // a process in it, 0 if none is known
	Ports         []uint16
	SynAckRetries int  // its net.ipv4.tcp_synack_retries, 0 if not known, -1 for none
	Many          bool // it is one of many: its ring is small while few packets come
	Calm          bool // see handshake.TapOptions
}

// Source has the snapshots to which clients are added (schedule.Observer).
type Source interface {
	// Snapshot is the latest, nil before the first.
	Snapshot() *model.Snapshot
	// Next is closed when there is another one.
	Next() <-chan struct{}
}

// Opener opens a Tap.
type Opener func(Where) (Tap, error)

// Follower adds clients to the snapshots of a source.
type Follower struct {
	mode   Mode
	source Source
	open   Opener

	published atomic.Pointer[model.Snapshot]

	mu     sync.Mutex // of what follows
	base   *model.Snapshot
	places map[uint64]*place
	beyond int // namespaces for which there was no tap
	failed error
}

const (
	// maxPlaces bounds the taps. Up to fewPlaces of them have a large ring from the
	// start.
	maxPlaces = 64
	fewPlaces = 4
	// retryAfter is when a namespace that could not be tapped is tried again.
	retryAfter = time.Minute
)

// NewFollower adds to the snapshots of source.
func NewFollower(mode Mode, source Source, open Opener) *Follower {
	return &Follower{mode: mode, source: source, open: open, places: make(map[uint64]*place)}
}

// Snapshot is the source's latest with clients in it, as of when Run or Update
// has last met it. It must not be changed.
func (f *Follower) Snapshot() *model.Snapshot {
	if f.mode == Off {
		return f.source.Snapshot()
	}
	return f.published.Load()
}

// Run follows until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	if f.mode == Off {
		<-ctx.Done()
		return nil
	}
	for {
		next := f.source.Next()
		if err := f.Update(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-next:
		}
	}
}

// Update publishes the source's latest snapshot, if it is a new one. It fails in
// Mode On only.
func (f *Follower) Update() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	base := f.source.Snapshot()
	if f.mode == Off || base == nil || base == f.base {
		return f.failed
	}
	f.base = base
	wanted := wantedOf(base)
	f.closeOthers(wanted)
	f.beyond = 0
	for _, w := range wanted {
		f.follow(base, w)
	}
	f.published.Store(f.merge(base))
	return f.failed
}

// Close closes all taps.
func (f *Follower) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closeOthers(nil)
	return nil
}

// wantedOf lists the namespaces of a snapshot with the ports that are watched or
// expected there.
func wantedOf(s *model.Snapshot) []Where {
	byID := make(map[uint64]*Where)
	at := func(netns uint64) *Where {
		if byID[netns] == nil {
			byID[netns] = &Where{NetNS: netns}
		}
		return byID[netns]
	}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		w := at(l.ID.NetNS)
		w.Ports = append(w.Ports, l.Port)
		if l.Process != nil && w.PID == 0 {
			w.PID = l.Process.PID
		}
	}
	for _, t := range s.Targets {
		w := at(t.NetNS)
		w.Ports = append(w.Ports, t.Port)
	}
	for i := range s.NetNS {
		if w := byID[s.NetNS[i].ID]; w != nil {
			w.SynAckRetries = synAckRetries(&s.NetNS[i])
		}
	}
	out := make([]Where, 0, len(byID))
	for _, w := range byID {
		w.Many = len(byID) > fewPlaces
		slices.Sort(w.Ports)
		w.Ports = slices.Compact(w.Ports)
		out = append(out, *w)
	}
	slices.SortFunc(out, func(a, b Where) int { return cmp.Compare(a.NetNS, b.NetNS) })
	return out
}

func synAckRetries(n *model.NetNS) int {
	if retries, known := n.Sysctl["tcp_synack_retries"]; !known || retries > 0 {
		return retries
	}
	return -1
}

func (f *Follower) closeOthers(wanted []Where) {
	for id, p := range f.places {
		if !slices.ContainsFunc(wanted, func(w Where) bool { return w.NetNS == id }) {
			p.close()
			delete(f.places, id)
		}
	}
}

func (f *Follower) follow(base *model.Snapshot, w Where) {
	p := f.places[w.NetNS]
	if p == nil {
		if len(f.places) == maxPlaces {
			f.beyond++
			return
		}
		p = newPlace(w.NetNS)
		f.places[w.NetNS] = p
	}
	if p.tap == nil && (p.tried.IsZero() || base.Time.Sub(p.tried) >= retryAfter) {
		p.tried = base.Time
		if p.tap, p.err = f.open(w); p.err != nil {
			p.tap = nil
		}
		p.opened = base.Time
	}
	if p.err != nil && f.mode == On {
		f.failed = fmt.Errorf("%w: %w", ErrUnavailable, p.err)
	}
	p.update(base, w.Ports)
}
