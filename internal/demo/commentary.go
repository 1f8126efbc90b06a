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
	Color    bool // Out is a terminal that shows colours

	worst   *model.Snapshot
	started bool
}

// Worst is the snapshot that shows the overload best, nil when there was none.
func (c *Commentary) Worst() *model.Snapshot { return c.worst }

// Handle receives the events of Run.
func (c *Commentary) Handle(e Event) {
	switch e.Kind {
	case BurstStarted:
		c.started = true
		fmt.Fprintln(c.Out, c.in(dim, heading()))
	case Present, BurstEnded:
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
		fmt.Fprintf(c.Out, "%3.0f s  (nothing seen yet)\n", e.Elapsed.Seconds())
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
	fmt.Fprintf(c.Out, "%3.0f s  %s  %s  %s  %s  %6d  %s\n", e.Elapsed.Seconds(),
		c.stage(busy, c.Limits.MaxThreads), c.stage(accepted, c.Limits.MaxConnections),
		c.stage(l.AcceptQueue.Length, l.AcceptQueue.Capacity()),
		c.loss(7, dropped), e.Clients.Of(OK), c.loss(6, uint64(max(e.Clients.Lost(), 0))))
}

// Colours of a terminal, as parameters of "select graphic rendition".
const (
	dim    = "2"
	red    = "1;31"
	yellow = "33"
	green  = "32"
)

func (c *Commentary) in(colour, text string) string {
	if !c.Color {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// stage is red where it is full.
func (c *Commentary) stage(used, limit int) string {
	switch {
	case used >= limit:
		return c.in(red, gauge(used, limit))
	case used*5 >= limit*4:
		return c.in(yellow, gauge(used, limit))
	}
	return c.in(green, gauge(used, limit))
}

// loss is red where there is one.
func (c *Commentary) loss(width int, n uint64) string {
	text := fmt.Sprintf("%*d", width, n)
	if n == 0 {
		return text
	}
	return c.in(red, text)
}

// heading names the columns of the lines.
func heading() string {
	return fmt.Sprintf("%5s  %-14s  %-14s  %-14s  %7s  %6s  %6s", "", "threads", "connections", "accept queue", "dropped", "served", "lost")
}

// gauge is a bar of six places with its numbers, 14 columns wide. The bar is
// full only when the stage is.
func gauge(used, limit int) string {
	const width = 6
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
