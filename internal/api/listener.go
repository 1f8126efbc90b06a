package api

import (
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Listener is a listening address with everything that stands behind it, or an
// expected port on which nothing listens: that one has only its port and verdict.
type Listener struct {
	Address     string       `json:"address,omitempty"`
	Port        uint16       `json:"port"`
	Inode       uint32       `json:"inode,omitempty"`
	NetNS       uint64       `json:"netns,omitempty"`
	Members     int          `json:"members,omitempty"`
	Expected    bool         `json:"expected,omitempty"`
	Pod         *Pod         `json:"pod,omitempty"`
	Process     *Process     `json:"process,omitempty"`
	Connector   *Connector   `json:"connector,omitempty"`
	SynBacklog  *SynBacklog  `json:"syn_backlog,omitempty"`
	AcceptQueue *AcceptQueue `json:"accept_queue,omitempty"`
	Connections *Connections `json:"connections,omitempty"`
	Capacity    *int         `json:"capacity,omitempty"`
	Limits      []Limit      `json:"limits,omitempty"`
	Losses      *Losses      `json:"losses,omitempty"`
	Clients     *Clients     `json:"clients,omitempty"`
	Recent      *Recent      `json:"recent,omitempty"`
	Totals      *Totals      `json:"totals,omitempty"`
	Verdict     Verdict      `json:"verdict"`

	LastListener *LastListener `json:"last_listener,omitempty"`
	Elsewhere    *Elsewhere    `json:"elsewhere,omitempty"`
	Draining     *Draining     `json:"draining,omitempty"`
}

// Draining is who has closed its listener and still has established connections that came through it.
type Draining struct {
	PID         int    `json:"pid"`
	Comm        string `json:"comm"`
	Connections int    `json:"connections"`
}

// Elsewhere is who listens on a port in another network namespace, where nothing does in this
// one.
type Elsewhere struct {
	PID  int    `json:"pid"`
	Comm string `json:"comm,omitempty"`
	Pod  *Pod   `json:"pod,omitempty"`
	// Others is in how many more network namespaces somebody does.
	Others int `json:"others,omitempty"`
}

// LastListener is what was seen to listen on an expected port before nothing did. Its
// process is left out where it was not known.
type LastListener struct {
	Address    string    `json:"address"`
	Comm       string    `json:"comm,omitempty"`
	PID        int       `json:"pid,omitempty"`
	Pod        *Pod      `json:"pod,omitempty"`
	Seen       time.Time `json:"seen"`
	AgoSeconds float64   `json:"ago_seconds"`
}

// SynBacklog holds half-open connections.
type SynBacklog struct {
	Length int `json:"length"`
	Limit  int `json:"limit"`
}

// AcceptQueue holds connections that the application has not accepted. It is full
// at Capacity, one more than the kernel's Limit.
type AcceptQueue struct {
	Length            int      `json:"length"`
	Limit             int      `json:"limit"`
	Capacity          int      `json:"capacity"`
	Full              bool     `json:"full"`
	Peak              *int     `json:"peak,omitempty"`
	PeakAgeSeconds    *float64 `json:"peak_age_seconds,omitempty"`
	Probes            int      `json:"probes,omitempty"` // of length: whose clients have closed and sent nothing, as a probe of the port does
	OldestWaitSeconds *float64 `json:"oldest_wait_seconds,omitempty"`
	SocketDrops       *uint64  `json:"socket_drops,omitempty"`
}

// Connections are the accepted ones by phase; the phases sum to Accepted.
type Connections struct {
	Accepted       int            `json:"accepted"`
	Waiting        int            `json:"waiting"`
	InService      int            `json:"in_service"`
	Sending        int            `json:"sending"`
	Idle           int            `json:"idle"`
	ClientClosed   int            `json:"client_closed"`
	Streaming      int            `json:"streaming,omitempty"` // left out where there are none
	Unclassified   int            `json:"unclassified"`
	Reset          *int           `json:"reset,omitempty"`
	Abandoned      int            `json:"abandoned"`                // of client_closed: with a request that nobody has read
	Left           int            `json:"left,omitempty"`           // of client_closed: for half a second and more, and the server still has their requests
	LeftSeconds    float64        `json:"left_seconds,omitempty"`   // of these, for how long the first, at least
	Repeating      int            `json:"repeating,omitempty"`      // 3 % and more of what was sent was sent again
	Unacknowledged int            `json:"unacknowledged,omitempty"` // of sending: repeated again and again, and nothing has come back
	Forgotten      int            `json:"forgotten,omitempty"`      // of none of these: ended by the server, and nothing acknowledges it, at addresses from which others are heard of
	Silent         *int           `json:"silent,omitempty"`         // of idle, where there are any: have sent nothing since they were connected
	Partial        bool           `json:"partial,omitempty"`
	Subset         int            `json:"sampled,omitempty"`        // connections asked for where they stand for all: the counts are estimates
	SubsetError    int            `json:"sampling_error,omitempty"` // of each, at most so much in 99 of 100 readings
	AgeSeconds     *float64       `json:"age_seconds,omitempty"`    // since they were read
	TopPeer        *PeerShare     `json:"top_peer,omitempty"`       // the address of more than half of them
	TopPeers       []PeerShare    `json:"top_peers,omitempty"`      // the five addresses of most of them, each a lower bound
	States         map[string]int `json:"states,omitempty"`
}

// PeerShare is an address and how many connections at least come from it.
type PeerShare struct {
	Address     string `json:"address"`
	Connections int    `json:"connections"`
}

// Limit is how full a stage is.
type Limit struct {
	Name          string   `json:"name"`
	Used          int      `json:"used"`
	Max           int      `json:"max"`
	Ratio         *float64 `json:"ratio,omitempty"`
	FullInSeconds *float64 `json:"full_in_seconds,omitempty"`
}

// Losses are those of the interval. Each figure counts something else; they are
// never added up.
type Losses struct {
	DroppedPackets    uint64   `json:"dropped_packets"`
	By                []Drops  `json:"by"`
	Unattributed      uint64   `json:"unattributed"`
	AbandonedRequests uint64   `json:"abandoned_requests"`
	QueueResets       uint64   `json:"queue_resets"`
	SocketDrops       uint64   `json:"socket_drops,omitempty"` // packets that the listener's own socket dropped beyond these, as a filter of the socket or its cgroup does
	WorstCase         []string `json:"worst_case"`
}

// Drops are packets, retransmissions included, by cause and kind.
type Drops struct {
	Cause     string `json:"cause,omitempty"`
	Packet    string `json:"packet"`
	Packets   uint64 `json:"packets"`
	Evidence  string `json:"evidence,omitempty"` // what the cause rests on: acceptor, files, process, phases
	Estimated bool   `json:"estimated"`
}

// Verdict is how the listener stands and why. Readers tolerate causes that they
// do not know.
type Verdict struct {
	Status   string    `json:"status"`
	Cause    string    `json:"cause,omitempty"`
	Evidence string    `json:"evidence,omitempty"` // what the cause rests on, where packets were dropped: see Drops
	Chain    []string  `json:"chain"`
	Summary  string    `json:"summary"`
	Findings []Finding `json:"findings"`
	Answer   *Answer   `json:"answer,omitempty"` // the same in four parts; left out of recordings made before there was one

	// IntervalSeconds is what the status looks back on, where that is less than the
	// snapshot's interval.
	IntervalSeconds *float64 `json:"interval_seconds,omitempty"`
}

// Finding is one thing the evidence shows, with what to do about it.
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Evidence string `json:"evidence"`
	Advice   string `json:"advice,omitempty"`
}

