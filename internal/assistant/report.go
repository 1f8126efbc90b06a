package assistant

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tcpdiag/tcpdiag/internal/api"
)

// reportIn names an incident.
type reportIn struct {
	ID       string `json:"id" jsonschema:"as the tool incidents has it, such as 000007-20260102T031205Z-8080"`
	Evidence bool   `json:"evidence,omitempty" jsonschema:"also return the JSON document (tcpdiag.incident/v1): second by second, and the listener at its worst"`
}

// Report is what happened.
type Report struct {
	api.IncidentSummary
	Host            string                 `json:"host,omitempty"`
	AcceptQueuePeak int                    `json:"accept_queue_peak"`
	ClientsPeak     *int                   `json:"clients_peak,omitempty" jsonschema:"most clients inside at once"`
	Dropped         []api.Drops            `json:"dropped" jsonschema:"packets, retransmissions included: never clients"`
	Abandoned       uint64                 `json:"abandoned_requests"`
	QueueResets     uint64                 `json:"queue_resets"`
	WorstCase       []string               `json:"worst_case" jsonschema:"what clients may have seen"`
	Beginning       *api.IncidentBeginning `json:"beginning,omitempty" jsonschema:"how it began, by the samples of the accept queue"`
	Events          []api.IncidentEvent    `json:"events" jsonschema:"changes of status, cause or process"`
	EventsOmitted   int                    `json:"events_omitted,omitempty"`
	WorstAt         time.Time              `json:"worst_at"`
	Worst           State                  `json:"worst" jsonschema:"the listener at its worst"`
}

const (
	maxEvents = 20
	// maxSeconds bounds the evidence: what is shown begins a minute before the incident.
	maxSeconds = 600
)

func (s *server) report() tool {
	return tool{
		name: "report", title: "What happened in an incident",
		about: "Tells a recorded incident: when it began, what clients saw, which limit was the cause, how it went, and the verdict at its worst.",
	}
}

func (s *server) describeIncident(ctx context.Context, _ *mcp.CallToolRequest, in reportIn) (Report, *api.Incident, error) {
	i, err := s.incident(ctx, in.ID)
	if err != nil {
		return Report{}, nil, err
	}
	out := Report{
		IncidentSummary: i.IncidentSummary, Host: i.Host, AcceptQueuePeak: i.AcceptQueuePeak, ClientsPeak: i.ClientsPeak,
		Dropped: i.Dropped, Abandoned: i.Abandoned, QueueResets: i.QueueResets, WorstCase: i.WorstCase, Beginning: i.Beginning,
		Events: first(i.Events, maxEvents), EventsOmitted: max(0, len(i.Events)-maxEvents), WorstAt: i.WorstAt, Worst: stateOf(&i.Worst),
	}
	if !in.Evidence {
		return out, nil, nil
	}
	i.Seconds = first(i.Seconds, maxSeconds)
	return out, i, nil
}
