package loadtest

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxPoints bounds a course: an hour by second. A longer one is kept in points of 2 s,
// then of 4 s.
const maxPoints = 3600

// unknown is a figure of a Point that was not read.
const unknown = -1

// Point is what was seen of a listener in one second of the run, or in Course.Width of it.
type Point struct {
	At  time.Duration // of its begin, since the run's, by the second
	End time.Duration // of its last snapshot, exactly: on a busy machine they are late
	// Offered, Served and TurnedAway are clients: attempts that began, less those that were checks, and those
	// whose end was settled in this time. All are zero where handshakes are not followed.
	Offered, Served, TurnedAway uint64
	Refused                     uint64 // of those turned away: nothing listened
	Down                        bool   // nothing listened at some time within it
	LetIn                       uint64 // connections that the namespace's kernel made (PassiveOpens)
	Dropped                     uint64 // packets
	Queue                       int    // highest length of the accept queue
	Line                        int    // clients in line at its end: in the accept queue, or accepted and without a thread
	Connections                 int    // accepted, the highest; unknown where they were not counted
	Waiting                     int    // of these, with a request that no thread has taken
	Busy, Idle                  int    // of these, in service; and between two requests
	Fresh                       bool   // connections were read within this time, and not before
	Answered                    uint64 // clients that had an answer and ended
	Latency                     Latency
	Status                      model.Status
	Cause                       model.Cause // of the worst status within it
}

// join adds a later point to this one.
func (p *Point) join(later Point) {
	p.End, p.Line = later.End, later.Line
	p.Offered += later.Offered
	p.Served += later.Served
	p.TurnedAway += later.TurnedAway
	p.Refused += later.Refused
	p.Down = p.Down || later.Down
	p.LetIn += later.LetIn
	p.Dropped += later.Dropped
	p.Queue = max(p.Queue, later.Queue)
	p.Connections = max(p.Connections, later.Connections)
	p.Waiting = max(p.Waiting, later.Waiting)
	p.Busy = max(p.Busy, later.Busy)
	p.Idle = max(p.Idle, later.Idle)
	p.Fresh = p.Fresh || later.Fresh
	p.Answered += later.Answered
	p.Latency.join(later.Latency)
	if later.Status > p.Status || p.Cause == model.CauseNone {
		p.Status, p.Cause = max(p.Status, later.Status), later.Cause
	}
}

// Course is what was seen of one listener during the run.
type Course struct {
	Width  time.Duration // of each point
	Points []Point       // the oldest first, without gaps where snapshots came in time

	Latest model.Listener // as last seen while it listened, for its names and settings
	// Proxies is how many addresses, three at most, nearly all clients came from when some came last; 0: they were more.
	Proxies int
	// Down is for how long nothing listened on its port.
	Down   time.Duration
	down   time.Duration  // since when, of the run; unknown while something listens
	Worst  model.Listener // at the worst moment of the cause that lost most
	worst  uint64         // lost in Worst's cause until then
	status model.Status   // the worst of all moments

	limit   model.Listener // at the last moment of a limit, and when that was
	limitAt time.Duration

	start         time.Duration // of the first snapshot, since the run's begin
	began, latest counted
	checks        uint64                            // that have ended, and are still among those offered
	tapped        bool                              // handshakes were followed from the begin on
	byCause       map[model.Cause]uint64            // packets
	away          map[model.Cause]uint64            // clients turned away while the cause held
	bounds        [model.NumResponseBuckets]float64 // of Latency's buckets, seconds
}

// counted are the running totals that a snapshot shows.
type counted struct {
	clients       model.ClientTotals // the refused of its port included
	open          int                // attempts that are not settled
	dropped       map[model.DropKey]uint64
	passiveOpens  uint64
	abandoned     uint64
	hasHandshakes bool
}

// countedOf are those of a listener: of a port on which nothing listens any more those that are kept of the last,
// and who was refused since. What was known before and is not for the moment stays.
func countedOf(s *model.Snapshot, l *model.Listener, last model.ListenerID, before counted) counted {
	c, totals := before, &l.Totals
	refused := s.RefusedAt(l)
	if l.Listening() {
		c.hasHandshakes = totals.Clients != nil
	} else {
		totals, c.hasHandshakes = &model.Totals{}, refused != nil
		if i := slices.IndexFunc(s.Retired, func(r model.RetainedTotals) bool { return r.ID == last }); i >= 0 {
			totals = &s.Retired[i].Totals
		}
	}
	if totals.Dropped != nil {
		c.dropped, c.abandoned = totals.Dropped, totals.AbandonedRequests
	}
	if t := totals.Clients; t != nil {
		c.clients = *t
	}
	if refused != nil {
		c.clients.Outcomes[model.ClientRefused] = *refused
	} else {
		c.clients.Outcomes[model.ClientRefused] = before.clients.Outcomes[model.ClientRefused]
	}
	c.open = 0
	if l.Losses != nil && l.Losses.Clients != nil {
		open := l.Losses.Clients
		c.open = open.Trying() + open.Settling
	}
	for i := range s.NetNS {
		if s.NetNS[i].ID == l.ID.NetNS {
			c.passiveOpens = s.NetNS[i].Counters["PassiveOpens"]
		}
	}
	return c
}

