package evidence

import "time"

// Moment is what one judgement is made from: a process and its acceptor as they are read
// now and were before. near is the reading that shows the acceptor's sleep, wide the one
// that rates are taken from.
type Moment struct {
	near, wide, cur *Reading
	phases          *Phases
}

// apart reports whether two readings of one process are at least so far apart.
func (m *Moment) apart(d time.Duration) bool {
	return m.near.taken() && m.cur.Began.Sub(m.near.Ended) >= d
}
