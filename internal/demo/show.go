package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// Show is a burst against the embedded server with a running commentary.
type Show struct {
	Server   *Server
	Load     *Load
	Limits   ServerOptions
	Clients  int
	Snapshot func() *backlog.Snapshot // what the agent beside it says
	Out      io.Writer
	Now      func() time.Time
}

// tick is the time between two lines of the commentary.
const tick = time.Second

// Run starts the clients and comments until each has its outcome or ctx ends.
// It returns the snapshot that shows the overload best, nil when there was
// none, and what the clients counted.
func (s *Show) Run(ctx context.Context) (*backlog.Snapshot, Outcomes) {
	done := make(chan Outcomes, 1)
	go func() { done <- s.Load.Run(ctx) }()
	start := s.Now()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var best *backlog.Snapshot
	for {
		select {
		case out := <-done:
			s.line(s.Now().Sub(start), s.Snapshot())
			return worse(best, s.Snapshot()), out
		case <-ticker.C:
			snap := s.Snapshot()
			best = worse(best, snap)
			s.line(s.Now().Sub(start), snap)
		}
	}
}

// worse keeps the snapshot with the worse status, and of equal ones the one
// with more people in the queue, the later if that is equal too.
func worse(a, b *backlog.Snapshot) *backlog.Snapshot {
	if b == nil || len(b.Listeners) == 0 {
		return a
	}
	if a == nil {
		return b
	}
	la, lb := &a.Listeners[0], &b.Listeners[0]
	switch {
	case la.Verdict.Status != lb.Verdict.Status:
		if la.Verdict.Status > lb.Verdict.Status {
			return a
		}
		return b
	case la.AcceptQueue == nil || lb.AcceptQueue == nil || lb.AcceptQueue.Length >= la.AcceptQueue.Length:
		return b
	}
	return a
}

// line is one second of the commentary, from the kernel's view on the left to
// the clients' on the right.
func (s *Show) line(at time.Duration, snap *backlog.Snapshot) {
	p := s.Load.Now()
	if snap == nil || len(snap.Listeners) == 0 || snap.Listeners[0].AcceptQueue == nil {
		fmt.Fprintf(s.Out, "%4.0fs  (nothing seen yet)\n", at.Seconds())
		return
	}
	l := &snap.Listeners[0]
	var dropped uint64
	if l.Losses != nil {
		dropped = l.Losses.DroppedPackets
	}
	busy, accepted := 0, 0
	if c := l.Connections; c != nil {
		busy, accepted = c.Phases[backlog.InService]+c.Phases[backlog.Sending], c.Accepted
	}
	fmt.Fprintf(s.Out, "%4.0fs  %s  %s  %s  %s  %s  %s\n", at.Seconds(),
		gauge(busy, s.Limits.MaxThreads), gauge(accepted, s.Limits.MaxConnections),
		gauge(l.AcceptQueue.Length, l.AcceptQueue.Capacity()),
		fmt.Sprintf("%7d", dropped), fmt.Sprintf("%6d", p.Of(OK)), fmt.Sprintf("%6d", p.Lost()))
}

// Heading names the columns of the commentary.
func (s *Show) Heading() string {
	return fmt.Sprintf("%5s  %-16s  %-16s  %-16s  %7s  %6s  %6s", "", "threads", "connections", "accept queue", "dropped", "served", "lost")
}

// gauge is a bar of eight places with its numbers, 16 columns wide. The bar is
// full only when the stage is.
func gauge(used, limit int) string {
	const width = 8
	filled := width
	if used < limit {
		filled = used * width / limit
		if used > 0 && filled == 0 {
			filled = 1
		}
	}
	bar := strings.Repeat("█", filled) + strings.Repeat("░", width-filled)
	return bar + " " + fmt.Sprintf("%-7s", fmt.Sprintf("%d/%d", used, limit))
}