func newListener(l *model.Listener) Listener {
	return Listener{
		Address:     l.ID.String(),
		Port:        l.Port,
		Inode:       l.Inode,
		NetNS:       l.ID.NetNS,
		Members:     groupSize(l),
		Expected:    l.Expected,
		Pod:         newPod(l.Pod),
		Process:     newProcess(l),
		Connector:   newConnector(l.Connector),
		SynBacklog:  (*SynBacklog)(l.SynBacklog),
		AcceptQueue: newAcceptQueue(l.AcceptQueue),
		Connections: newConnections(l.Connections),
		Capacity:    l.Capacity(),
		Limits:      newLimits(l.Limits),
		Losses:      newLosses(l.Losses),
		Clients:     newClients(l.Losses),
		Recent:      newRecent(l.Recent),
		Totals:      newTotals(&l.Totals),
		Verdict:     newVerdict(l),

		LastListener: newLastListener(l.Last),
		Elsewhere:    newElsewhere(l.Elsewhere),
		Draining:     (*Draining)(l.Draining),
	}
}

func newElsewhere(e *model.Elsewhere) *Elsewhere {
	if e == nil {
		return nil
	}
	return &Elsewhere{PID: e.PID, Comm: e.Comm, Pod: newPod(e.Pod), Others: e.Others}
}

func newLastListener(l *model.LastListener) *LastListener {
	if l == nil {
		return nil
	}
	return &LastListener{Address: l.Address, Comm: l.Comm, PID: l.PID, Pod: newPod(l.Pod), Seen: l.Seen.UTC(), AgoSeconds: *seconds(&l.Ago)}
}

// groupSize is 0, and so left out, for a listener that shares its address with
// no other socket.
func groupSize(l *model.Listener) int {
	if l.Members < 2 {
		return 0
	}
	return l.Members
}