// attempts is how many clients had begun to connect: those settled, and those open.
func (c *counted) attempts() (n uint64) {
	for _, o := range c.clients.Outcomes {
		n += o
	}
	return n + uint64(max(0, c.open))
}

func newCourse(s *model.Snapshot, l *model.Listener) *Course {
	c := &Course{Width: time.Second, down: unknown, byCause: make(map[model.Cause]uint64), away: make(map[model.Cause]uint64)}
	c.began = countedOf(s, l, l.ID, counted{})
	c.latest, c.tapped, c.Latest, c.Worst, c.status = c.began, c.began.hasHandshakes, *l, *l, l.Verdict.Status
	return c
}

// observe adds what a snapshot of the run shows.
func (c *Course) observe(r *Recorder, s *model.Snapshot, l *model.Listener) {
	since := s.Time.Sub(r.Began)
	now := countedOf(s, l, c.Latest.ID, c.latest)
	p := Point{At: max(0, since-1).Truncate(c.Width), End: since, Down: !l.Listening(), Connections: unknown, Waiting: unknown, Busy: unknown, Idle: unknown}
	if now.hasHandshakes && c.latest.hasHandshakes {
		ended := now.clients.Sub(c.latest.clients)
		p.Offered = c.offered(&ended, sub(now.attempts(), c.latest.attempts()))
		p.Served, _ = served(&ended)
		p.TurnedAway, p.Refused, p.Answered = ended.TurnedAway(), ended.Outcomes[model.ClientRefused], ended.Answers.Answered
		if now.clients.Answers.Known {
			p.Latency = latencyOf(&ended.Responses)
			c.bounds = now.clients.Responses.Bounds
		}
	}
	if lost := l.Losses; lost != nil && lost.Clients != nil && p.Offered+p.TurnedAway > 0 {
		c.Proxies = len(lost.Clients.Proxies)
	}
	p.LetIn = sub(now.passiveOpens, c.latest.passiveOpens)
	p.Dropped = c.dropped(now.dropped)
	if q := l.AcceptQueue; q != nil {
		p.Queue, p.Line = max(q.Length, q.Recent), q.Length
	}
	if n := l.Connections; n != nil && !n.Partial {
		p.Connections, p.Waiting, p.Busy, p.Idle = n.SlotsInUse(), n.Phases[model.Waiting], n.Phases[model.InService], n.Phases[model.Idle]
		p.Fresh, p.Line = n.Age <= c.Width, p.Line+p.Waiting
	}
	if p.Down && r.mayClose(&c.began, &now) {
		l, p.Down = new(*l), false
		l.Verdict = model.Verdict{}
	}
	c.outage(p.Down, since)
	p.Status, p.Cause = l.Verdict.Status, l.Verdict.Cause
	c.worsen(l, since, p.TurnedAway)
	c.add(p)
	c.latest, c.tapped = now, c.tapped && now.hasHandshakes
	if !l.Listening() && c.Latest.Listening() {
		c.Latest.Verdict = l.Verdict
	} else {
		c.Latest = *l
	}
}

// outage adds to the time in which nothing listened.
func (c *Course) outage(down bool, since time.Duration) {
	if c.down >= 0 {
		c.Down += since - c.down
	}
	c.down = unknown
	if down {
		c.down = since
	}
}

// offered are the clients of some attempts that began: one that is known to be a check when it has ended counts for
// nobody, be it of those that begin afterwards.
func (c *Course) offered(ended *model.ClientTotals, begun uint64) uint64 {
	if ended.Answers.Known {
		c.checks += ended.Answers.Checks
	}
	checks := min(begun, c.checks)
	c.checks -= checks
	return begun - checks
}

// dropped counts the packets since the latest snapshot by their cause.
func (c *Course) dropped(now map[model.DropKey]uint64) (sum uint64) {
	for key, n := range now {
		n = sub(n, c.latest.dropped[key])
		c.byCause[key.Cause] += n
		sum += n
	}
	return sum
}

// worsen keeps the moment at which most was lost, of the cause that explains most of what was
// lost until then.
func (c *Course) worsen(l *model.Listener, since time.Duration, away uint64) {
	c.status = max(c.status, l.Verdict.Status)
	l = c.explained(l, since)
	v, worst := &l.Verdict, &c.Worst.Verdict
	c.away[lossOf(v.Cause)] += away
	lost := c.lost(v.Cause)
	var worse bool
	switch {
	case worst.Cause == model.CauseNone && limited(v) && lost > c.worst:
		worse = true
	case loses(v.Status) != loses(worst.Status) || !loses(v.Status) && v.Status != worst.Status:
		worse = v.Status > worst.Status
	case v.Cause == worst.Cause:
		worse = lostNow(l) > lostNow(&c.Worst)
	case v.Cause == model.CauseNone || worst.Cause == model.CauseNone:
		worse = v.Cause != model.CauseNone
	default:
		worse = lost > c.worst
	}
	same := v.Cause == worst.Cause
	if worse {
		c.Worst = *l
	}
	if worse || same {
		c.worst = lost
	}
}

