package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Commentary writes a line for every snapshot, from the kernel's view on the left
// to the clients' on the right, and remembers the worst moment.
type Commentary struct {
	Limits   ServerOptions
	Snapshot func() *model.Snapshot // what the agent next to the server says
	Out      io.Writer

	worst   *model.Snapshot
	started bool
}

// Worst is the snapshot that shows the overload best, nil when there was none.
func (c *Commentary) Worst() *model.Snapshot { return c.worst }

// Tell receives the events of Run.
func (c *Commentary) Tell(e Event) {
	switch e.Kind {
	case BurstStarted:
		c.started = true
		fmt.Fprintln(c.Out, heading())
	case Look, BurstEnded:
		if c.started {
			snap := c.Snapshot()
			c.worst = worse(c.worst, snap)
			c.line(e, snap)
		}
	}
}

// worse keeps the snapshot with the worse status, and of equal ones the one
// with more people in the queue, the later if that is equal too.
func worse(a, b *model.Snapshot) *model.Snapshot {
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

func (c *Commentary) line(e Event, snap *model.Snapshot) {
	if snap == nil || len(snap.Listeners) == 0 || snap.Listeners[0].AcceptQueue == nil {
		fmt.Fprintf(c.Out, "%4.0fs  (nothing seen yet)\n", e.Elapsed.Seconds())
		return
	}
	l := &snap.Listeners[0]
	var dropped uint64
	if l.Losses != nil {
		dropped = l.Losses.DroppedPackets
	}
	busy, accepted := 0, 0
	if conn := l.Connections; conn != nil {
		busy, accepted = conn.Phases[model.InService]+conn.Phases[model.Sending], conn.Accepted
	}
	fmt.Fprintf(c.Out, "%4.0fs  %s  %s  %s  %7d  %6d  %6d\n", e.Elapsed.Seconds(),
		gauge(busy, c.Limits.MaxThreads), gauge(accepted, c.Limits.MaxConnections),
		gauge(l.AcceptQueue.Length, l.AcceptQueue.Capacity()),
		dropped, e.Clients.Of(OK), e.Clients.Lost())
}

// heading names the columns of the lines.
func heading() string {
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
