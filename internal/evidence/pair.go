package evidence

import "time"

// judge holds what one judgement is made from. near is the reading that shows
// the acceptor's sleep, wide the one that rates are taken from.
type judge struct {
	near, wide, cur *Reading
	phases          *Phases
}

// apart reports whether two readings of one process are at least so far apart.
func (j *judge) apart(d time.Duration) bool {
	return j.near.taken() && j.cur.Began.Sub(j.near.Ended) >= d
}
