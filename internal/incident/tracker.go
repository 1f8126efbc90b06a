package incident

import (
	"reflect"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// settling is how long it is recorded while it is not known what became of all clients: a
	// cookie lets nobody in any more (TCP_SYNCOOKIE_VALID), and a kernel has given up those of
	// processes that are gone (tcp_orphan_retries: 8 times).
	settling = 2 * time.Minute
	// A frame holds all the evidence and takes some kilobytes. There is one every
	// second at first, then every ten, and after an hour every minute, and besides
	// whenever the status or the cause is another. Every half second between them
	// a point is written, so that an agent that is killed keeps all but the last
	// second whenever it dies.
	half      = 500 * time.Millisecond
	second    = time.Second
	long      = 2 * time.Minute
	longEvery = 10 * time.Second
	longer    = time.Hour
	lastEvery = time.Minute
	// maxOpen bounds how many incidents are recorded at once.
	maxOpen = 32
)

// tracker says of which listeners an incident is to be recorded, and when there
// is something new to record. It knows no clock but the snapshots' own.
type tracker struct {
	history *History
	cases   []*open
	before  map[Key]recording.Counted // as of the latest snapshot
	refused map[Key]uint64            // of expected ports, as of then
	starts  starting
	share   *shares.Resource
}

// open is an incident that has not ended.
type open struct {
	key     Key
	owner   string
	netns   uint64
	port    uint16
	began   time.Time
	last    time.Time       // of the latest frame; zero before the first
	tick    time.Time       // of the latest record
	shown   [2]string       // status and cause of it
	point   recording.Point // the latest that was recorded, as of then
	sample  int64           // the latest that was recorded, in Unix milliseconds
	totals  totals
	total   recording.Counted // the latest that was recorded, at counted
	counted time.Time
	calm    time.Time // since when there is no trouble; zero while there is
	absent  bool      // nothing is there
	lost    bool      // the latest frame found no room in the queue
}

// recordings takes what a tracker has to record. Each answers whether it was
// taken: what was not is offered again.
type recordings interface {
	begin(*open, *recording.Header) bool
	frame(*open, *recording.Frame) bool
	tick(*open, *recording.Tick) bool
	end(*open, *recording.End) bool
}

func troubled(l *model.Listener) bool { return l.Verdict.Status >= model.StatusSaturated }

// observe takes a snapshot.
func (t *tracker) observe(s *model.Snapshot, to recordings) {
	taken := make(map[*model.Listener]bool)
	going := t.cases[:0]
	for _, c := range t.cases {
		l := t.subject(c, s, taken)
		if l != nil {
			taken[l] = true
		}
		if !t.step(c, s, l, to) {
			going = append(going, c)
		}
	}
	t.cases = going
	t.starts.observe(s)
	for i := range s.Listeners {
		if l := &s.Listeners[i]; troubled(l) && !taken[l] && !t.starts.has(l, s.Time) && t.room(s, shares.OwnerOf(l), to) {
			t.open(s, l, to)
		}
	}
	t.count(s)
}

// room reports whether there is room for one more incident of an owner. Where all are taken, the
// latest of the owner that has most of them ends, if that has more than this one would.
func (t *tracker) room(s *model.Snapshot, owner string, to recordings) bool {
	if len(t.cases) < maxOpen {
		return true
	}
	owners := make([]string, len(t.cases))
	for i, c := range t.cases {
		owners[len(owners)-1-i] = c.owner // the latest first
	}
	i := shares.Greediest(owners, owner)
	if i < 0 {
		t.share.Refused(owner)
		return false
	}
	at := len(t.cases) - 1 - i
	if !to.end(t.cases[at], &recording.End{At: s.Time.Round(0).UTC(), Reason: recording.EndDisplaced}) {
		return false // the queue to the disk is full
	}
	t.share.Evicted(t.cases[at].owner)
	t.cases = slices.Delete(t.cases, at, at+1)
	return true
}

