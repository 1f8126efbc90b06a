package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// departure is the latest time that the listener went away with clients queued,
// kept for the verdict until the window has passed.
type departure struct {
	queued int
	at     time.Time
	part   bool // only some sockets of an SO_REUSEPORT group
}

// departed is who left, and how: a copy, as the fast loop goes on.
type departed struct {
	account *account
	departure
}

// rememberClosed finds the listeners that went away within the window with
// clients queued: once a scan, for all that are judged.
func (s *Sampler) rememberClosed(snap *model.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.spaces {
		sp.closed = sp.closed[:0]
		for _, a := range sp.accounts {
			if a.closed.queued > 0 && snap.Time.Sub(a.closed.at) < max(snap.Interval, time.Second) {
				sp.closed = append(sp.closed, departed{a, a.closed})
			}
		}
	}
}

// closedBefore is the latest of them that concerns who is judged: its own, and
// that of another address of the port which it took the place of, as after a
// restart that binds elsewhere. Of one that had stood there already, none.
// a is nil where nothing listens on the port.
func (sp *space) closedBefore(port uint16, a *account, now time.Time) *diagnosis.Closed {
	var latest *departed
	for i := range sp.closed {
		d := &sp.closed[i]
		if d.account.id.Address.Port() == port && (a == nil || a == d.account || d.replacedBy(a)) &&
			(latest == nil || d.at.After(latest.at)) {
			latest = d
		}
	}
	if latest == nil {
		return nil
	}
	return &diagnosis.Closed{Queued: latest.queued, Ago: max(0, now.Sub(latest.at)), Part: latest.part}
}

// replacedBy tells whether a's listener came when this one, at another address,
// had gone.
func (d *departed) replacedBy(a *account) bool {
	return d.account.absent && !a.since.Before(d.at)
}
