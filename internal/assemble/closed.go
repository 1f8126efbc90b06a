package assemble

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// closing is a listener that closed in the window with clients queued.
type closing struct {
	id     model.ListenerID
	absent bool
	losses.Departure
}

// closings are those of a namespace's accounts.
func closings(accounts map[model.ListenerID]*losses.Report, now time.Time, interval time.Duration) (out []closing) {
	for id, a := range accounts {
		if d := a.Closed; d.Queued > 0 && now.Sub(d.At) < max(interval, time.Second) {
			out = append(out, closing{id, a.Absent, d})
		}
	}
	return out
}

// closedBefore is the latest of them that concerns who is judged: its own, and
// that of another address of the port which it took the place of, as after a
// restart that binds elsewhere. One that was there before has not taken its place. h is
// nil where nothing listens on the port.
func closedBefore(list []closing, port uint16, id model.ListenerID, h *history, now time.Time) *model.Closed {
	var latest *closing
	for i := range list {
		d := &list[i]
		concerns := h == nil || d.id == id || d.absent && !h.since.Before(d.At)
		if d.id.Address.Port() == port && concerns && (latest == nil || d.At.After(latest.At)) {
			latest = d
		}
	}
	if latest == nil {
		return nil
	}
	return &model.Closed{Queued: latest.Queued, Ago: max(0, now.Sub(latest.At)), Part: latest.Part}
}
