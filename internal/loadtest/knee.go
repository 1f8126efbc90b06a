package loadtest

import (
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Knee is the highest load that was served in time with nobody turned away. Of clients that
// kept coming it is a rate, of those that came at once or kept their connections a number.
type Knee struct {
	// Reached: the run went beyond it. Else what follows is the highest that was seen.
	Reached bool
	// Rate is clients a second that can come for long: the highest that came before the first
	// second that turned any away, or as many as were answered while a limit was full, where that
	// is less. Error is how far it may be off by the seconds' own variation (95 %).
	Rate, Error float64
	// Beyond is the rate in the first second that lost clients or answered them late, 0 where
	// none did.
	Beyond    float64
	Over      time.Duration // what rates are averaged over
	Inside    int           // clients inside at once before any was lost: accepted, and queued unless connections are kept; unknown: -1
	Burst     *Burst        // nil where clients kept coming
	KeepAlive bool          // connections are kept: Rate is of them and not of requests
	Late      bool          // the time that a client may wait ended it, and not a loss
	Cause     model.Cause   // the limit that ended it
	Exact     bool          // of handshakes, else of connections that the kernel made
}

// Burst is how many of the clients that came at once were served.
type Burst struct {
	Clients, Error int
}

const (
	// kneeOver is what rates are averaged over: single seconds of an open loop
	// differ by the square root of the rate.
	kneeOver = 5 * time.Second
	// peakOver is over what the highest rate is averaged: one that rises is not there for long.
	peakOver = 2 * time.Second
	// full is how many seconds with a full limit tell what is served for long.
	full = 3
)

// knee reads the course: what came before the first second that lost clients or was late,
// and what was answered while a limit was full.
func (c *Course) knee(slo time.Duration) *Knee {
	first := c.firstClient()
	if first < 0 {
		return nil
	}
	k := &Knee{Inside: unknown, Exact: c.tapped, Over: max(kneeOver, c.Width), KeepAlive: c.keepAlive()}
	end := c.ended(first, slo, k)
	for i := first; i < min(end, len(c.Points)); i++ {
		p := &c.Points[i]
		k.Rate = max(k.Rate, c.rate(c.back(first, i, k.Over), i))
		switch {
		case p.Connections < 0:
		case k.KeepAlive: // who stays in the accept queue is not served, for as long as the others stay inside
			k.Inside = max(k.Inside, p.Connections)
		default:
			k.Inside = max(k.Inside, p.Connections+p.Queue)
		}
	}
	if k.Reached {
		k.Beyond = max(k.Rate, c.rate(c.back(first, end, k.Over), end))
		if k.Rate > 0 {
			k.Error = (k.Beyond - k.Rate) / 2
		}
	}
	c.sustained(k, first, end)
	c.bounded(k, first)
	if _, lasted := c.peakRate(); lasted <= burst && c.tapped && !k.KeepAlive {
		c.atOnce(k, first, slo)
	}
	return k
}

// ended is the first point that lost clients or answered them late, and says so in k.
func (c *Course) ended(first int, slo time.Duration, k *Knee) int {
	for i := first; i < len(c.Points); i++ {
		p := &c.Points[i]
		lost, late := (p.Dropped > 0 || p.TurnedAway > 0) && !c.restarts(i), c.late(i, slo)
		if !lost && !late {
			continue
		}
		k.Reached, k.Late, k.Cause = true, !lost, p.Cause
		for j := i; j < len(c.Points) && k.Cause == model.CauseNone; j++ { // a verdict takes two readings, a CPU's quota longer
			if later := &c.Points[j]; j < i+full || later.Status >= model.StatusSaturated {
				k.Cause = later.Cause
			}
		}
		return i
	}
	return len(c.Points)
}

// restarts reports whether nothing listened at some time about then: what is lost so is lost at any load.
func (c *Course) restarts(i int) bool {
	return slices.ContainsFunc(c.Points[max(0, i-1):min(len(c.Points), i+2)], func(p Point) bool { return p.Down })
}

// late reports whether clients waited longer than slo: by the first bytes of those that are
// measured, or by Little's law over that time: those inside, divided by those that are answered a second.
func (c *Course) late(i int, slo time.Duration) bool {
	if slo == 0 {
		return false
	}
	p := &c.Points[i]
	for b, bound := range c.bounds {
		if bound >= slo.Seconds() {
			if p.Latency.Count > 0 && float64(p.Latency.Count-p.Latency.Buckets[b]) > float64(p.Latency.Count)/100 {
				return true
			}
			break
		}
	}
	var inside, answered float64
	from := max(0, i-full+1)
	for from > 0 && c.span(from, i) < slo {
		from--
	}
	if c.span(from, i) < slo { // nobody can have waited for longer
		return false
	}
	for j := from; j <= i; j++ {
		q := &c.Points[j]
		if q.Busy < 0 || q.Waiting < 0 || q.Status < model.StatusSaturated {
			return false
		}
		inside += float64(q.Busy + q.Waiting + q.Queue)
		answered += float64(q.Answered)
	}
	return answered > 0 && inside/float64(i+1-from)*c.span(from, i).Seconds()/answered > slo.Seconds()
}

// sustained takes what was answered while a limit was full for what can be served for long, where
// that is less than what came: queues fill before clients are lost.
func (c *Course) sustained(k *Knee, first, end int) {
	var paces []float64
	var answered float64
	var span time.Duration
	for i := first + 1; i < len(c.Points); i++ {
		p := &c.Points[i]
		if !c.busy(i) || c.came(p) == 0 || p.Answered == 0 {
			continue
		}
		if i >= end && len(paces) >= full && !limits(p.Cause) {
			break // what is answered in an overload may be less than before it
		}
		paces = append(paces, over(float64(p.Answered), c.span(i, i)))
		answered, span = answered+float64(p.Answered), span+c.span(i, i)
	}
	if len(paces) < full {
		return
	}
	if mean := over(answered, span); mean > 0 && (k.Rate == 0 || mean < k.Rate) {
		k.Rate = mean
		_, k.Error = MeanError(paces)
	}
}

// busy reports whether a limit was full all the time between a snapshot and the one before: at both
// as many stood in line as were served at once, or what is limited lies behind the threads.
func (c *Course) busy(i int) bool {
	for _, p := range c.Points[i-1 : i+1] {
		if p.Down {
			return false
		}
		behind := p.Status >= model.StatusSaturated && !inFront(p.Cause)
		if !behind && (p.Busy < 0 || p.Line < max(1, p.Busy)) {
			return false
		}
	}
	return true
}

// inFront reports whether a cause has clients stand in line where they are counted.
func inFront(c model.Cause) bool {
	switch c {
	case model.CauseNone, model.CauseMaxThreads, model.CauseMaxConnections, model.CauseAcceptQueue, model.CauseBacklogClamped, model.CauseKeepAliveIdle:
		return true
	}
	return false
}

// back is the last point from which it takes that time to another, or the first.
func (c *Course) back(first, to int, long time.Duration) int {
	for i := to; i > first; i-- {
		if c.span(i, to)+c.Width/2 > long {
			return i
		}
	}
	return first
}

// bounded takes no more for served than ever was answered over that time: clients who find no
// answer are lost some seconds after they came, and until then more may come.
func (c *Course) bounded(k *Knee, first int) {
	if !k.Reached || !c.SeesAnswers() || k.KeepAlive {
		return
	}
	most := 0.
	for i := first; i < len(c.Points); i++ {
		from, sum := c.back(first, i, k.Over), 0.
		for _, p := range c.Points[from : i+1] {
			sum += float64(p.Answered)
		}
		most = max(most, over(sum, max(k.Over, c.span(from, i))))
	}
	if most > 0 && most < k.Rate {
		k.Rate, k.Error = most, max(k.Error, (k.Rate-most)/2)
	}
}

// limits reports whether a cause is a limit that works at the same pace when it is exceeded.
func limits(c model.Cause) bool {
	switch c {
	case model.CauseMaxThreads, model.CauseMaxConnections, model.CauseAcceptQueue, model.CauseConnectionPool, model.CauseDownstream:
		return true
	}
	return false
}

// atOnce counts the clients of a burst: those that found room, of them those that were answered
// in time.
func (c *Course) atOnce(k *Knee, first int, slo time.Duration) {
	t := c.latest.clients.Sub(c.began.clients)
	b := &Burst{Clients: int(t.Outcomes[model.ClientConnected])}
	if answered := t.Answers.Answered; t.Answers.Known && t.Answers.Unanswered > 0 {
		b.Clients = min(b.Clients, int(answered))
	}
	if slo > 0 && t.Answers.Known {
		if n, err := c.answeredWithin(first, slo); n < b.Clients {
			b.Clients, b.Error, k.Late = n, err, true
		}
	}
	k.Burst, k.Reached = b, k.Reached || k.Late
}

// answeredWithin is how many clients were answered this long after the first came, and how far
// that may be off: when within its point they came is not known.
func (c *Course) answeredWithin(first int, slo time.Duration) (n, err int) {
	came, sum := c.span(first, first)/2, 0.
	until := c.begin(first) + came + slo
	for i := first; i < len(c.Points); i++ {
		p := &c.Points[i]
		switch answered := float64(p.Answered); {
		case p.End < until:
			sum += answered
		default:
			pace := over(answered, c.span(i, i))
			return int(math.Round(sum + pace*(until-c.begin(i)).Seconds())), int(math.Ceil(pace * came.Seconds()))
		}
	}
	return int(sum), 0
}

// keepAlive reports whether connections had more than one request each: many of them were between two,
// or they lasted for much longer than an answer takes.
func (c *Course) keepAlive() bool {
	if c.idleFraction() > mostIdle {
		return true
	}
	slowest, known := c.Quantile(c.Latency(), .95)
	var lasted, came float64
	for i := range c.Points {
		lasted += float64(max(0, c.Points[i].Connections)) * c.span(i, i).Seconds()
		came += float64(c.came(&c.Points[i]))
	}
	return known && came > 0 && lasted/came > 3*slowest+1
}

// idleFraction is how many of the accepted connections were between two requests.
func (c *Course) idleFraction() float64 {
	var idle, accepted float64
	for i := range c.Points {
		idle += float64(max(0, c.Points[i].Idle))
		accepted += float64(max(0, c.Points[i].Connections))
	}
	return idle / max(1, accepted)
}

// firstClient is the first point at which one came, -1 if none did.
func (c *Course) firstClient() int {
	return slices.IndexFunc(c.Points, func(p Point) bool { return c.came(&p) > 0 })
}

// peakRate is the highest rate of clients over peakOver, and how long clients came.
func (c *Course) peakRate() (rate float64, lasted time.Duration) {
	first := c.firstClient()
	for i := max(0, first); i < len(c.Points); i++ {
		if c.came(&c.Points[i]) > 0 {
			lasted = c.Points[i].At + c.Width - c.Points[first].At
			rate = max(rate, c.rate(c.back(first, i, max(peakOver, c.Width)), i))
		}
	}
	return rate, lasted
}
