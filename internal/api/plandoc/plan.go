// Package plandoc is the JSON document of a plan: the one definition of its fields.
package plandoc

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// PlanSchema names the JSON document of a plan. It only grows.
const PlanSchema = "tcpdiag.plan/v1"

// Plan is a simulated load and what becomes of its clients, of schema PlanSchema.
type Plan struct {
	Schema             string        `json:"schema"`
	Input              PlanInput     `json:"input"`
	Capacity           *int          `json:"capacity,omitempty"` // absent: no limit
	DurationSeconds    float64       `json:"duration_seconds"`   // until the server is idle again
	ClientsDoneSeconds float64       `json:"clients_done_seconds"`
	Outcomes           PlanOutcomes  `json:"outcomes"`
	LatencySeconds     *PlanLatency  `json:"latency_seconds,omitempty"` // absent: nobody was served
	DroppedPackets     PlanDrops     `json:"dropped_packets"`
	RetriedClients     int           `json:"retried_clients"`
	WastedRequests     int           `json:"wasted_requests"`
	Stages             []PlanStage   `json:"stages"`
	Timeline           []PlanPoint   `json:"timeline"`
	Smallest           *PlanSmallest `json:"smallest,omitempty"` // absent: no settings serve everybody
	Summary            string        `json:"summary"`
	Notes              []PlanNote    `json:"notes"`
}

// PlanInput is what was simulated.
type PlanInput struct {
	Requests              int      `json:"requests"`
	Rate                  *float64 `json:"rate,omitempty"`
	DurationSeconds       *float64 `json:"duration_seconds,omitempty"`
	ServiceTimeSeconds    float64  `json:"service_time_seconds"`
	Threads               int      `json:"threads"`         // -1: no limit
	MaxConnections        int      `json:"max_connections"` // -1: no limit
	AcceptCount           int      `json:"accept_count"`
	InForce               bool     `json:"accept_count_in_force,omitempty"`  // Send-Q of a listener: somaxconn as it is now does not cut it
	ClientTimeoutSeconds  *float64 `json:"client_timeout_seconds,omitempty"` // absent: none
	ClientTimeoutFrom     string   `json:"client_timeout_from"`
	ConnectTimeoutSeconds *float64 `json:"connect_timeout_seconds,omitempty"` // absent: the kernel's
	SynRetries            string   `json:"syn_retries"`
	Syncookies            bool     `json:"syncookies"`
	AbortOnOverflow       bool     `json:"abort_on_overflow"`
	Somaxconn             int      `json:"somaxconn"`
	MaxSynBacklog         int      `json:"max_syn_backlog"`
	RoundTripSeconds      float64  `json:"round_trip_seconds"`
	BackendConnections    int      `json:"backend_connections,omitempty"` // absent: no backend
	BackendTimeSeconds    *float64 `json:"backend_time_seconds,omitempty"`
}

// PlanOutcomes counts clients by how they ended.
type PlanOutcomes struct {
	Served         int `json:"served"`
	ConnectTimeout int `json:"connect_timeout"`
	ReadTimeout    int `json:"read_timeout"`
	Reset          int `json:"reset"`
}

// PlanLatency is that of the clients that were served, in seconds.
type PlanLatency struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// PlanDrops are the packets that the kernel dropped.
type PlanDrops struct {
	SYN      int `json:"syn"`
	SynQueue int `json:"syn_queue"` // of syn, those the SYN queue had no room for
	ACK      int `json:"ack"`
}

// PlanStage is how full a stage became, and when.
type PlanStage struct {
	Name             string   `json:"name"`
	Max              *int     `json:"max,omitempty"` // absent: no limit
	Peak             int      `json:"peak"`
	FullFromSeconds  *float64 `json:"full_from_seconds,omitempty"` // absent: never full
	FullUntilSeconds *float64 `json:"full_until_seconds,omitempty"`
	FullSeconds      float64  `json:"full_seconds"`
}

// PlanPoint is the state at one moment.
type PlanPoint struct {
	T           float64 `json:"t"`
	InService   int     `json:"in_service"`
	Waiting     int     `json:"waiting"`
	AcceptQueue int     `json:"accept_queue"`
	HalfOpen    int     `json:"half_open"`
	Retrying    int     `json:"retrying"`
	Served      int     `json:"served"`
	Lost        int     `json:"lost"`
}

// PlanNote is what a reader must know besides.
type PlanNote struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// PlanSmallest are the least settings that serve everybody.
type PlanSmallest struct {
	Threads        int `json:"threads,omitempty"` // absent: threads do not limit
	MaxConnections int `json:"max_connections"`
	AcceptCount    int `json:"accept_count"`
	// BackendConnections is the pool's size, absent without a backend.
	BackendConnections int `json:"backend_connections,omitempty"`
}

