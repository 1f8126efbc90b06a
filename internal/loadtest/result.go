// Package loadtest turns the snapshots that were published while a load test ran into
// its result: how many clients were offered, served and turned away and how, which
// limit was reached first and at which rate, and the least settings that would have
// served the load. It is pure: snapshots come in, values go out.
//
// Read course.go first (what is kept of each listener, second by second), then
// result.go.
package loadtest

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Result is what became of the clients of one listener in the whole run.
type Result struct {
	*Course
	Clients *Clients // nil where their handshakes were not followed all the time
	// LetIn are the connections that the namespace's kernel made (PassiveOpens): with another
	// listener in the namespace they are not all this one's.
	LetIn     uint64
	Dropped   uint64                 // packets, never clients
	ByCause   map[model.Cause]uint64 // of these
	Abandoned uint64                 // requests whose clients closed; a lower bound
	Status    model.Status           // the worst of the run
	Cause     model.Cause            // that explains most of what was lost, else that of the worst status
	First     *First                 // nil where no limit was reached
	Knee      *Knee                  // nil where nothing is known of the rate
	Settings  *Settings              // nil where Unplanned says why
	Unplanned string

	patience time.Duration // who left without an answer waited no longer; 0 where that is not known
}

// Clients are attempts to connect, each settled in one way or still open at the end.
type Clients struct {
	model.ClientTotals
	Offered    uint64 // attempts that began in the run, less those that were checks
	Served     uint64 // let in, and answered where answers are seen
	TurnedAway uint64 // got no answer: gave up, stalled, refused, reset or unanswered
	Open       uint64 // not settled at the end, or let in and without an answer so far
}

// First is the limit that was reached first.
type First struct {
	Cause model.Cause
	At    time.Duration
	Rate  float64 // clients a second that came then; 0 where it is not known
}

// Results are those of all listeners, the worst first. slo is how long a client may
// wait for its answer, 0 where nobody says.
func (r *Recorder) Results(slo time.Duration) []*Result {
	courses := r.Courses()
	out := make([]*Result, 0, len(courses))
	for _, c := range courses {
		res := c.result(slo)
		res.patience = res.waitedAtMost(r.Ended)
		var err error
		if res.Settings, err = res.newSettings(slo, r.sysctl(res.Latest.ID.NetNS)); err != nil {
			res.Unplanned = err.Error()
		}
		res.advise()
		out = append(out, res)
	}
	return out
}

func (r *Recorder) sysctl(netns uint64) map[string]int {
	for i := range r.Last.NetNS {
		if r.Last.NetNS[i].ID == netns {
			return r.Last.NetNS[i].Sysctl
		}
	}
	return nil
}

func (c *Course) result(slo time.Duration) *Result {
	res := &Result{
		Course: c, LetIn: sub(c.latest.passiveOpens, c.began.passiveOpens), ByCause: make(map[model.Cause]uint64),
		Abandoned: sub(c.latest.abandoned, c.began.abandoned),
		Status:    c.status, Cause: c.Worst.Verdict.Cause,
	}
	for cause, n := range c.byCause {
		if n > 0 {
			res.ByCause[cause], res.Dropped = n, res.Dropped+n
		}
	}
	if c.tapped {
		res.Clients = c.clients()
		if status, none := c.noneLost(res.Clients); none {
			res.Status, res.Cause = status, model.CauseNone
			res.Worst.Verdict = model.Verdict{Status: status}
		}
		if n := res.Clients.TurnedAway; n > 0 && turnedAwayPart*n >= res.Clients.Offered {
			res.Status = max(res.Status, model.StatusLosing) // that may be known of the last of them when the command has ended
		}
	}
	res.First, res.Knee = c.first(), c.knee(slo)
	return res
}

// noneLost reports whether clients seemed to be lost at some moment, by no limit and with nothing else the matter, while it
// is known by now that all had an answer: they had only waited. The status is that of the other moments.
func (c *Course) noneLost(all *Clients) (status model.Status, none bool) {
	if c.status != model.StatusLosing || isLimit(c.Worst.Verdict.Cause) || all.TurnedAway+all.Open+all.Outcomes[model.ClientUndecided]+all.Answers.Unclear > 0 {
		return 0, false
	}
	for i := range c.Points {
		p := &c.Points[i]
		if p.Dropped > 0 || p.Status >= model.StatusSaturated && p.Status != model.StatusLosing {
			return 0, false
		}
		if p.Status < model.StatusSaturated {
			status = max(status, p.Status)
		}
	}
	return status, true
}

// turnedAwayPart: one of this many clients without an answer is too many.
const turnedAwayPart = 20

func (c *Course) clients() *Clients {
	t := c.latest.clients.Sub(c.began.clients)
	n, pending := served(&t)
	out := &Clients{ClientTotals: t, Served: n, TurnedAway: t.TurnedAway(), Open: uint64(max(0, c.latest.open)) + pending}
	out.Offered = sub(c.latest.attempts(), c.began.attempts())
	if t.Answers.Known {
		out.Offered = sub(out.Offered, t.Answers.Checks)
	}
	return out
}

// Lost reports whether any client is known to have got no answer, or packets of
// clients were dropped.
func (r *Result) Lost() bool {
	return r.Dropped > 0 || r.Clients != nil && r.Clients.TurnedAway > 0 || r.Status >= model.StatusLosing
}

// first finds the first second in which a limit made clients wait or turned them away.
func (c *Course) first() *First {
	for i := range c.Points {
		p := &c.Points[i]
		if p.Status < model.StatusSaturated || !isLimit(p.Cause) {
			continue
		}
		f := &First{Cause: p.Cause, At: p.At}
		f.Rate = c.rate(max(0, c.firstClient(), i-2), i)
		return f
	}
	return nil
}

// isLimit is false for what is no limit, and known not to be: that nothing listens, at all or where it is asked for, or
// that something before the listener or behind it ends connections.
func isLimit(c model.Cause) bool {
	switch c {
	case model.CauseNone, model.CauseNoListener, model.CauseListenerClosed, model.CauseListensElsewhere, model.CauseBeforeListener, model.CauseServerResets, model.CauseLossyNetwork:
		return false
	}
	return true
}

// rate is the clients a second that came from one point to another.
func (c *Course) rate(from, to int) float64 {
	var n uint64
	for i := from; i <= to; i++ {
		n += c.came(&c.Points[i])
	}
	return over(float64(n), c.span(from, to))
}

// begin is when the snapshot before a point was made.
func (c *Course) begin(i int) time.Duration {
	if i == 0 {
		return c.start
	}
	return c.Points[i-1].End
}

// span is how long it was from the begin of one point to the end of another.
func (c *Course) span(from, to int) time.Duration { return c.Points[to].End - c.begin(from) }

// over is a number divided by seconds, 0 of no time.
func over(n float64, span time.Duration) float64 {
	if span <= 0 {
		return 0
	}
	return n / span.Seconds()
}

// came are the clients that a point shows: attempts where handshakes are followed, less those that met no
// listener, else connections of the namespace.
func (c *Course) came(p *Point) uint64 {
	if c.tapped {
		return sub(p.Offered, p.Refused)
	}
	return p.LetIn
}