// count remembers what was counted before the next snapshot.
func (t *tracker) count(s *model.Snapshot) {
	t.before = make(map[Key]recording.Counted, len(s.Listeners))
	for i := range s.Listeners {
		l := &s.Listeners[i]
		t.before[KeyOf(l)] = counted(&l.Totals)
	}
	for i := range s.Retired { // of a port on which nothing listens for the moment
		r := &s.Retired[i]
		t.before[Key{r.ID, r.ID.Address.Port()}] = counted(&r.Totals)
	}
	refused := make(map[Key]uint64, len(s.Targets))
	for key, n := range t.refused { // a namespace that does not answer has no targets
		if slices.ContainsFunc(s.NetNS, func(n model.NetNS) bool { return n.ID == key.ID.NetNS }) {
			refused[key] = n
		}
	}
	for _, target := range s.Targets {
		if target.Refused != nil {
			refused[portKey(target.NetNS, target.Port)] = *target.Refused
		}
	}
	t.refused = refused
}

// subject is the listener of an incident: at its address, or else what is on its
// port: nothing, where it is expected, or what was started after it.
func (t *tracker) subject(c *open, s *model.Snapshot, taken map[*model.Listener]bool) *model.Listener {
	var other *model.Listener
	for i := range s.Listeners {
		l := &s.Listeners[i]
		switch {
		case KeyOf(l) == c.key:
			return l
		case l.ID.NetNS == c.netns && l.Port == c.port && !taken[l] && !t.has(KeyOf(l)):
			other = l
		}
	}
	return other
}

func (t *tracker) has(key Key) bool {
	for _, c := range t.cases {
		if c.key == key {
			return true
		}
	}
	return false
}

// first reports whether no incident of the same port began before: of two listeners on it nobody knows whose the refused are.
func (t *tracker) first(c *open) bool {
	i := slices.IndexFunc(t.cases, func(other *open) bool { return other.netns == c.netns && other.port == c.port })
	return i < 0 || t.cases[i] == c
}

func (t *tracker) open(s *model.Snapshot, l *model.Listener, to recordings) {
	c := &open{key: KeyOf(l), owner: shares.OwnerOf(l), netns: l.ID.NetNS, port: l.Port, began: s.Time}
	c.totals = newTotals(t.before, c.key, t.refused[portKey(c.netns, c.port)])
	h := &recording.Header{
		Schema: recording.Schema, Host: s.Host, Kernel: s.Kernel, Began: s.Time.Round(0).UTC(),
		Address: AddressOf(l), Port: l.Port, NetNS: l.ID.NetNS, Owner: c.owner, Base: t.before[KeyOf(l)],
	}
	if to.begin(c, h) {
		t.cases = append(t.cases, c)
		t.step(c, s, l, to)
	}
}

// step records what there is, and reports whether the incident has ended.
func (t *tracker) step(c *open, s *model.Snapshot, l *model.Listener, to recordings) (ended bool) {
	if n, known := refusedAt(s, c.netns, c.port); known {
		c.totals.refuse(n, t.first(c))
	}
	if l != nil {
		c.key = KeyOf(l)
		c.totals.add(c.key, counted(&l.Totals))
		c.totals.forget(s)
	}
	c.absent = l == nil
	switch now := s.Time; {
	case l != nil && troubled(l):
		c.calm = time.Time{}
	case c.calm.IsZero() || now.Before(c.calm): // a clock that was set back
		c.calm = now
	case now.Sub(c.calm) >= recording.Around && (settled(l) || now.Sub(c.calm) >= settling):
		if l != nil {
			t.tick(c, s, to, true)
		}
		return to.end(c, &recording.End{At: now.Round(0).UTC(), Reason: c.reason()})
	}
	switch {
	case l == nil:
	case c.due(s.Time, l):
		if f := t.frame(c, s, l); to.frame(c, f) {
			c.last, c.tick, c.shown = s.Time, s.Time, shownBy(l)
			c.counted, c.total = s.Time, f.Counted
		}
	case passed(c.tick, s.Time, half):
		t.tick(c, s, to, false)
	}
	return false
}

