package assistant

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// Source is what is asked: an agent, or this machine. An error is shown to the
// assistant: it holds no text that a stranger has written.
type Source interface {
	// TakesInterval says that a snapshot takes Query.Interval; an agent has its own in memory.
	TakesInterval() bool
	// Snapshot has the listeners of a port, all for port 0.
	Snapshot(ctx context.Context, query Query) (*api.Snapshot, error)
	// Incidents are the recordings, the latest first.
	Incidents(ctx context.Context) (*api.Incidents, error)
	// Incident is a recording by its ID, which is one.
	Incident(ctx context.Context, id string) (*api.Incident, error)
}

// Query is what a snapshot is to be of.
type Query struct {
	Port     uint16        // 0: all
	Interval time.Duration // between the two readings; 0 reads once
}

// ErrUnknown says that there is no such incident.
var ErrUnknown = errors.New("there is no such incident: the tool incidents lists them")

// OfPort has the listeners of a port alone, all for port 0.
func OfPort(s *api.Snapshot, port uint16) *api.Snapshot {
	if port != 0 {
		s.Listeners = slices.DeleteFunc(s.Listeners, func(l api.Listener) bool { return l.Port != port })
	}
	return s
}
