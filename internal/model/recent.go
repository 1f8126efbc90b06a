package model

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	// Quiet is how long nothing may be lost until a trouble is over: what the status of a
	// listener that is watched all the time looks back on.
	Quiet = 10 * time.Second
	// RecentFor is how long a trouble that is over is remembered.
	RecentFor = 15 * time.Minute
)

// Lately is what was lost in the end of a snapshot's interval: the present, which a
// status is of.
type Lately struct {
	Span   time.Duration
	Losses Losses   // without the packets of clients that were turned away before (see Recent)
	Delta  Counters // of the network namespace
}

// Recent is the trouble of the last quarter of an hour, the present one included.
type Recent struct {
	Began time.Time
	Ended time.Time // of the last loss
	Over  bool      // nothing has been lost since Ended for as long as a status looks back
	// Latest is when the latest of several troubles began: Began where there was one.
	Latest time.Time
	// ClientsTurnedAway since Began, nil where their handshakes were not followed all the time.
	ClientsTurnedAway *uint64
	// Proxies is how many addresses, three at most, nearly all of its clients came from; 0: they were more.
	Proxies     int
	Packets     uint64 // dropped since Began
	QueueResets uint64 // connections that stood in the queue when the listener closed
	Cause       Cause  // of most of them
}

// Lasting is the part of the packets from which a cause that says why the queue was
// full goes before those that only say that it was.
const Lasting = .2

// Dominant is the cause of most packets. The causes that say only that the queue was
// full rank behind one that says why it was, where that has a fair share.
func Dominant(packets map[Cause]uint64) Cause {
	var all, telling Cause
	var total uint64
	for _, c := range slices.SortedFunc(maps.Keys(packets), inOrder) {
		n := packets[c]
		total += n
		if n > packets[all] {
			all = c
		}
		if n > packets[telling] && c.Telling() {
			telling = c
		}
	}
	if n := packets[telling]; n > 0 && float64(n) >= Lasting*float64(total) {
		return telling
	}
	return all
}

// inOrder is the order of DropCauses; unknown ones, of later versions, come last.
func inOrder(a, b Cause) int {
	known := DropCauses()
	rank := func(c Cause) int {
		if i := slices.Index(known, c); i >= 0 {
			return i
		}
		return len(known)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// Telling reports whether the cause of a drop says why the queue was full.
func (c Cause) Telling() bool {
	return c != CauseNone && c != CauseSlowAccept && c != CauseAcceptQueue && c != CauseSynBacklog
}
