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
	Began   time.Time
	Ended   time.Duration   // of the command whose load this is, since Began; 0 while it runs
	Last    *model.Snapshot // nil before the first
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
		r.course(first, &first.Listeners[i])
	}
	return r
}

func (r *Recorder) course(s *model.Snapshot, l *model.Listener) *Course {
	k := key{l.ID, l.Port}
	c := r.courses[k]
	if c == nil {
		if len(r.courses) == maxCourses {
			r.Omitted++
			return nil
		}
		c = newCourse(s, l)
		if s != r.Last { // it came within the run: all that it counted is the run's
			c.began = counted{hasHandshakes: c.latest.hasHandshakes, passiveOpens: c.latest.passiveOpens}
			c.latest, c.start = c.began, r.Last.Time.Sub(r.Began)
		}
		r.courses[k] = c
	}
	return c
}

// Observe adds a snapshot.
func (r *Recorder) Observe(s *model.Snapshot) {
	if !s.Time.After(r.Last.Time) {
		return
	}
	for i := range s.Listeners {
		l := &s.Listeners[i]
		if c := r.course(s, l); c != nil {
			c.observe(s, l, s.Time.Sub(r.Began))
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