// NewPlan is the document of a plan.
func NewPlan(p *plan.Plan) Plan {
	out := Plan{
		Schema:             PlanSchema,
		Input:              newPlanInput(&p.Input),
		Capacity:           p.Capacity,
		DurationSeconds:    p.Duration.Seconds(),
		ClientsDoneSeconds: p.ClientsDone.Seconds(),
		Outcomes:           PlanOutcomes(p.Outcomes),
		DroppedPackets:     PlanDrops(p.Dropped),
		RetriedClients:     p.Retried,
		WastedRequests:     p.Wasted,
		Stages:             make([]PlanStage, 0, len(p.Stages)),
		Timeline:           make([]PlanPoint, 0, len(p.Timeline)),
		Summary:            p.Summary(),
		Notes:              make([]PlanNote, 0),
	}
	for _, n := range p.Notes() {
		out.Notes = append(out.Notes, PlanNote(n))
	}
	if l := p.Latency; l != nil {
		out.LatencySeconds = &PlanLatency{l.P50.Seconds(), l.P95.Seconds(), l.P99.Seconds(), l.Max.Seconds()}
	}
	for i := range p.Stages {
		out.Stages = append(out.Stages, newPlanStage(&p.Stages[i]))
	}
	for _, t := range p.Timeline {
		out.Timeline = append(out.Timeline, PlanPoint{t.T.Seconds(), t.InService, t.Waiting, t.AcceptQueue, t.HalfOpen, t.Retrying, t.Served, t.Lost})
	}
	if p.Smallest != nil {
		out.Smallest = new(PlanSmallest(*p.Smallest))
	}
	return out
}

func newPlanInput(in *plan.Input) PlanInput {
	out := PlanInput{
		Requests:              in.Requests,
		DurationSeconds:       positive(in.Duration),
		ServiceTimeSeconds:    in.ServiceTime.Seconds(),
		Threads:               max(in.Threads, -1),
		InForce:               in.InForce,
		MaxConnections:        max(in.MaxConnections, -1),
		AcceptCount:           in.AcceptCount,
		ClientTimeoutSeconds:  positive(in.ClientTimeout),
		ClientTimeoutFrom:     "start",
		ConnectTimeoutSeconds: positive(in.ConnectTimeout),
		SynRetries:            string(in.SynRetries),
		Syncookies:            in.Syncookies,
		AbortOnOverflow:       in.AbortOnOverflow,
		Somaxconn:             in.Somaxconn,
		MaxSynBacklog:         in.MaxSynBacklog,
		RoundTripSeconds:      in.RoundTrip.Seconds(),
		BackendConnections:    in.BackendConnections,
		BackendTimeSeconds:    positive(in.BackendTime),
	}
	if in.Rate > 0 {
		out.Rate = new(in.Rate)
	}
	if in.TimeoutFromConnect {
		out.ClientTimeoutFrom = "connect"
	}
	return out
}

func newPlanStage(s *plan.Stage) PlanStage {
	out := PlanStage{Name: s.Name, Peak: s.Peak, FullSeconds: s.FullFor.Seconds()}
	if s.Max > 0 {
		out.Max = new(s.Max)
		if s.Peak >= s.Max {
			out.FullFromSeconds, out.FullUntilSeconds = new(s.FullFrom.Seconds()), new(s.FullUntil.Seconds())
		}
	}
	return out
}

// positive leaves out a time that is not set.
func positive(d time.Duration) *float64 {
	if d <= 0 {
		return nil
	}
	return new(d.Seconds())
}

// Input is what the document says was, or is to be, simulated.
func (in *PlanInput) Input() plan.Input {
	out := plan.Input{
		Requests:           in.Requests,
		Duration:           duration(in.DurationSeconds),
		ServiceTime:        duration(&in.ServiceTimeSeconds),
		Threads:            in.Threads,
		MaxConnections:     in.MaxConnections,
		AcceptCount:        in.AcceptCount,
		InForce:            in.InForce,
		ClientTimeout:      duration(in.ClientTimeoutSeconds),
		TimeoutFromConnect: in.ClientTimeoutFrom == "connect",
		ConnectTimeout:     duration(in.ConnectTimeoutSeconds),
		SynRetries:         plan.SynRetries(in.SynRetries),
		Syncookies:         in.Syncookies,
		AbortOnOverflow:    in.AbortOnOverflow,
		Somaxconn:          in.Somaxconn,
		MaxSynBacklog:      in.MaxSynBacklog,
		RoundTrip:          duration(&in.RoundTripSeconds),
		BackendConnections: in.BackendConnections,
		BackendTime:        duration(in.BackendTimeSeconds),
	}
	if in.Rate != nil {
		out.Rate = *in.Rate
	}
	return out
}

// duration is 0 for seconds that are absent.
func duration(seconds *float64) time.Duration {
	if seconds == nil {
		return 0
	}
	return time.Duration(*seconds * float64(time.Second))
}
