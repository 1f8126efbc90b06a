package evidence

import "time"

const (
	// maxReadings is how many readings a Track compares with: those of a second and more.
	maxReadings = 16
	// rateFrom is how old a reading may be that rates are taken from.
	rateFrom = 1500 * time.Millisecond
)

// Track follows one listener's readings and judges each by those before it: the
// longest sleep of the acceptor that the readings show, and rates over about a
// second. It is for one goroutine at a time. The zero value is ready.
type Track struct {
	asleep Reading // the first reading of the acceptor's present sleep
	quiet  Reading // the first of it since a safepoint began or ended
	past   [maxReadings]Reading
	n      int // readings so far
	turns  turnover
}

// Judge takes a reading in and judges it.
func (t *Track) Judge(cur Reading, phases Phases, choose Choose) Judgement {
	t.turns.take(&cur, &phases)
	m := Moment{near: t.near(&cur), wide: t.wide(&cur), cur: &cur, phases: &phases, turns: t.turns}
	out := m.judgement(choose)
	t.push(cur)
	return out
}

// near is the reading to compare the acceptor with: one that proves the latch,
// the first of its sleep before all, else the latest that is far enough apart.
func (t *Track) near(cur *Reading) *Reading {
	proves := func(r *Reading) bool {
		m := Moment{near: r, cur: cur}
		return m.AtLatch()
	}
	for _, r := range []*Reading{&t.asleep, &t.quiet} {
		if proves(r) {
			return r
		}
	}
	if r := t.find(proves); r != nil {
		return r
	}
	if r := t.find(func(r *Reading) bool { return cur.Began.Sub(r.Ended) >= MinApart }); r != nil {
		return r
	}
	return &t.past[max(0, t.n-1)%maxReadings]
}

// wide is the reading to take rates from: the oldest of about a second.
func (t *Track) wide(cur *Reading) *Reading {
	old := cur.Began.Add(-rateFrom)
	for i := max(0, t.n-maxReadings); i < t.n; i++ {
		if r := &t.past[i%maxReadings]; r.Ended.After(old) {
			return r
		}
	}
	return &Reading{}
}

// find is the latest reading that will do, nil where none does.
func (t *Track) find(will func(*Reading) bool) *Reading {
	for i := t.n - 1; i >= max(0, t.n-maxReadings); i-- {
		if r := &t.past[i%maxReadings]; will(r) {
			return r
		}
	}
	return nil
}

func (t *Track) push(cur Reading) {
	if m := (Moment{near: &t.asleep, cur: &cur}); !m.sameSleep() {
		t.asleep = cur
	}
	if m := (Moment{near: &t.quiet, cur: &cur}); !m.sameSleep() || !m.undisturbed() {
		t.quiet = cur
	}
	t.past[t.n%maxReadings] = cur
	t.n++
}
