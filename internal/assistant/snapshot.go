package assistant

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// snapshotIn is what a snapshot is asked for.
type snapshotIn struct {
	Port            *uint16  `json:"port,omitempty" jsonschema:"the listeners of this port alone"`
	IntervalSeconds *float64 `json:"interval_seconds,omitempty" jsonschema:"time between the two readings; 0 reads once, without losses and clients; 1 where it is not given"`
	Evidence        bool     `json:"evidence,omitempty" jsonschema:"also return the JSON document (tcpdiag.snapshot/v1) of the listeners that are shown"`
	limitIn
}

// Snapshot is how the listeners stand, the worst first.
type Snapshot struct {
	Time            time.Time         `json:"time"`
	IntervalSeconds float64           `json:"interval_seconds" jsonschema:"what losses and clients are counted over"`
	Host            string            `json:"host,omitempty"`
	Listeners       []State           `json:"listeners"`
	Omitted         int               `json:"omitted,omitempty" jsonschema:"listeners that are not shown here"`
	Notes           []string          `json:"notes,omitempty"`
	Unavailable     []api.Unavailable `json:"unavailable,omitempty" jsonschema:"what could not be read, why, and how it could be"`
}

// State is how one listener stands and why.
type State struct {
	Line
	Chain    []string      `json:"chain" jsonschema:"the full stages from the client inwards: change the last first"`
	Answer   *api.Answer   `json:"answer,omitempty" jsonschema:"what clients see, why, what to do in which order, and what does not help"`
	Findings []api.Finding `json:"findings,omitempty" jsonschema:"the first ones, where there is no answer; the others are evidence"`
	Limits   []api.Limit   `json:"limits,omitempty" jsonschema:"how full each stage is, from the client inwards"`
	Capacity *int          `json:"capacity,omitempty" jsonschema:"clients that can be inside at once"`
	Losses   *api.Losses   `json:"losses,omitempty" jsonschema:"packets of the interval, retransmissions included: never clients"`
	Clients  *api.Clients  `json:"clients,omitempty" jsonschema:"what became of the clients of the interval; absent where handshakes cannot be followed"`
	Recent   *api.Recent   `json:"recent,omitempty" jsonschema:"what was lost in the last quarter of an hour and is over"`
}

const (
	// defaultInterval and maxInterval bound a snapshot; what lasts longer is the agent's work.
	defaultInterval = time.Second
	maxInterval     = time.Minute
	// maxEvidence is how many listeners are shown with their evidence.
	maxEvidence = 10
	// maxFindings is how many findings an answer repeats.
	maxFindings = 3
)

func (s *server) interval() time.Duration {
	if s.source.TakesInterval() {
		return defaultInterval
	}
	return 0
}

func (s *server) snapshot() tool {
	about := "Says for each listener why clients are refused, reset, timed out or made to wait: what they see, why, what to do in which order, what does not help; the limits, losses and clients. "
	if s.source.TakesInterval() {
		about += "Reads the kernel twice, interval_seconds apart."
	} else {
		about += "From the agent's memory: its last minute."
	}
	return tool{
		name: "snapshot", title: "Verdict and advice", about: about,
		input: func(in *jsonschema.Schema) {
			notNull(in)
			between(in, "port", 1, 65535)
			between(in, "limit", 1, maxLimit)
			between(in, "interval_seconds", 0, maxInterval.Seconds())
			if !s.source.TakesInterval() {
				delete(in.Properties, "interval_seconds")
			}
		},
	}
}

func (s *server) takeSnapshot(ctx context.Context, req *mcp.CallToolRequest, in snapshotIn) (Snapshot, *api.Snapshot, error) {
	query := Query{Interval: s.interval()}
	if in.Port != nil {
		query.Port = *in.Port
	}
	if in.IntervalSeconds != nil {
		query.Interval = time.Duration(*in.IntervalSeconds * float64(time.Second))
	}
	snap, err := s.snapshotOf(ctx, req, query)
	if err != nil {
		return Snapshot{}, nil, err
	}
	if len(snap.Listeners) == 0 && query.Port != 0 {
		return Snapshot{}, nil, fmt.Errorf("port %d is none of those that are watched: the tool listeners lists them", query.Port)
	}
	return standings(snap, in)
}

func standings(snap *api.Snapshot, in snapshotIn) (Snapshot, *api.Snapshot, error) {
	limit := in.limit()
	if in.Evidence {
		limit = min(limit, maxEvidence)
	}
	shown := first(snap.Listeners, limit)
	out := Snapshot{
		Time: snap.Time, IntervalSeconds: snap.IntervalSeconds, Host: snap.Host, Listeners: []State{},
		Omitted: snap.Omitted + len(snap.Listeners) - len(shown), Notes: first(snap.Notes, maxRemarks), Unavailable: first(snap.Unavailable, maxRemarks),
	}
	for i := range shown {
		out.Listeners = append(out.Listeners, stateOf(&shown[i]))
	}
	if !in.Evidence {
		return out, nil, nil
	}
	return out, evidenceOf(snap, shown), nil
}

func stateOf(l *api.Listener) State {
	out := State{Line: lineOf(l), Chain: l.Verdict.Chain, Answer: l.Verdict.Answer, Limits: l.Limits, Capacity: l.Capacity, Losses: l.Losses, Clients: l.Clients, Recent: l.Recent}
	if out.Answer == nil { // an agent of before
		out.Findings = first(l.Verdict.Findings, maxFindings)
	}
	return out
}

// evidenceOf is the document with what belongs to the listeners that are shown.
func evidenceOf(snap *api.Snapshot, shown []api.Listener) *api.Snapshot {
	out := *snap
	out.Omitted += len(snap.Listeners) - len(shown)
	out.Listeners = shown
	out.Unavailable = first(snap.Unavailable, maxRemarks)
	out.NetNS = slices.DeleteFunc(slices.Clone(snap.NetNS), func(n api.NetNS) bool {
		return !slices.ContainsFunc(shown, func(l api.Listener) bool { return l.NetNS == n.ID })
	})
	return &out
}

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
