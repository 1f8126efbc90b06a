package recording

import (
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// MaxCauses bounds of how many causes something is remembered.
const MaxCauses = 16

// Around is how much is recorded before and after.
const Around = time.Minute

// dominant finds the cause of a recording's whole length.
type dominant struct {
	base   Counted // before it began
	causes []lasting
	last   time.Time // of the latest frame
}

// lasting is a cause that a verdict named.
type lasting struct {
	cause  model.Cause
	status model.Status // the worst with it
	text   string       // of that verdict
	lasted time.Duration
}

// see takes a frame: its cause has lasted since the frame before.
func (d *dominant) see(f *Frame) {
	v := &f.Listener.Verdict
	since := f.At.Sub(d.last)
	if d.last.IsZero() || since < 0 {
		since = 0
	}
	d.last = f.At
	for i := range d.causes {
		c := &d.causes[i]
		if c.cause != v.Cause {
			continue
		}
		c.lasted += since
		if v.Status > c.status {
			c.status, c.text = v.Status, v.Summary
		}
		return
	}
	if len(d.causes) < MaxCauses {
		d.causes = append(d.causes, lasting{v.Cause, v.Status, v.Summary, since})
	}
}

// of is the cause that most was lost for, by what was counted until now; else the one
// that lasted longest at the worst status. Of a port that was closed it is the first:
// that the listener closed on its clients is seen once, that nothing listens for long.
func (d *dominant) of(worst model.Status, now *Counted) (model.Cause, string) {
	counted := Since(&d.base, now)
	if counted.Packets() > 0 && (worst == model.StatusLosing || worst == model.StatusDown && !d.mostlyDown(&counted)) {
		packets := make(map[model.Cause]uint64)
		for _, drops := range counted.Dropped {
			packets[drops.Cause] += drops.Packets
		}
		if c := model.Dominant(packets); c != model.CauseNone {
			return c, d.text(c)
		}
	}
	var out *lasting
	for i := range d.causes {
		c := &d.causes[i]
		if c.status != worst || c.cause == model.CauseNone {
			continue
		}
		if out == nil || worst != model.StatusDown && c.lasted > out.lasted {
			out = c
		}
	}
	if out == nil {
		return model.CauseNone, ""
	}
	return out.cause, out.text
}

// mostlyDown reports whether more was lost while nothing listened than before that: of the clients
// that were turned away the half were refused, or it lasted longer where clients are not counted.
func (d *dominant) mostlyDown(c *Counted) bool {
	if c.Clients != nil {
		return 2*c.Clients.Outcomes[model.ClientRefused] >= c.Clients.TurnedAway()
	}
	var down, before time.Duration
	for _, l := range d.causes {
		switch l.status {
		case model.StatusDown:
			down += l.lasted
		case model.StatusLosing, model.StatusSaturated:
			before += l.lasted
		}
	}
	return down >= before
}

func (d *dominant) text(cause model.Cause) string {
	for i := range d.causes {
		if d.causes[i].cause == cause && d.causes[i].status >= model.StatusSaturated {
			return d.causes[i].text
		}
	}
	return ""
}

// Duration is from the first trouble to the last.
func (s *Summary) Duration() time.Duration {
	last := s.LastTrouble
	if last.IsZero() { // of an earlier version
		last = s.LastSeen
		if s.Reason == EndOver || s.Reason == EndClosed {
			last = last.Add(-Around)
		}
	}
	return max(0, last.Sub(s.Began))
}

// Lost says how long it lasted and what clients lost: "for 32 s: 40 clients turned away".
func (s *Summary) Lost() string {
	out := "for " + phrase.Seconds(max(time.Second, s.Duration().Round(time.Second))) + ": "
	noun := "client"
	if s.Proxies > 0 {
		noun = "connection" // of theirs, not people
	}
	switch {
	case s.TurnedAway != nil && *s.TurnedAway > 0 && s.Undecided() > 0:
		return out + "at least " + phrase.Count(*s.TurnedAway, noun) + " turned away, " + phrase.Number(s.Undecided()) + " more without an answer " + s.Until()
	case s.TurnedAway != nil && *s.TurnedAway > 0:
		return out + phrase.Count(*s.TurnedAway, noun) + " turned away"
	case s.Dropped > 0 && s.Undecided() > 0:
		return out + phrase.Count(s.Undecided(), noun) + " without an answer " + s.Until()
	case s.Dropped > 0:
		return out + phrase.Count(s.Dropped, "packet") + " of clients dropped"
	case s.Status == model.StatusOK: // an incident begins with trouble
		return "nothing is known of it"
	case s.Status == model.StatusDown:
		return out + "nothing listened"
	}
	return out + "clients waited, nothing was lost"
}

// Whole reports whether the trouble was over before the recording ended; false while it lasts.
func (s *Summary) Whole() bool { return s.Reason == EndOver || s.Reason == EndClosed }

// Undecided are the clients that may still be turned away, while it lasts and where nobody
// recorded what became of them.
func (s *Summary) Undecided() uint64 {
	if s.Whole() {
		return 0
	}
	return s.Open
}

// Until is the moment up to which what is said of it holds.
func (s *Summary) Until() string {
	if s.Ended.IsZero() {
		return "so far"
	}
	return "when the recording ended"
}

// Title is a recording in a line: its cause, how long it lasted, and what clients lost.
func (s *Summary) Title() string {
	name := string(s.Cause)
	if s.Cause == model.CauseNone && s.Status == model.StatusOK {
		return s.Lost()
	}
	if s.Cause == model.CauseNone {
		name = s.Status.String()
	}
	return model.Printable(name) + " " + s.Lost()
}

// Where is the listener as people know it: its pod and port, else its address.
func (s *Summary) Where() string {
	if s.Pod != nil {
		return model.Printable(s.Pod.String()) + ":" + strconv.Itoa(int(s.Port))
	}
	return model.Printable(s.Address)
}

// clock is how a report writes a moment: in UTC, for every reader.
const clock = "2006-01-02 15:04:05 MST"

// Clock is a moment in a report.
func Clock(t time.Time) string { return t.UTC().Format(clock) }