func newAcceptQueue(q *model.AcceptQueue) *AcceptQueue {
	if q == nil {
		return nil
	}
	out := &AcceptQueue{
		Length:            q.Length,
		Limit:             q.Limit,
		Capacity:          q.Capacity(),
		Full:              q.Full(),
		Peak:              q.Peak,
		Probes:            q.Probes,
		OldestWaitSeconds: seconds(q.OldestWait),
		SocketDrops:       q.SocketDrops,
	}
	if q.Peak != nil && q.PeakAge > 0 {
		out.PeakAgeSeconds = seconds(&q.PeakAge)
	}
	return out
}

func newConnections(c *model.Connections) *Connections {
	if c == nil {
		return nil
	}
	var silent *int
	if c.Phases[model.Idle] > 0 {
		silent = &c.Silent
	}
	var age *float64
	if !c.At.IsZero() {
		age = seconds(&c.Age)
	}
	return &Connections{
		AgeSeconds:     age,
		Accepted:       c.Accepted,
		Waiting:        c.Phases[model.Waiting],
		InService:      c.Phases[model.InService],
		Sending:        c.Phases[model.Sending],
		Idle:           c.Phases[model.Idle],
		ClientClosed:   c.Phases[model.ClientClosed],
		Streaming:      c.Phases[model.Streaming],
		Unclassified:   c.Phases[model.Unclassified],
		TopPeer:        newPeerShare(c.TopPeer),
		TopPeers:       newPeerShares(c.TopPeers),
		Reset:          c.Reset,
		Abandoned:      c.Abandoned,
		Left:           c.Left,
		LeftSeconds:    c.LeftFor.Seconds(),
		Repeating:      c.Repeating,
		Unacknowledged: c.Unacknowledged,
		Forgotten:      c.Forgotten,
		Silent:         silent,
		Partial:        c.Partial,
		Subset:         c.Subset,
		SubsetError:    c.Error,
		States:         c.States,
	}
}

func newPeerShares(all []model.PeerCount) []PeerShare {
	out := make([]PeerShare, len(all))
	for i := range all {
		out[i] = *newPeerShare(&all[i])
	}
	return out
}

func newPeerShare(p *model.PeerCount) *PeerShare {
	if p == nil {
		return nil
	}
	return &PeerShare{Address: p.Address.String(), Connections: p.Connections}
}

func newLimits(limits []model.Limit) []Limit {
	out := make([]Limit, 0, len(limits))
	for _, l := range limits {
		j := Limit{Name: l.Name, Used: l.Used, Max: l.Max, FullInSeconds: seconds(l.FullIn)}
		if isFinite(l.Ratio) { // JSON has no Inf and no NaN: one such limit would lose the whole document
			j.Ratio = &l.Ratio
		}
		out = append(out, j)
	}
	return out
}

func newLosses(l *model.Losses) *Losses {
	if l == nil {
		return nil
	}
	out := &Losses{
		DroppedPackets:    l.DroppedPackets,
		By:                make([]Drops, 0, len(l.By)),
		Unattributed:      l.Unattributed,
		AbandonedRequests: l.AbandonedRequests,
		QueueResets:       l.QueueResets,
		SocketDrops:       l.SocketDrops,
		WorstCase:         orEmpty(l.WorstCase),
	}
	for _, d := range l.By {
		out.By = append(out.By, newDrops(d))
	}
	return out
}

func newVerdict(l *model.Listener) Verdict {
	v, lost := &l.Verdict, l.Losses
	if l.Lately != nil {
		lost = &l.Lately.Losses
	}
	out := Verdict{
		Status:   v.Status.String(),
		Cause:    string(v.Cause),
		Evidence: string(evidenceOf(v.Cause, lost)),
		Chain:    make([]string, 0, len(v.Chain)),
		Summary:  v.Summary,
		Findings: make([]Finding, 0, len(v.Findings)),
		Answer:   newAnswer(&v.Answer),

		IntervalSeconds: spanOf(l),
	}
	for _, c := range v.Chain {
		out.Chain = append(out.Chain, string(c))
	}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, Finding{Code: f.Code, Severity: string(f.Severity), Evidence: f.Evidence, Advice: f.Advice})
	}
	return out
}

// orEmpty keeps a list a list: "[]", not "null".
func orEmpty[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// evidenceOf is what a cause rests on, by the packets that were dropped for it.
func evidenceOf(cause model.Cause, lost *model.Losses) model.Evidence {
	if lost == nil {
		return model.EvidenceNone
	}
	for _, d := range lost.By { // the most packets first
		if d.Cause == cause && d.Evidence != model.EvidenceNone {
			return d.Evidence
		}
	}
	return model.EvidenceNone
}
