package watchlist

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// settling is how long after the latest arrival new listeners are looked for often: a server
// listens some time after its container has started.
const settling = 30 * time.Second

// arrivals notices that pods come and go, by the times of the folders of a kubelet: it makes the one
// of a pod before its containers, and the link of a container when that has started. To ask for
// both takes some microseconds.
type arrivals struct {
	folders []string
	changed []time.Time // each, by the latest list
	latest  time.Time   // list that has found a change
}

func newArrivals(logs string) *arrivals {
	return &arrivals{folders: []string{filepath.Join(logs, "pods"), filepath.Join(logs, "containers")}}
}

// read are the folders' times, zero for one that is not there.
func (a *arrivals) read() []time.Time {
	times := make([]time.Time, len(a.folders))
	for i, path := range a.folders {
		if st, err := os.Stat(path); err == nil {
			times[i] = st.ModTime()
		}
	}
	return times
}

// list takes note that a list is made, and reports whether new listeners are to be expected.
func (a *arrivals) list(now time.Time) bool {
	times := a.read()
	if a.changed != nil && !slices.Equal(times, a.changed) {
		a.latest = now
	}
	a.changed = times
	return a.settling(now)
}

func (a *arrivals) settling(now time.Time) bool {
	return !a.latest.IsZero() && now.Sub(a.latest) < settling
}

// SeesArrivals reports whether Arrived is of use: the latest list has found a folder of a kubelet.
func (l *Lister) SeesArrivals() bool {
	return l.arrivals != nil && slices.ContainsFunc(l.arrivals.changed, func(t time.Time) bool { return !t.IsZero() })
}

// Arrived reports whether pods have come or gone since the latest list.
func (l *Lister) Arrived() bool {
	return l.arrivals != nil && l.arrivals.changed != nil && !slices.Equal(l.arrivals.read(), l.arrivals.changed)
}

// Settling reports whether pods have arrived so lately that their servers may only now begin to listen.
func (l *Lister) Settling(now time.Time) bool {
	return l.arrivals != nil && l.arrivals.settling(now)
}