// leaveIn is how soon after the last moment of a limit clients leave that had waited for it. It may be empty then.
const leaveIn = 10 * time.Second

// explained is the moment that explains what was lost at one of which the cause is not known: the last at which a
// limit was, if that was a short time ago.
func (c *Course) explained(l *model.Listener, since time.Duration) *model.Listener {
	switch {
	case limited(&l.Verdict):
		c.limit, c.limitAt = *l, since
	case l.Verdict.Cause == model.CauseNone && l.Verdict.Status == model.StatusLosing && limited(&c.limit.Verdict) && since-c.limitAt <= leaveIn:
		return &c.limit
	}
	return l
}

// limited means that it is known what makes clients wait or turns them away.
func limited(v *model.Verdict) bool {
	return v.Cause != model.CauseNone && v.Status >= model.StatusSaturated
}

// lost is how much a cause has cost: clients before packets, of which many may be dropped and
// no client be lost.
func (c *Course) lost(cause model.Cause) uint64 { return c.away[lossOf(cause)]<<32 + c.byCause[cause] }

// lossOf is the cause under which clients are counted: those of a listener that has closed are refused as where none was.
func lossOf(cause model.Cause) model.Cause {
	if cause == model.CauseNoListener {
		return model.CauseListenerClosed
	}
	return cause
}

// loses: by which of both clients are lost, what most are lost for is the cause.
func loses(s model.Status) bool { return s >= model.StatusLosing }

// lostNow is what a snapshot's own window lost.
func lostNow(l *model.Listener) uint64 {
	if l.Losses == nil {
		return 0
	}
	n := l.Losses.DroppedPackets
	if c := l.Losses.Clients; c != nil {
		n += c.TurnedAway()
	}
	return n
}

func (c *Course) add(p Point) {
	if n := len(c.Points); n > 0 && c.Points[n-1].At == p.At {
		c.Points[n-1].join(p)
		return
	}
	if len(c.Points) == maxPoints {
		c.halve()
		p.At = p.At.Truncate(c.Width)
		c.add(p)
		return
	}
	c.Points = append(c.Points, p)
}

// halve joins the points by two.
func (c *Course) halve() {
	c.Width *= 2
	points := c.Points
	c.Points = points[:0]
	for _, p := range points {
		p.At = p.At.Truncate(c.Width)
		if n := len(c.Points); n > 0 && c.Points[n-1].At == p.At {
			c.Points[n-1].join(p)
			continue
		}
		c.Points = append(c.Points, p)
	}
}

// served are clients that were let in and, where that is seen, had an answer: who gives up while
// connecting may be let in afterwards, and sends nothing. Of those pending that is not known yet.
func served(t *model.ClientTotals) (n, pending uint64) {
	let := t.Outcomes[model.ClientConnected] + t.Outcomes[model.ClientDelayed]
	if a := &t.Answers; a.Known {
		return a.Answered, sub(let, a.Answered+a.Unanswered+a.Checks+a.Unclear)
	}
	return sub(let, t.Answers.Unanswered), 0
}

// sub is never below zero: a counter that began again counts from there.
func sub(now, before uint64) uint64 { return now - min(now, before) }

// Latency is how long clients waited for the first byte of their answer, from their first SYN
// on (tcpdiag_listener_first_response_seconds): of a sixteenth of the clients.
type Latency struct {
	Count   uint32
	Buckets [model.NumResponseBuckets]uint32 // cumulative
}

func (y *Latency) join(later Latency) {
	y.Count += later.Count
	for i := range y.Buckets {
		y.Buckets[i] += later.Buckets[i]
	}
}

func latencyOf(r *model.FirstResponses) (y Latency) {
	y.Count = uint32(r.Count)
	for i := range r.Buckets {
		y.Buckets[i] = uint32(r.Buckets[i])
	}
	return y
}

// Quantile is the time within which a share of the clients had the first byte; false without
// any, or beyond the last bound.
func (c *Course) Quantile(y Latency, share float64) (seconds float64, known bool) {
	r := model.FirstResponses{Count: uint64(y.Count), Bounds: c.bounds}
	for i, n := range y.Buckets {
		r.Buckets[i] = uint64(n)
	}
	return r.Quantile(share)
}

// SeesAnswers reports whether it is known which clients had an answer.
func (c *Course) SeesAnswers() bool { return c.tapped && c.latest.clients.Answers.Known }

// Latency is that of the whole run.
func (c *Course) Latency() (all Latency) {
	for i := range c.Points {
		all.join(c.Points[i].Latency)
	}
	return all
}
