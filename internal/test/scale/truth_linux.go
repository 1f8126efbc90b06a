package main

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// truthInterval is how often the kernel is asked in addition to the agent.
const truthInterval = 5 * time.Millisecond

// truth follows the kernel's own counters of one server.
type truth struct {
	mu           sync.Mutex
	drops, queue history
	counters     *netstat.ListenCountersFile
	conn         *sockdiag.Conn
}

func newTruth(s *server) (*truth, error) {
	proc, err := hostproc.NewFS("/proc")
	if err != nil {
		return nil, err
	}
	t := &truth{}
	if t.counters, err = netstat.OpenListenCounters(proc, s.PID()); err != nil {
		return nil, err
	}
	err = netns.Do(netns.Path("/proc", s.PID()), func() error {
		t.conn, err = sockdiag.Dial()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("truth: %w", err)
	}
	return t, t.look()
}

// follow looks until the context ends, and then closes.
func (t *truth) follow(ctx context.Context) error {
	defer func() { _, _ = t.counters.Close(), t.conn.Close() }()
	ticks := time.NewTicker(truthInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := t.look(); err != nil {
				return err
			}
		}
	}
}

func (t *truth) look() error {
	var c netstat.ListenCounters
	if err := t.counters.Read(&c); err != nil {
		return err
	}
	var l sockdiag.Listener
	id := sockdiag.ListenerID{Family: sockdiag.FamilyIPv6, Local: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}
	if err := t.conn.Lookup(id, 0, &l); err != nil {
		return err
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drops.add(now, c.ListenDrops)
	t.queue.add(now, uint64(l.RecvQ))
	return nil
}

// firstDrop is when the kernel counted the first dropped packet.
func (t *truth) firstDrop() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drops.firstRise()
}

// dropped is the newest count.
func (t *truth) dropped() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drops.value[len(t.drops.value)-1]
}

// staleness is how long what was published had no longer been true.
func (t *truth) staleness(at time.Time, drops, queue uint64) (ofDrops, ofQueue time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.drops.staleness(at, drops), t.queue.staleness(at, queue)
}