// tick records what is new since the record before, without the evidence. over: it is the last.
func (t *tracker) tick(c *open, s *model.Snapshot, to recordings, over bool) {
	next := &recording.Tick{At: s.Time.Round(0).UTC(), Points: t.points(c, s.Time), Samples: t.samples(c, s.Time)}
	now := c.totals.sum
	if over || !reflect.DeepEqual(now, c.total) && passed(c.counted, s.Time, longEvery) {
		next.Counted = &now
	}
	if !to.tick(c, next) {
		return
	}
	if c.tick = s.Time; next.Counted != nil {
		c.counted, c.total = s.Time, now
	}
}

// settled reports whether it is known what became of all clients. Those that have left are
// known late: their kernel repeats their request, at twice the time before each.
func settled(l *model.Listener) bool {
	return l == nil || l.Losses == nil || l.Losses.Clients == nil || l.Losses.Clients.Trying() == 0
}

// passed allows for snapshots that are not exactly as far apart.
func passed(since, now time.Time, every time.Duration) bool {
	d := now.Sub(since)
	return d < 0 || d >= every-50*time.Millisecond
}

func (c *open) reason() string {
	if c.absent {
		return recording.EndClosed
	}
	return recording.EndOver
}

func shownBy(l *model.Listener) [2]string {
	return [2]string{l.Verdict.Status.String(), string(l.Verdict.Cause)}
}

// due: another status or cause is recorded at once.
func (c *open) due(now time.Time, l *model.Listener) bool {
	every := second
	switch age := now.Sub(c.began); {
	case age > longer:
		every = lastEvery
	case age > long:
		every = longEvery
	}
	return c.last.IsZero() || passed(c.last, now, every) || shownBy(l) != c.shown
}

func (t *tracker) frame(c *open, s *model.Snapshot, l *model.Listener) *recording.Frame {
	return &recording.Frame{
		At: s.Time.Round(0).UTC(), Moment: s.Time, Listener: *l, Counted: c.totals.sum,
		Points: t.points(c, s.Time), Samples: t.samples(c, s.Time),
	}
}

// points are the seconds that were not recorded yet. The last may go on: what
// comes in it later is a point of its own.
func (t *tracker) points(c *open, at time.Time) (out []recording.Point) {
	from, now := c.point.At, at.Unix()
	if from == 0 || from > now {
		from, c.point = c.began.Add(-recording.Around).Unix(), recording.Point{}
	}
	for _, p := range t.history.Points(c.key) {
		if p.At < from || p.At > now || p == c.point {
			continue
		}
		more := p
		if p.At == c.point.At {
			more.Drops -= min(more.Drops, c.point.Drops)
		}
		out = append(out, more)
		c.point = p
	}
	return out
}

// samples are those that were not recorded yet, for as long as there is a frame
// every second.
func (t *tracker) samples(c *open, at time.Time) []recording.Samples {
	if at.Sub(c.began) > long {
		return nil
	}
	if c.sample == 0 {
		c.sample = c.began.Add(-recording.Around).UnixMilli()
	}
	out := t.history.Samples(c.key, c.sample)
	if n := len(out); n > 0 {
		c.sample = out[n-1].To
	}
	return out
}

func counted(t *model.Totals) recording.Counted {
	out := recording.Counted{Pending: t.Pending, AbandonedRequests: t.AbandonedRequests, QueueResets: t.QueueResets, Clients: t.Clients}
	if len(t.Dropped) == 0 {
		return out
	}
	for _, cause := range model.DropCauses() {
		for _, packet := range []model.Packet{model.PacketSYN, model.PacketACK, model.PacketUnknown} {
			key := model.DropKey{Cause: cause, Packet: packet}
			if n := t.Dropped[key]; n > 0 {
				out.Dropped = append(out.Dropped, model.Drops{DropKey: key, Packets: n})
			}
		}
	}
	return out
}

// stop ends what is open.
func (t *tracker) stop(at time.Time, to recordings) {
	for _, c := range t.cases {
		to.end(c, &recording.End{At: at.Round(0).UTC(), Reason: recording.EndStopped})
	}
	t.cases = nil
}
