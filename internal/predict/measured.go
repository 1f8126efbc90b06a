package predict

import (
	"slices"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// measured is a load as it was seen, and what the simulation of it has to give again.
type measured struct {
	// steady: clients keep coming, and everything below is of a span in the middle of it.
	// Else they all came at once, a span ago.
	steady bool
	span   time.Duration
	spread time.Duration // of a burst: from its first client to its last

	offered    int // clients that came
	turnedAway int
	finished   int           // requests whose clients had their answer
	worked     int           // requests that the server finished, for whomever
	answered   time.Duration // of a burst: from its begin to the latest answer, negative where none is remembered

	inside, busy int // as things stand: connections with those in the queue, threads
	left         int // of inside, whose clients have left: the server does not know
	queued       int // of inside, in the accept queue: who of them has left is in no count
	trying       int // in front of that, who may have left: who tries to connect, and
	stalling     int // whose handshake is complete for it and not for the server
	unanswered   bool
	waits        bool // of a burst nobody is known to have left yet
	atOnce       int  // of a burst: who was let in without having to ask again

	cpus   float64    // the CPUs that there are for threads that need more, 0 where these are not what they wait for
	pool   int        // connections to the backend for which the threads wait, 0 where they wait for none
	limits plan.Input // in force
	files  *files     // nil where the connections are not limited by them
}

// files are those that a process may have open, where their limit is reached: it has as many connections as there are
// files for.
type files struct {
	most       int // open files allowed
	taken      int // connections that have one
	configured int // maxConnections
}

func filesOf(l *model.Listener) (f *files, known bool) {
	if l.Process == nil || l.Process.OpenFilesLimit == nil || l.Connections.Accepted == 0 {
		return nil, false
	}
	return &files{most: *l.Process.OpenFilesLimit, taken: l.Connections.Accepted, configured: l.Connector.MaxConnections.Value}, true
}

// connections are how many there can be with another limit of open files.
func (f *files) connections(most int) int {
	room := max(f.taken+most-f.most, 0)
	if f.configured < 0 {
		return room
	}
	return min(room, f.configured)
}

const (
	// together is within which clients come at the same time, as seen in snapshots a second apart.
	together = 2 * time.Second
	// minFinished is up to how many finished requests do not show how long one takes, but of a burst whose latest
	// answer came so late that a second does not matter: when the burst began and when the answer came
	// are each known to be in one.
	minFinished = 5
	late        = 4 * time.Second
	// inTurn is how far clients of a burst are apart that come one after the other: of SYNs
	// that come before the first ACK a full queue drops none.
	inTurn = time.Millisecond
	// knownAfter is how much later an answer is known than the burst's begin: measured, from a second earlier
	// to two thirds of one later. Both are noted once a second, and the answer's connection has ended.
	knownAfter = 250 * time.Millisecond
	// settled is for how long clients have come when a look back has nothing from before that.
	settled = 15 * time.Second
)

// measure is what is known of a listener's load. ok is false where requests per second
// are not (no tap, TLS, kept connections), where the limits are not, where the cause is
// something that a simulation does not know, and while it is not decided how the clients
// fare.
func measure(l *model.Listener, s *model.Snapshot) (m measured, ok bool) {
	m.pool = pool(&l.Verdict)
	if !simulated(l, m.pool) || over(l) || l.Losses.Clients == nil {
		return m, false
	}
	busy, is := l.BusyThreads()
	arrivals := l.Losses.Clients.Arrivals
	if is != model.BusyIsKnown || arrivals == nil {
		return m, false
	}
	m.inside, m.busy, m.span = l.AcceptQueue.Length+l.Connections.Accepted, busy, arrivals.First
	m.left, m.queued = l.Connections.Phases[model.ClientClosed], l.AcceptQueue.Length
	m.limits = limits(l, namespaceOf(s, l).Sysctl)
	switch l.Verdict.Cause {
	case model.CauseOpenFiles:
		var known bool
		if m.files, known = filesOf(l); !known {
			return m, false
		}
		m.limits.MaxConnections = m.files.taken
	case model.CauseCPUThrottled:
		if l.Process == nil || l.Process.CPULimit == nil {
			return m, false
		}
		m.cpus = *l.Process.CPULimit
	case model.CauseCPUSaturated:
		if m.cpus, _ = strconv.ParseFloat(changed(&l.Verdict, reading.LimitCPU).From, 64); m.cpus == 0 {
			return m, false
		}
	}
	if m.busy < m.threads() {
		return m, false
	}
	switch {
	case arrivals.First-arrivals.Last <= together && arrivals.Last >= together:
		m.spread = arrivals.First - arrivals.Last
		return m, m.cameAtOnce(l, arrivals)
	case settledFor(l, s):
		return m, m.keepComing(l)
	}
	return m, false
}

// settledFor reports whether clients have come for as long as a look back needs, and still do.
func settledFor(l *model.Listener, s *model.Snapshot) bool {
	a := l.Losses.Clients.Arrivals
	return a != nil && a.Last <= together && a.First >= settled && (l.Recent == nil || s.Time.Sub(l.Recent.Latest) >= settled)
}

// cameAtOnce takes the load for clients that came together. Of those that are not inside it is known
// late that they have left, when they send nothing again.
func (m *measured) cameAtOnce(l *model.Listener, arrivals *model.Arrivals) bool {
	c := l.Losses.Clients
	if !m.counted(c, l) || m.span > c.Observed {
		return false
	}
	m.offered, m.atOnce = int(arrivals.Clients), int(c.Outcomes[model.ClientConnected])
	if c.Answers.Known {
		m.atOnce -= min(m.atOnce, int(c.Answers.Checks))
	}
	if m.finished < 0 {
		m.finished = int(c.LetIn) - m.inside
	}
	m.worked, m.answered = m.finished+int(l.Losses.AbandonedRequests), arrivals.First-arrivals.Answered-knownAfter
	if arrivals.Answered < 0 {
		m.answered = -1
	}
	if m.turnedAway+m.finished > m.offered { // of a burst before, too
		return false
	}
	m.trying, m.stalling = c.Waiting+c.Settling+c.Unreached, c.Stalling
	m.unanswered = m.unanswered || m.left > 0
	m.waits = m.turnedAway == 0 && !m.unanswered
	return true
}

// keepComing takes what was decided in the latest seconds for what comes in as many:
// everything is as it was before.
func (m *measured) keepComing(l *model.Listener) bool {
	if l.Lately == nil || l.Lately.Span < time.Second {
		return false
	}
	c := l.Lately.Losses.Clients
	if !m.counted(c, l) {
		return false
	}
	m.steady, m.span = true, l.Lately.Span
	opens, known := l.Lately.Delta["PassiveOpens"]
	if !known || !alike(float64(opens), float64(c.LetIn), 2*near) {
		opens = c.LetIn
	}
	if m.finished < 0 {
		m.finished = int(opens) // each makes room for the next
	}
	m.offered, m.worked = int(c.Came()), m.finished+int(l.Lately.Losses.AbandonedRequests)
	return m.turnedAway > 0 || l.Verdict.Status != model.StatusLosing
}

// counted takes the clients' outcomes, where they are complete.
func (m *measured) counted(c *model.Clients, l *model.Listener) bool {
	if c == nil || c.PacketsLost > 0 || c.Untracked > 0 || c.Flood != nil {
		return false
	}
	m.turnedAway, m.finished = int(c.TurnedAway()), -1
	for _, n := range c.Outcomes {
		m.offered += int(n)
	}
	m.unanswered = c.Answers.Unanswered > 0
	if c.Answers.Known {
		m.offered -= min(m.offered, int(c.Answers.Checks))
		m.finished = int(c.Answers.Answered)
		return true
	}
	// How many left without an answer is not known.
	return l.Losses.AbandonedRequests == 0 && l.Connections.Phases[model.ClientClosed] == 0
}

// simulated reports whether the limits are known, and no other cause is at work: a pause, a
// lack of CPU, a pool or a peer behind the threads, connections that are kept.
func simulated(l *model.Listener, pool int) bool {
	switch l.Verdict.Cause {
	case model.CauseMaxThreads, model.CauseMaxConnections, model.CauseAcceptQueue, model.CauseConnectionPool, model.CauseOpenFiles, model.CauseCPUThrottled, model.CauseCPUSaturated, model.CauseExecutorQueue:
	default:
		return false
	}
	for _, c := range slices.Concat(l.Verdict.Chain, []model.Cause{l.Verdict.Cause}) {
		if c == model.CauseDownstream || c == model.CauseConnectionPool && pool == 0 {
			return false
		}
	}
	return limitsKnown(l)
}

// limitsKnown reports whether the limits are, and how the connections are used.
func limitsKnown(l *model.Listener) bool {
	k, n := l.Connector, l.Connections
	if k == nil || n == nil || l.AcceptQueue == nil || l.Losses == nil || k.MaxThreads == nil || k.MaxConnections == nil {
		return false
	}
	if n, bounded := reading.BoundedQueue(l); bounded && n == 0 { // not simulated
		return false
	}
	idle := n.Phases[model.Idle] + n.Phases[model.Unclassified] + n.Phases[model.Streaming]
	return !k.TLS && !k.HTTP2 && !l.OnVirtualThreads() && l.Members <= 1 && k.MaxThreads.Value > 0 && idle*10 <= n.Accepted && n.Subset == 0
}

func limits(l *model.Listener, sysctl map[string]int) plan.Input {
	in := plan.Input{
		Threads: l.Connector.MaxThreads.Value, MaxConnections: l.Connector.MaxConnections.Value,
		AcceptCount: l.AcceptQueue.Limit, InForce: true, Syncookies: true,
		Somaxconn: sysctl["somaxconn"], MaxSynBacklog: sysctl["tcp_max_syn_backlog"],
		AbortOnOverflow: sysctl["tcp_abort_on_overflow"] != 0,
	}
	if n, bounded := reading.BoundedQueue(l); bounded {
		in.MaxQueue = n
	}
	if v, known := sysctl["tcp_syncookies"]; known {
		in.Syncookies = v != 0
	}
	return in
}

// namespaceOf is a listener's network namespace, an empty one where it was not read.
func namespaceOf(s *model.Snapshot, l *model.Listener) model.NetNS {
	for i := range s.NetNS {
		if s.NetNS[i].ID == l.ID.NetNS {
			return s.NetNS[i]
		}
	}
	return model.NetNS{}
}

// pool is the size of the pool that a step of the answer enlarges.
func pool(v *model.Verdict) int {
	n, _ := strconv.Atoi(changed(v, reading.LimitConnectionPool).From)
	return n
}

// changed is the step of an answer that changes a limit, an empty one where none does.
func changed(v *model.Verdict, limit string) model.Step {
	for _, s := range v.Answer.Do {
		if s.Limit == limit {
			return s
		}
	}
	return model.Step{}
}

// threads is how many requests have one at once when there is enough to do.
func (m *measured) threads() int {
	if m.limits.MaxConnections < 0 {
		return m.limits.Threads
	}
	return min(m.limits.Threads, m.limits.MaxConnections)
}

// servers is how many of them are worked on: the rest wait for a connection of the pool.
func (m *measured) servers() int {
	switch {
	case m.cpus > 0: // what one needs of the CPU time that there is
		return 1
	case m.pool > 0:
		return min(m.pool, m.threads())
	}
	return m.threads()
}

// load is the measured one, but for the clients' patience: a request takes what all
// threads needed for those that were finished, while none of them rested.
func (m *measured) load() (in plan.Input, ok bool) {
	took, ok := m.serviceTime()
	if !ok || m.offered == 0 {
		return in, false
	}
	in = m.limits
	in.ServiceTime = took
	in.BackendConnections = m.pool
	if m.cpus > 0 {
		in.BackendConnections = 1
	}
	if in.BackendConnections > 0 { // what the thread does by itself is in the backend's time
		in.ServiceTime, in.BackendTime = time.Millisecond, took
	}
	if !m.steady {
		in.Requests = m.offered
		if gaps := m.offered - 1; gaps > 0 && m.spread >= time.Duration(gaps)*inTurn {
			in.Rate = float64(gaps) / m.spread.Seconds()
		}
		return in, m.offered <= mostRequests
	}
	in.Rate = float64(m.offered) / m.span.Seconds()
	in.Duration = max(6*m.span, 20*took)
	if more := float64(m.offered-m.worked-m.turnedAway) / m.span.Seconds(); more > 0 { // what waits has grown for as long
		in.Duration = max(in.Duration, time.Duration(1.2*float64(m.inside)/more*float64(time.Second)))
	}
	return in, in.Rate*in.Duration.Seconds() <= mostRequests
}

// serviceTime is how long one of the servers takes for a request.
func (m *measured) serviceTime() (took time.Duration, ok bool) {
	n := m.servers()
	if m.steady {
		return m.span * time.Duration(n) / time.Duration(max(1, m.worked)), m.worked >= minFinished
	}
	// A burst is worked off in rounds, as long as all take as long; a few may be early of the next.
	rounds := (5*m.finished + 4*n - 1) / (5 * n)
	if whole := m.finished == m.worked && 2*m.finished >= n; whole && (rounds < 3 || m.answered >= late && 5*(rounds*n-m.finished) <= n) {
		return m.answered / time.Duration(max(1, rounds)), rounds > 0 && m.answered >= late
	}
	// On average each is half through another one.
	return 2 * m.span * time.Duration(n) / time.Duration(2*m.worked+n), m.worked >= minFinished
}

// over reports whether it is told of losses that have ended. Who saturates a server may have lost
// packets when they came.
func over(l *model.Listener) bool {
	return l.Recent != nil && l.Recent.Over && l.Verdict.Status != model.StatusSaturated
}
