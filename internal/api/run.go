package api

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// RunSchema names the JSON document of a load test that was observed. It only grows.
const RunSchema = "tcpdiag.run/v1"

// Run is what became of the clients of a load test, of schema RunSchema. What is not
// known is left out, never zero.
type Run struct {
	Schema   string    `json:"schema"`
	Began    time.Time `json:"began"`
	Seconds  float64   `json:"seconds"`
	Command  string    `json:"command"`   // without its arguments: they may hold secrets
	ExitCode int       `json:"exit_code"` // the command's own, 128+n where signal n ended it
	// Status is the worst listener's in the whole run. Failed: --fail-on was given and
	// Status is as bad, or worse.
	Status string `json:"status,omitempty"`
	Failed bool   `json:"failed"`
	// Problem is why nothing could be observed; Listeners is empty then.
	Problem string `json:"problem,omitempty"`
	// Repeated is how often the test was run (--repeat), absent with once; the document is of the
	// worst run, which was the Shown-th, and each listener's Repeats have the figures of all.
	Repeated    int           `json:"repeated,omitempty"`
	Shown       int           `json:"shown,omitempty"`
	Version     string        `json:"version,omitempty"` // of tcpdiag
	SLOSeconds  float64       `json:"slo_seconds,omitempty"`
	Host        string        `json:"host,omitempty"`
	Kernel      string        `json:"kernel,omitempty"`
	Listeners   []RunListener `json:"listeners"`
	Omitted     int           `json:"omitted,omitempty"`
	Unavailable []Unavailable `json:"unavailable"`
}

