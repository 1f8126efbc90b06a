package api

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/incident/story"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The schemas of the incidents' documents.
const (
	IncidentsSchema = "tcpdiag.incidents/v1"
	IncidentSchema  = "tcpdiag.incident/v1"
)

// Incidents lists the recordings that are kept, the latest first.
type Incidents struct {
	Schema    string            `json:"schema"`
	Incidents []IncidentSummary `json:"incidents"`
}

// IncidentSummary is a recording in brief.
type IncidentSummary struct {
	ID             string     `json:"id"`
	Address        string     `json:"address"` // "port 8080" where nothing listened
	Port           uint16     `json:"port"`
	Pod            *Pod       `json:"pod,omitempty"` // whose listener it is, in Kubernetes
	NetNS          uint64     `json:"netns"`
	Began          time.Time  `json:"began"`
	Ended          *time.Time `json:"ended,omitempty"` // absent while it lasts
	LastSeen       time.Time  `json:"last_seen"`
	Reason         string     `json:"reason,omitempty"` // of the end: over, closed, stopped, displaced, interrupted
	Status         string     `json:"status"`           // the worst
	Cause          string     `json:"cause,omitempty"`  // of most that was lost over its whole length
	Summary        string     `json:"summary"`          // of the worst moment with that cause
	DroppedPackets uint64     `json:"dropped_packets"`

	Title             string  `json:"title"` // cause, duration, and what clients lost
	DurationSeconds   float64 `json:"duration_seconds"`
	ClientsTurnedAway *uint64 `json:"clients_turned_away,omitempty"` // where handshakes were followed
	ClientsUndecided  uint64  `json:"clients_undecided,omitempty"`   // while it lasts, or where it was cut off: without an answer until then, and not known to have left
}

// Incident is a recording: what was lost in it, how it went, and the listener at
// its worst.
type Incident struct {
	Schema string `json:"schema"`
	IncidentSummary
	Version         string   `json:"version"` // of the agent that recorded it
	Host            string   `json:"host,omitempty"`
	Kernel          string   `json:"kernel,omitempty"`
	AcceptQueuePeak int      `json:"accept_queue_peak"`
	ClientsPeak     *int     `json:"clients_peak,omitempty"` // most inside at once
	Dropped         []Drops  `json:"dropped"`
	Abandoned       uint64   `json:"abandoned_requests"`
	QueueResets     uint64   `json:"queue_resets"`
	WorstCase       []string `json:"worst_case"`
	// Beginning is how it began by the samples of the accept queue, absent where they
	// show neither a full queue nor a dropped packet.
	Beginning *IncidentBeginning `json:"beginning,omitempty"`
	Events    []IncidentEvent    `json:"events"`
	Seconds   []IncidentSecond   `json:"seconds"`
	WorstAt   time.Time          `json:"worst_at"`
	Worst     Listener           `json:"worst"`
	Stacks    *Stacks            `json:"stacks,omitempty"` // the thread dump of the incident (--thread-dump)
	Damaged   int                `json:"damaged_records,omitempty"`
	Torn      bool               `json:"torn,omitempty"` // the last record was not written to its end
}

// IncidentBeginning has times of samples; one that no sample shows is absent.
type IncidentBeginning struct {
	FirstWaiting *time.Time `json:"first_waiting,omitempty"` // in the accept queue, after it was empty
	QueueFull    *time.Time `json:"queue_full,omitempty"`
	FirstDrop    *time.Time `json:"first_drop,omitempty"`
}

// IncidentEvent is a change of status, cause or process.
type IncidentEvent struct {
	Time    time.Time `json:"time"`
	Status  string    `json:"status"`
	Cause   string    `json:"cause,omitempty"`
	Summary string    `json:"summary"`
	PID     int       `json:"pid,omitempty"`
}

