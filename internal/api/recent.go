package api

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Recent is what was lost in the last quarter of an hour, once it is over: it says
// nothing of the present.
type Recent struct {
	Began             time.Time `json:"began"`
	Ended             time.Time `json:"ended"`                         // of the last loss
	ClientsTurnedAway *uint64   `json:"clients_turned_away,omitempty"` // where handshakes were followed all the time
	Proxies           int       `json:"proxies,omitempty"`             // addresses that four of five of them came from, where they are three at most: connections of theirs
	Packets           uint64    `json:"packets"`                       // dropped, retransmissions included: never clients
	QueueResets       uint64    `json:"queue_resets,omitempty"`        // connections that stood in the queue of a listener that closed
	Cause             string    `json:"cause,omitempty"`
}

func newRecent(r *model.Recent) *Recent {
	if r == nil || !r.Over {
		return nil
	}
	return &Recent{
		Began: r.Began, Ended: r.Ended, ClientsTurnedAway: r.ClientsTurnedAway, Proxies: r.Proxies,
		Packets: r.Packets, QueueResets: r.QueueResets, Cause: string(r.Cause),
	}
}

// spanOf is what a status looks back on, where that is not the whole interval.
func spanOf(l *model.Listener) *float64 {
	if l.Lately == nil {
		return nil
	}
	return seconds(&l.Lately.Span)
}
