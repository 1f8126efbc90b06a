package loadtest

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Knee is the highest load that was served with nobody turned away.
type Knee struct {
	// Reached: the run went beyond it. Else Rate and Inside are the highest that
	// were seen, all served.
	Reached bool
	// Rate is clients a second, averaged over Over or since the first client: the highest
	// before the first second that lost any.
	Rate float64
	// Beyond is the rate in the first second that lost clients, 0 where none did. Queues fill
	// before clients are lost, so that what can be served for long is below Rate where the load rose fast.
	Beyond float64
	Over   time.Duration
	Inside int         // clients inside at once then: accepted and queued; unknown: -1
	Cause  model.Cause // the limit that ended it
	Exact  bool        // of handshakes, else of connections that the kernel made
}

// kneeOver is what rates are averaged over: single seconds of an open loop
// differ by the square root of the rate.
const kneeOver = 5 * time.Second

// knee reads the course: the windows before the first second that lost clients, and the
// rates in those that did. What comes later and loses nothing is the queue being served.
func (c *Course) knee() *Knee {
	k := &Knee{Inside: unknown, Exact: c.tapped, Over: max(kneeOver, c.Width)}
	first := c.firstClient()
	if first < 0 {
		return nil
	}
	n := int(k.Over / c.Width)
	for i := first; i < len(c.Points); i++ {
		p := &c.Points[i]
		rate := c.rate(max(first, i+1-n), i)
		switch lost := p.Dropped > 0 || p.TurnedAway > 0; {
		case lost && !k.Reached:
			k.Reached, k.Cause, k.Beyond = true, p.Cause, max(rate, k.Rate)
		case !k.Reached:
			k.Rate = max(k.Rate, rate)
			if p.Connections >= 0 {
				k.Inside = max(k.Inside, p.Connections+p.Queue)
			}
		}
	}
	return k
}

// firstClient is the first point at which one came, -1 if none did.
func (c *Course) firstClient() int {
	return slices.IndexFunc(c.Points, func(p Point) bool { return c.came(&p) > 0 })
}
