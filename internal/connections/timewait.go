package connections

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// TIME_WAIT sockets hold no place of any stage, only a row in the kernel's
// table, for a minute each: a server that answers 40,000 requests a second and
// closes after each hundredth leaves 25,000 of them, ten times its connections.
// So a walk takes them along only while there are few in the namespace, and
// otherwise twice in their life; in between their number is the latest.
const (
	cheapTimeWait = 1000
	timeWaitRest  = 30 * time.Second // half of TCP_TIMEWAIT_LEN
)

// TimeWaits remembers a namespace's sockets in TIME_WAIT.
type TimeWaits struct {
	at      time.Time // when a walk last counted them
	all     int       // then the namespace's
	counts  map[model.ListenerID]int
	foreign float64 // then the share of the others, of the namespace's
}

// Due reports whether the next walk takes them along. all are the namespace's.
func (t *TimeWaits) Due(now time.Time, all int, watched []model.ListenerID) bool {
	if all <= cheapTimeWait || t.all <= cheapTimeWait || now.Sub(t.at) >= timeWaitRest {
		return true
	}
	for _, id := range watched {
		if _, ok := t.counts[id]; !ok {
			return true
		}
	}
	return false
}

// States are those to walk.
func States(timeWait bool) sockdiag.States {
	if timeWait {
		return sockdiag.Connected()
	}
	return sockdiag.Connected().Without(sockdiag.TimeWait)
}

// Counted remembers what a whole walk has counted.
func (t *TimeWaits) Counted(now time.Time, all int, found map[model.ListenerID]*Found) {
	t.counts, t.at, t.all = make(map[model.ListenerID]int, len(found)), now, all
	watched := 0
	for id, f := range found {
		n := f.states[sockdiag.TimeWait]
		t.counts[id] = n
		watched += n
	}
	t.foreign = 1 - min(1, float64(watched)/float64(max(all, 1)))
}

// Recall fills in what a walk has left out.
func (t *TimeWaits) Recall(found map[model.ListenerID]*Found) {
	for id, f := range found {
		f.states[sockdiag.TimeWait] = t.counts[id]
	}
}

// Foreign is how many of the namespace's TIME_WAIT sockets now are not those of
// watched listeners, by their share when they were last counted.
// Before the first count any of them may be.
func (t *TimeWaits) Foreign(all int) int {
	if t.at.IsZero() {
		return all
	}
	return int(t.foreign * float64(all))
}