// IncidentSecond is one second of it, from a minute before.
type IncidentSecond struct {
	Time            int64  `json:"t"` // Unix seconds
	Status          string `json:"status"`
	DroppedPackets  uint32 `json:"dropped_packets"`
	AcceptQueuePeak int32  `json:"accept_queue_peak"`
	Clients         *int32 `json:"clients,omitempty"` // inside
	Cause           string `json:"cause,omitempty"`   // of most of the dropped packets
	// DownstreamInFlight are requests of the process that wait for a peer's answer.
	DownstreamInFlight *int32 `json:"downstream_in_flight,omitempty"`
	// UsedPercent is how much of each limit was in use, by its name: 100 is full.
	UsedPercent map[string]int8 `json:"used_percent,omitempty"`
}

// NewIncidents is the document of a list.
func NewIncidents(list []recording.Summary) Incidents {
	out := Incidents{Schema: IncidentsSchema, Incidents: make([]IncidentSummary, 0, len(list))}
	for i := range list {
		out.Incidents = append(out.Incidents, newSummary(&list[i]))
	}
	return out
}

func newSummary(s *recording.Summary) IncidentSummary {
	out := IncidentSummary{
		ID: s.ID, Address: s.Address, Port: s.Port, Pod: newPod(s.Pod), NetNS: s.NetNS, Began: s.Began, LastSeen: s.LastSeen,
		Reason: s.Reason, Status: s.Status.String(), Cause: string(s.Cause), Summary: s.Text, DroppedPackets: s.Dropped,
		Title: s.Title(), DurationSeconds: s.Duration().Seconds(), ClientsTurnedAway: s.TurnedAway, ClientsUndecided: s.Undecided(),
	}
	if !s.Ended.IsZero() {
		out.Ended = &s.Ended
	}
	return out
}

// NewIncident is the document of a recording.
func NewIncident(s *story.Story) Incident {
	out := Incident{
		Schema: IncidentSchema, IncidentSummary: newSummary(&s.Summary),
		Version: s.Header.Version, Host: s.Header.Host, Kernel: s.Header.Kernel,
		AcceptQueuePeak: s.Peak, Dropped: make([]Drops, 0, len(s.Counted.Dropped)),
		Abandoned: s.Counted.AbandonedRequests, QueueResets: s.Counted.QueueResets, WorstCase: orEmpty(s.Saw),
		Events: make([]IncidentEvent, 0, len(s.Events)), Seconds: make([]IncidentSecond, 0, len(s.Points)),
		WorstAt: s.Worst.At, Worst: newListener(&s.Worst.Listener), Stacks: newStacks(&s.Last.Listener, s.Stacks), Damaged: s.Damaged, Torn: s.Torn,
	}
	if f := s.Filling(); f != nil {
		out.Beginning = &IncidentBeginning{moment(f.Rising), moment(f.Full), moment(f.Dropped)}
	}
	if s.Inside >= 0 {
		out.ClientsPeak = &s.Inside
	}
	for _, d := range s.Counted.Dropped {
		out.Dropped = append(out.Dropped, newDrops(d))
	}
	for _, e := range s.Events {
		out.Events = append(out.Events, IncidentEvent{Time: e.At, Status: e.Status.String(), Cause: string(e.Cause), Summary: e.Text, PID: e.PID})
	}
	for _, p := range s.Points {
		out.Seconds = append(out.Seconds, newSecond(p))
	}
	return out
}

func newSecond(p recording.Point) IncidentSecond {
	out := IncidentSecond{Time: p.At, Status: p.Status.String(), DroppedPackets: p.Drops, AcceptQueuePeak: p.Peak, Cause: string(p.Cause)}
	if p.Inside >= 0 {
		out.Clients = &p.Inside
	}
	if p.InFlight >= 0 {
		out.DownstreamInFlight = &p.InFlight
	}
	for i, name := range recording.Stages() {
		if used := p.Used[i]; used >= 0 {
			if out.UsedPercent == nil {
				out.UsedPercent = make(map[string]int8)
			}
			out.UsedPercent[name] = used
		}
	}
	return out
}

// moment is nil for a time that is not known.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return new(t.UTC())
}

func newDrops(d model.Drops) Drops {
	return Drops{Cause: string(d.Cause), Packet: string(d.Packet), Packets: d.Packets, Evidence: string(d.Evidence), Estimated: d.Estimated}
}