// RunListener is one listener in the whole run, the worst first.
type RunListener struct {
	Address string `json:"address,omitempty"`
	Port    uint16 `json:"port"`
	Process string `json:"process,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Status  string `json:"status"`
	Cause   string `json:"cause,omitempty"`

	Clients        *RunClients       `json:"clients,omitempty"` // absent: handshakes were not followed (CAP_NET_RAW)
	Connections    uint64            `json:"connections"`       // that the namespace's kernel made (PassiveOpens)
	DroppedPackets uint64            `json:"dropped_packets"`   // packets, never clients
	DroppedBy      map[string]uint64 `json:"dropped_by,omitempty"`
	Abandoned      uint64            `json:"abandoned_requests"`     // a lower bound
	DownSeconds    float64           `json:"down_seconds,omitempty"` // in which nothing listened

	FirstLimit *RunLimit    `json:"first_limit,omitempty"` // absent: no limit was reached
	Knee       *RunKnee     `json:"knee,omitempty"`
	Settings   *RunSettings `json:"settings,omitempty"`
	// SettingsUnknown is why no settings were simulated.
	SettingsUnknown string       `json:"settings_unknown,omitempty"`
	InForce         []RunSetting `json:"in_force,omitempty"`
	FirstByte       *RunLatency  `json:"first_byte,omitempty"`
	Repeats         []RunFigures `json:"repeats,omitempty"`
	Verdict         Verdict      `json:"verdict"` // of the worst moment
	Course          RunCourse    `json:"course"`
}

// RunClients are attempts to connect, each settled in one way or open at the end.
type RunClients struct {
	Offered    uint64  `json:"offered"` // without checks
	Served     uint64  `json:"served"`
	TurnedAway uint64  `json:"turned_away"` // gave_up, stalled, refused, reset and unanswered
	GaveUp     uint64  `json:"gave_up"`
	Stalled    uint64  `json:"stalled"`
	Refused    uint64  `json:"refused"`
	Reset      uint64  `json:"reset"`
	Unanswered *uint64 `json:"unanswered,omitempty"`
	Closed     uint64  `json:"closed_by_server,omitempty"` // of unanswered: the server ended the connection
	// Of those that were let in: had an answer; sent nothing, which are not among those offered; it was not seen. Absent where answers are not seen.
	Answered  *uint64 `json:"answered,omitempty"`
	Checks    *uint64 `json:"checks,omitempty"`
	Unclear   *uint64 `json:"unclear,omitempty"`
	Delayed   uint64  `json:"delayed"` // let in late; part of served or unanswered
	HalfOpen  uint64  `json:"half_open"`
	Undecided uint64  `json:"undecided"`
	Open      uint64  `json:"open,omitempty"` // not settled at the end
	// Proxies are the addresses, three at most, that four of five of them came from: connections of theirs. Absent where they were more.
	Proxies int `json:"proxies,omitempty"`
}

// NoneLost reports whether it is known of all that they got in, and of none that an answer did not come.
func (c *RunClients) NoneLost() bool { return c != nil && c.TurnedAway == 0 && c.Unknown() == 0 }

// GaveUpInside are the unanswered that left by themselves.
func (c *RunClients) GaveUpInside() uint64 {
	n := counted(c.Unanswered)
	return n - min(n, c.Closed)
}

// Unknown is of how many clients it is not known what became of them.
func (c *RunClients) Unknown() uint64 {
	return c.Open + c.Undecided + counted(c.Unclear)
}

// RunLimit is the limit that was reached first.
type RunLimit struct {
	Cause            string  `json:"cause"`
	AtSeconds        float64 `json:"at_seconds"`
	ClientsPerSecond float64 `json:"clients_per_second"`
}

// RunKnee is the highest load that was served in time with nobody turned away.
type RunKnee struct {
	Reached          bool     `json:"reached"` // false: the run did not go beyond it
	ClientsPerSecond float64  `json:"clients_per_second"`
	Beyond           *float64 `json:"lost_from_clients_per_second,omitempty"`
	OverSeconds      float64  `json:"over_seconds"` // what rates are averaged over
	// Error is how far the rate may be off by the seconds' own variation (95 %).
	Error  float64 `json:"error_clients_per_second,omitempty"`
	Inside *int    `json:"clients_inside,omitempty"`
	// AtOnce is of clients that came within 2 s: as many as found room and were answered in time.
	// AtOnceError is how far it may be off, as a course is by second.
	AtOnce        *int   `json:"clients_at_once,omitempty"`
	AtOnceError   int    `json:"error_clients_at_once,omitempty"`
	KeepAlive     bool   `json:"connections_kept,omitempty"` // the rate is of connections, not of requests
	Late          bool   `json:"late,omitempty"`             // --slo ended it, and not a loss
	Cause         string `json:"cause,omitempty"`
	OfConnections bool   `json:"of_connections"` // counted as connections of the namespace, not as clients
}

// RunSettings are the limits in force and the least that would have served the load.
type RunSettings struct {
	ServiceTimeSeconds float64 `json:"service_time_seconds"` // 0 where Counted
	// MayWaitSeconds is how long a client may wait in what was simulated: --slo, else twice the time in
	// service, or for clients that came at once as long as the threads in force take for all, and no longer
	// than the command ran where clients left without an answer.
	MayWaitSeconds float64 `json:"may_wait_seconds,omitempty"`
	// ClientsPerSecond is the rate that was simulated, a tenth above the run's: absent for a burst.
	ClientsPerSecond float64 `json:"clients_per_second,omitempty"`
	// AtOnce is how many clients were simulated as coming at once: absent for a load that lasts.
	AtOnce int `json:"at_once,omitempty"`
	// Counted: connections are kept, and the limits are those that were held at once.
	Counted     bool       `json:"counted,omitempty"`
	InForce     RunLimits  `json:"in_force"`
	Smallest    *RunLimits `json:"smallest,omitempty"`
	Why         string     `json:"why,omitempty"` // why there are none
	ForTwice    *RunLimits `json:"for_twice_the_load,omitempty"`
	WhyNotTwice string     `json:"why_not_for_twice,omitempty"`
}

// RunLimits is a combination of limits.
type RunLimits struct {
	Threads        int `json:"threads,omitempty"` // absent: threads do not limit
	MaxConnections int `json:"max_connections"`
	AcceptCount    int `json:"accept_count"`
}

// RunCourse is the run by second.
type RunCourse struct {
	WidthSeconds float64    `json:"width_seconds"`
	Points       []RunPoint `json:"points"`
}

// RunPoint is one second of it, or WidthSeconds.
type RunPoint struct {
	T          float64 `json:"t"`
	Offered    *uint64 `json:"offered,omitempty"`
	Served     *uint64 `json:"served,omitempty"`
	TurnedAway *uint64 `json:"turned_away,omitempty"`
	// Answered are clients that had an answer and ended in this time; absent where answers are not seen.
	Answered    *uint64 `json:"answered,omitempty"`
	Dropped     uint64  `json:"dropped_packets"`
	AcceptQueue int     `json:"accept_queue"`
	Connections *int    `json:"connections,omitempty"`
	Waiting     *int    `json:"waiting,omitempty"`
	InService   *int    `json:"in_service,omitempty"`
	Idle        *int    `json:"idle,omitempty"`
	// FirstByte is how long clients waited for the first byte of their answer, from their first
	// SYN on, queues included; absent where none of those that are measured (one in sixteen) had any.
	FirstByte *RunLatency `json:"first_byte,omitempty"`
	Status    string      `json:"status"`
	Cause     string      `json:"cause,omitempty"`
}

// RunLatency is how long clients waited for the first byte, by the kernel. A percentile beyond
// the last bound of the histogram (30 s) is absent.
type RunLatency struct {
	Clients    uint32   `json:"clients"` // that were measured
	P50Seconds *float64 `json:"p50_seconds,omitempty"`
	P95Seconds *float64 `json:"p95_seconds,omitempty"`
	P99Seconds *float64 `json:"p99_seconds,omitempty"`
}

// RunSetting is a limit in force, and where it was found.
type RunSetting struct {
	Name   string `json:"name"`
	Value  int    `json:"value"` // -1: no limit
	Source string `json:"source,omitempty"`
	Note   string `json:"note,omitempty"`
}

// NewRun is the document of what a recorder saw; nil where nothing could be observed.
func NewRun(r *loadtest.Recorder, results []*loadtest.Result) Run {
	out := Run{Schema: RunSchema, Listeners: make([]RunListener, 0, len(results)), Unavailable: []Unavailable{}}
	if r == nil {
		return out
	}
	out.Began, out.Host, out.Kernel, out.Omitted = r.Began, r.Last.Host, r.Last.Kernel, r.Omitted
	out.Status = loadtest.StatusOf(results).String()
	for _, u := range r.Last.Unavailable {
		out.Unavailable = append(out.Unavailable, Unavailable{What: u.What, Why: u.Why, How: u.How})
	}
	for _, res := range results {
		out.Listeners = append(out.Listeners, newRunListener(res))
	}
	return out
}

func newRunListener(r *loadtest.Result) RunListener {
	l := &r.Latest
	out := RunListener{
		Address: l.ID.String(), Port: l.Port, Status: r.Status.String(), Cause: string(r.Cause),
		SettingsUnknown: r.Unplanned,
		Connections:     r.LetIn, DroppedPackets: r.Dropped, Abandoned: r.Abandoned, DownSeconds: r.Down.Seconds(),
		Verdict: newVerdict(&r.Worst), Course: newRunCourse(r.Course, r.Clients != nil),
	}
	if l.Process != nil {
		out.Process, out.PID = l.Process.Comm, l.Process.PID
	}
	for cause, n := range r.ByCause {
		if out.DroppedBy == nil {
			out.DroppedBy = make(map[string]uint64)
		}
		out.DroppedBy[string(cause)] = n
	}
	out.InForce, out.FirstByte = newRunInForce(l), newRunLatency(r.Course, r.Latency())
	if r.Clients != nil {
		out.Clients = newRunClients(r.Clients, r.Proxies)
	}
	if f := r.First; f != nil {
		out.FirstLimit = &RunLimit{string(f.Cause), f.At.Seconds(), f.Rate}
	}
	if k := r.Knee; k != nil {
		out.Knee = newRunKnee(k)
	}
	if s := r.Settings; s != nil {
		out.Settings = &RunSettings{
			ServiceTimeSeconds: s.Load.ServiceTime.Seconds(), MayWaitSeconds: s.Load.ClientTimeout.Seconds(),
			ClientsPerSecond: s.Load.Rate, AtOnce: s.Load.Requests, Counted: s.Counted, InForce: *newRunLimits(new(s.InForce())),
			Smallest: newRunLimits(s.Limits), Why: s.Why, ForTwice: newRunLimits(s.Twice), WhyNotTwice: s.WhyNotTwice,
		}
	}
	return out
}

func newRunClients(c *loadtest.Clients, proxies int) *RunClients {
	o := &c.Outcomes
	out := &RunClients{
		Offered: c.Offered, Served: c.Served, TurnedAway: c.TurnedAway, Open: c.Open, Proxies: proxies,
		GaveUp: o[model.ClientGaveUp], Stalled: o[model.ClientStalled], Refused: o[model.ClientRefused], Reset: o[model.ClientReset],
		Delayed: o[model.ClientDelayed], HalfOpen: o[model.ClientHalfOpen], Undecided: o[model.ClientUndecided], Closed: c.Answers.Closed,
	}
	if c.Answers.Known {
		out.Unanswered = new(c.Answers.Unanswered)
		out.Answered, out.Checks, out.Unclear = new(c.Answers.Answered), new(c.Answers.Checks), new(c.Answers.Unclear)
	} else if c.Answers.Least {
		out.Unanswered = new(c.Answers.Unanswered)
	}
	return out
}

func newRunKnee(k *loadtest.Knee) *RunKnee {
	out := &RunKnee{Reached: k.Reached, ClientsPerSecond: k.Rate, OverSeconds: k.Over.Seconds(), Cause: string(k.Cause), OfConnections: !k.Exact}
	if k.Reached {
		out.Beyond = new(k.Beyond)
	}
	out.Error, out.KeepAlive, out.Late = k.Error, k.KeepAlive, k.Late
	out.Inside = known(k.Inside)
	if b := k.Burst; b != nil {
		out.AtOnce, out.AtOnceError = &b.Clients, b.Error
	}
	return out
}

func newRunLimits(l *plan.Limits) *RunLimits {
	if l == nil {
		return nil
	}
	return &RunLimits{l.Threads, l.MaxConnections, l.AcceptCount}
}

func newRunCourse(c *loadtest.Course, clients bool) RunCourse {
	out := RunCourse{WidthSeconds: c.Width.Seconds(), Points: make([]RunPoint, 0, len(c.Points))}
	for i := range c.Points {
		p := &c.Points[i]
		point := RunPoint{
			T: p.At.Seconds(), Dropped: p.Dropped, AcceptQueue: p.Queue,
			Connections: known(p.Connections), Waiting: known(p.Waiting), InService: known(p.Busy), Idle: known(p.Idle),
			FirstByte: newRunLatency(c, p.Latency),
			Status:    p.Status.String(), Cause: string(p.Cause),
		}
		if clients {
			point.Offered, point.Served, point.TurnedAway = &p.Offered, &p.Served, &p.TurnedAway
			if c.SeesAnswers() {
				point.Answered = &p.Answered
			}
		}
		out.Points = append(out.Points, point)
	}
	return out
}

// known is a figure of a course, nil where it was not read.
func known(n int) *int {
	if n < 0 {
		return nil
	}
	return &n
}

func newRunLatency(c *loadtest.Course, y loadtest.Latency) *RunLatency {
	if y.Count == 0 {
		return nil
	}
	quantile := func(share float64) *float64 {
		if s, ok := c.Quantile(y, share); ok {
			return &s
		}
		return nil
	}
	return &RunLatency{y.Count, quantile(.5), quantile(.95), quantile(.99)}
}

// newRunInForce are the limits in force as last seen.
func newRunInForce(l *model.Listener) (out []RunSetting) {
	add := func(name string, s *model.Setting[int]) {
		if s != nil {
			out = append(out, RunSetting{name, max(s.Value, -1), s.Origin(), s.Note})
		}
	}
	if k := l.Connector; k != nil {
		add("maxThreads", k.MaxThreads)
		add("maxConnections", k.MaxConnections)
		add("acceptCount", k.AcceptCount)
	}
	if q := l.AcceptQueue; q != nil {
		out = append(out, RunSetting{"backlog in force", q.Limit, "the kernel (Send-Q)", ""})
	}
	return out
}
