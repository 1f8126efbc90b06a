package observer

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// departed is a listener that closed in the window with clients queued.
type departed struct {
	id     model.ListenerID
	absent bool
	losses.Departure
}

// departures are those of a namespace's books.
func departures(b *losses.Books, now time.Time, interval time.Duration) (out []departed) {
	for id, a := range b.Accounts() {
		if d := a.Closed(); d.Queued > 0 && now.Sub(d.At) < max(interval, time.Second) {
			out = append(out, departed{id, a.Absent, d})
		}
	}
	return out
}

// closedBefore is the latest of them that concerns who is judged: its own, and
// that of another address of the port which it took the place of, as after a
// restart that binds elsewhere. One that was there before has not taken its place. s is
// nil where nothing listens on the port.
func closedBefore(list []departed, port uint16, id model.ListenerID, s *standing, now time.Time) *model.Closed {
	var latest *departed
	for i := range list {
		d := &list[i]
		concerns := s == nil || d.id == id || d.absent && !s.since.Before(d.At)
		if d.id.Address.Port() == port && concerns && (latest == nil || d.At.After(latest.At)) {
			latest = d
		}
	}
	if latest == nil {
		return nil
	}
	return &model.Closed{Queued: latest.Queued, Ago: max(0, now.Sub(latest.At)), Part: latest.Part}
}
