package assistant

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/incident"
)

// incidentsIn selects incidents.
type incidentsIn struct {
	Port  *uint16    `json:"port,omitempty" jsonschema:"of this port alone"`
	Since *time.Time `json:"since,omitempty" jsonschema:"those that lasted until this time or longer (RFC 3339)"`
	limitIn
}

// Incidents are the recordings, the latest first.
type Incidents struct {
	Incidents []api.IncidentSummary `json:"incidents"`
	Omitted   int                   `json:"omitted,omitempty" jsonschema:"incidents that are not listed here"`
}

func (s *server) incidents() tool {
	return tool{
		name: "incidents", title: "Recorded incidents",
		about: "Lists what the agent has recorded, the latest first: when a listener was saturated, losing or down, and why. report tells one of them.",
		input: func(in *jsonschema.Schema) {
			notNull(in)
			between(in, "port", 1, 65535)
			between(in, "limit", 1, maxLimit)
		},
	}
}

func (s *server) listIncidents(ctx context.Context, _ *mcp.CallToolRequest, in incidentsIn) (Incidents, *nothing, error) {
	all, err := s.recorded(ctx)
	if err != nil {
		return Incidents{}, nil, err
	}
	all = slices.DeleteFunc(all, func(i api.IncidentSummary) bool {
		return in.Port != nil && i.Port != *in.Port || in.Since != nil && i.LastSeen.Before(*in.Since)
	})
	shown := first(all, in.limit())
	return Incidents{append([]api.IncidentSummary{}, shown...), len(all) - len(shown)}, nil, nil
}

func (s *server) recorded(ctx context.Context) ([]api.IncidentSummary, error) {
	all, err := s.source.Incidents(ctx)
	if err != nil {
		return nil, err
	}
	clean(all)
	return all.Incidents, nil
}

var errNoID = errors.New("id: give one that the tool incidents lists, such as 000007-20260102T031205Z-8080")

// incident is a recording as the source has it.
func (s *server) incident(ctx context.Context, id string) (*api.Incident, error) {
	if !incident.IsID(id) {
		return nil, errNoID
	}
	out, err := s.source.Incident(ctx, id)
	if err != nil {
		return nil, err
	}
	clean(out)
	quoteNames(&out.Worst)
	return out, nil
}
