package render

import (
	"math"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

type listenerJSON struct {
	Address     string           `json:"address,omitempty"`
	Port        uint16           `json:"port"`
	Inode       uint32           `json:"inode,omitempty"`
	NetNS       uint64           `json:"netns,omitempty"`
	Members     int              `json:"members,omitempty"`
	Expected    bool             `json:"expected,omitempty"`
	Process     *processJSON     `json:"process,omitempty"`
	Connector   *connectorJSON   `json:"connector,omitempty"`
	SynBacklog  *synBacklogJSON  `json:"syn_backlog,omitempty"`
	AcceptQueue *acceptQueueJSON `json:"accept_queue,omitempty"`
	Connections *connectionsJSON `json:"connections,omitempty"`
	Capacity    *int             `json:"capacity,omitempty"`
	Limits      []limitJSON      `json:"limits,omitempty"`
	Losses      *lossesJSON      `json:"losses,omitempty"`
	Verdict     verdictJSON      `json:"verdict"`
}

type synBacklogJSON struct {
	Length int `json:"length"`
	Limit  int `json:"limit"`
}

type acceptQueueJSON struct {
	Length            int      `json:"length"`
	Limit             int      `json:"limit"`
	Capacity          int      `json:"capacity"`
	Full              bool     `json:"full"`
	Peak              *int     `json:"peak,omitempty"`
	PeakAgeSeconds    *float64 `json:"peak_age_seconds,omitempty"`
	OldestWaitSeconds *float64 `json:"oldest_wait_seconds,omitempty"`
	SocketDrops       *uint64  `json:"socket_drops,omitempty"`
}

type connectionsJSON struct {
	Accepted     int            `json:"accepted"`
	Waiting      int            `json:"waiting"`
	InService    int            `json:"in_service"`
	Sending      int            `json:"sending"`
	Idle         int            `json:"idle"`
	ClientClosed int            `json:"client_closed"`
	Unclassified int            `json:"unclassified"`
	Reset        *int           `json:"reset,omitempty"`
	Abandoned    int            `json:"abandoned"`        // of client_closed: with a request that nobody has read
	Silent       *int           `json:"silent,omitempty"` // of idle, where there are any: have sent nothing since they were connected
	Partial      bool           `json:"partial,omitempty"`
	States       map[string]int `json:"states,omitempty"`
}

type limitJSON struct {
	Name          string   `json:"name"`
	Used          int      `json:"used"`
	Max           int      `json:"max"`
	Ratio         *float64 `json:"ratio,omitempty"`
	FullInSeconds *float64 `json:"full_in_seconds,omitempty"`
}

type lossesJSON struct {
	DroppedPackets    uint64      `json:"dropped_packets"`
	By                []dropsJSON `json:"by"`
	Unattributed      uint64      `json:"unattributed"`
	AbandonedRequests uint64      `json:"abandoned_requests"`
	QueueResets       uint64      `json:"queue_resets"`
	WorstCase         []string    `json:"worst_case"`
}

type dropsJSON struct {
	Cause     model.Cause  `json:"cause,omitempty"`
	Packet    model.Packet `json:"packet"`
	Packets   uint64       `json:"packets"`
	Estimated bool         `json:"estimated"`
}

type verdictJSON struct {
	Status   string        `json:"status"`
	Cause    model.Cause   `json:"cause,omitempty"`
	Chain    []model.Cause `json:"chain"`
	Summary  string        `json:"summary"`
	Findings []findingJSON `json:"findings"`
}

type findingJSON struct {
	Code     string         `json:"code"`
	Severity model.Severity `json:"severity"`
	Evidence string         `json:"evidence"`
	Advice   string         `json:"advice,omitempty"`
}

func newListenerJSON(l *model.Listener) listenerJSON {
	return listenerJSON{
		Address:     l.ID.String(),
		Port:        l.Port,
		Inode:       l.Inode,
		NetNS:       l.ID.NetNS,
		Members:     groupSize(l),
		Expected:    l.Expected,
		Process:     newProcessJSON(l.Process),
		Connector:   newConnectorJSON(l.Connector),
		SynBacklog:  (*synBacklogJSON)(l.SynBacklog),
		AcceptQueue: newAcceptQueueJSON(l.AcceptQueue),
		Connections: newConnectionsJSON(l.Connections),
		Capacity:    l.Capacity(),
		Limits:      newLimitsJSON(l.Limits),
		Losses:      newLossesJSON(l.Losses),
		Verdict:     newVerdictJSON(&l.Verdict),
	}
}

// groupSize is 0, hence left out, for a listener that shares its address with
// no other socket.
func groupSize(l *model.Listener) int {
	if l.Members < 2 {
		return 0
	}
	return l.Members
}

func newAcceptQueueJSON(q *model.AcceptQueue) *acceptQueueJSON {
	if q == nil {
		return nil
	}
	out := &acceptQueueJSON{
		Length:            q.Length,
		Limit:             q.Limit,
		Capacity:          q.Capacity(),
		Full:              q.Full(),
		Peak:              q.Peak,
		OldestWaitSeconds: seconds(q.OldestWait),
		SocketDrops:       q.SocketDrops,
	}
	if q.Peak != nil && q.PeakAge > 0 {
		out.PeakAgeSeconds = seconds(&q.PeakAge)
	}
	return out
}

func newConnectionsJSON(c *model.Connections) *connectionsJSON {
	if c == nil {
		return nil
	}
	var silent *int
	if c.Phases[model.Idle] > 0 {
		silent = &c.Silent
	}
	return &connectionsJSON{
		Accepted:     c.Accepted,
		Waiting:      c.Phases[model.Waiting],
		InService:    c.Phases[model.InService],
		Sending:      c.Phases[model.Sending],
		Idle:         c.Phases[model.Idle],
		ClientClosed: c.Phases[model.ClientClosed],
		Unclassified: c.Phases[model.Unclassified],
		Reset:        c.Reset,
		Abandoned:    c.Abandoned,
		Silent:       silent,
		Partial:      c.Partial,
		States:       c.States,
	}
}

func newLimitsJSON(limits []model.Limit) []limitJSON {
	out := make([]limitJSON, 0, len(limits))
	for _, l := range limits {
		j := limitJSON{Name: l.Name, Used: l.Used, Max: l.Max, FullInSeconds: seconds(l.FullIn)}
		if isFinite(l.Ratio) { // JSON has no Inf and no NaN: one such limit would lose the whole document
			j.Ratio = &l.Ratio
		}
		out = append(out, j)
	}
	return out
}

func newLossesJSON(l *model.Losses) *lossesJSON {
	if l == nil {
		return nil
	}
	out := &lossesJSON{
		DroppedPackets:    l.DroppedPackets,
		By:                make([]dropsJSON, 0, len(l.By)),
		Unattributed:      l.Unattributed,
		AbandonedRequests: l.AbandonedRequests,
		QueueResets:       l.QueueResets,
		WorstCase:         orEmpty(l.WorstCase),
	}
	for _, d := range l.By {
		out.By = append(out.By, dropsJSON{Cause: d.Cause, Packet: d.Packet, Packets: d.Packets, Estimated: d.Estimated})
	}
	return out
}

func newVerdictJSON(v *model.Verdict) verdictJSON {
	out := verdictJSON{
		Status:   v.Status.String(),
		Cause:    v.Cause,
		Chain:    orEmpty(v.Chain),
		Summary:  v.Summary,
		Findings: make([]findingJSON, 0, len(v.Findings)),
	}
	for _, f := range v.Findings {
		out.Findings = append(out.Findings, findingJSON(f))
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
