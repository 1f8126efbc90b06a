package loadtest

import (
	"cmp"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// maxCourses bounds the listeners of which a course is kept; those in trouble come first.
const maxCourses = 50

// Recorder keeps the courses of a run. Not safe for concurrent use.
type Recorder struct {
	Began time.Time
	Ended time.Duration   // of the command whose load this is, since Began; 0 while it runs
	Last  *model.Snapshot // nil before the first
	// Found: the ports were not asked for. That one of them closes matters where clients are refused.
	Found   bool
	courses map[key]*Course
	// Omitted are listeners beyond maxCourses.
	Omitted int
}

// key is a listener, or an expected port on which nothing listens.
type key struct {
	id   model.ListenerID
	port uint16
}

// NewRecorder begins a run whose first snapshot shows what was counted before.
func NewRecorder(first *model.Snapshot) *Recorder {
	r := &Recorder{Began: first.Time, Last: first, courses: make(map[key]*Course)}
	for i := range first.Listeners {
		if c := r.course(first, &first.Listeners[i]); c != nil && !c.Latest.Listening() {
			c.down = 0
		}
	}
	return r
}

// mayClose reports whether it is as well that nothing listens: the load is over, or who was found there has
// closed and nobody was refused.
func (r *Recorder) mayClose(began, now *counted) bool {
	refused := sub(now.clients.Outcomes[model.ClientRefused], began.clients.Outcomes[model.ClientRefused])
	return r.Ended > 0 || r.Found && refused == 0
}

func (r *Recorder) course(s *model.Snapshot, l *model.Listener) *Course {
	k := key{l.ID, l.Port}
	c := r.courses[k]
	if c == nil {
		c = r.takeOver(k, l)
	}
	if c == nil {
		if len(r.courses) == maxCourses {
			r.Omitted++
			return nil
		}
		c = newCourse(s, l)
		if s != r.Last { // it came within the run: all that it counted is the run's
			c.began = counted{hasHandshakes: c.latest.hasHandshakes, passiveOpens: c.latest.passiveOpens}
			c.latest, c.start = c.began, r.Last.Time.Sub(r.Began)
			c.Worst, c.status = model.Listener{ID: l.ID, Port: l.Port}, model.StatusOK // as observed next
		}
		r.courses[k] = c
	}
	return c
}

// takeOver is the course that continues: a port on which nothing listens any more has that of its last listener, and
// a listener that is the first there that of the port.
func (r *Recorder) takeOver(k key, l *model.Listener) *Course {
	if l.Listening() {
		none := key{model.ListenerID{NetNS: k.id.NetNS}, k.port}
		c := r.courses[none]
		if c != nil {
			delete(r.courses, none)
			r.courses[k] = c
		}
		return c
	}
	var last *Course
	for other, c := range r.courses {
		if other.port == k.port && other.id.NetNS == k.id.NetNS && (last == nil || c.succeeds(last)) {
			last = c
		}
	}
	return last
}

// succeeds reports whether of two courses of a port this is the one that continues: that which had more clients, then
// that which began later.
func (c *Course) succeeds(other *Course) bool {
	return cmp.Or(
		cmp.Compare(c.latest.attempts(), other.latest.attempts()),
		cmp.Compare(c.start, other.start),
		cmp.Compare(other.Latest.ID.String(), c.Latest.ID.String()),
	) > 0
}

// Observe adds a snapshot.
func (r *Recorder) Observe(s *model.Snapshot) {
	if !s.Time.After(r.Last.Time) {
		return
	}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		if c := r.course(s, l); c != nil {
			c.observe(r, s, l)
		}
	}
	r.Last = s
}

// Courses are those of all listeners, the worst first.
func (r *Recorder) Courses() []*Course {
	out := make([]*Course, 0, len(r.courses))
	for _, c := range r.courses {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Course) int {
		return cmp.Or(
			cmp.Compare(b.status, a.status),
			cmp.Compare(b.latest.attempts()-b.began.attempts(), a.latest.attempts()-a.began.attempts()),
			cmp.Compare(a.Latest.Port, b.Latest.Port),
			cmp.Compare(a.Latest.ID.String(), b.Latest.ID.String()),
		)
	})
	return out
}

// Open is how many attempts are not settled yet, and of how many clients that were let in it is not known
// yet whether they have an answer: a run ends when there are none, or when they have had their time.
func (r *Recorder) Open() (n int) {
	for _, c := range r.courses {
		n += c.latest.open
		if c.tapped {
			t := c.latest.clients.Sub(c.began.clients)
			_, pending := served(&t)
			n += int(pending)
		}
	}
	return n
}
