package model

import "strconv"

// Status says how a listener stands; a higher one is worse.
type Status int

// The statuses in rising order of harm.
const (
	StatusOK        Status = iota
	StatusWarning          // a stage is at 80 % or more and clients wait, or will
	StatusSaturated        // a stage is full and something waits in front of it; nothing lost
	StatusLosing           // packets dropped or queued clients reset in the interval
	StatusDown             // an expected port has no listener
	NumStatuses
)

// String is the status's name in JSON and in the metrics' status label.
func (s Status) String() string {
	return [NumStatuses]string{"ok", "warning", "saturated", "losing", "down"}[s]
}

// Cause is the limit that turns clients away or makes them wait. Strings never
// change their meaning; readers must tolerate ones they do not know.
type Cause string

// The causes, in the order of the design's table.
const (
	CauseNone             Cause = ""
	CauseMaxThreads       Cause = "max_threads"
	CauseMaxConnections   Cause = "max_connections"
	CauseKeepAliveIdle    Cause = "keep_alive_idle"
	CauseExecutorQueue    Cause = "executor_queue"
	CauseOpenFiles        Cause = "open_files"
	CauseJVMPause         Cause = "jvm_pause"
	CauseCPUThrottled     Cause = "cpu_throttled"
	CauseCPUSaturated     Cause = "cpu_saturated"
	CauseSlowAccept       Cause = "slow_accept"
	CauseSynBacklog       Cause = "syn_backlog"
	CauseBacklogClamped   Cause = "backlog_clamped"
	CauseListenerClosed   Cause = "listener_closed"
	CauseNoListener       Cause = "no_listener"
	CauseEphemeralPorts   Cause = "ephemeral_ports"
	CauseConnectionPool   Cause = "connection_pool"   // all connections of a pool to one backend are in use
	CauseDownstream       Cause = "downstream"        // the threads wait for one peer's answers
	CauseBeforeListener   Cause = "before_listener"   // clients get no answer, and the listener dropped no packet of theirs
	CauseListensElsewhere Cause = "listens_elsewhere" // clients are refused at an address that nothing listens on
	CauseServerResets     Cause = "server_resets"     // the server resets connections that it has accepted
	CauseLossyNetwork     Cause = "lossy_network"     // packets are lost between clients and the server
	CauseNotAccepting     Cause = "not_accepting"     // nothing is accepted, and no limit is reached
	CauseNotReading       Cause = "not_reading"       // requests stay unread while threads are idle
	// CauseAcceptQueue is never a verdict: it names the first stage in a Chain,
	// and the drops of a full accept queue where what stands behind it is not
	// known (no maxConnections).
	CauseAcceptQueue Cause = "accept_queue"
)

// IsLimit reports whether a warning of the cause is of a limit that is near: that of another, or of none, is of
// what fails already.
func (c Cause) IsLimit() bool {
	switch c {
	case CauseOpenFiles, CauseEphemeralPorts, CauseMaxConnections, CauseKeepAliveIdle, CauseMaxThreads, CauseExecutorQueue, CauseSlowAccept, CauseAcceptQueue:
		return true
	}
	return false
}

// DropCauses are the causes a dropped packet can be attributed to.
func DropCauses() []Cause {
	return []Cause{
		CauseMaxConnections, CauseKeepAliveIdle, CauseOpenFiles, CauseJVMPause,
		CauseCPUThrottled, CauseCPUSaturated, CauseSlowAccept, CauseSynBacklog, CauseAcceptQueue, CauseNotAccepting,
		CauseMaxThreads, // with NIO2, whose workers accept
	}
}

// Severity orders findings.
type Severity string

// The severities.
const (
	SeverityInfo     Severity = "info"
	SeverityWarning  Severity = "warning"
	SeverityCritical Severity = "critical"
)

// Finding is one thing the evidence carries, with what to do about it.
type Finding struct {
	Code     string // a Cause, or another snake_case word
	Severity Severity
	Evidence string // what was seen, with its numbers
	Advice   string // one concrete change, its side effects, and what would not help
}

// Verdict is how the listener stands and why.
type Verdict struct {
	Status   Status
	Cause    Cause
	Chain    []Cause // full stages from the client inwards
	Summary  string  // one sentence
	Findings []Finding
	Answer   Answer // the same in four parts, for a person to read first
}

// Evidence is what a cause rests on.
type Evidence string

// The evidence, the strongest first.
const (
	EvidenceNone     Evidence = ""
	EvidenceAcceptor Evidence = "acceptor" // the state of the thread that accepts
	EvidenceFiles    Evidence = "files"    // open files and their limit
	EvidenceProcess  Evidence = "process"  // stopped, at a safepoint, without a CPU
	EvidencePhases   Evidence = "phases"   // the connections by phase
)

// Answer is what a person reads of a verdict first: the same four things in the same
// order on every surface.
type Answer struct {
	// What happens, clients first: "34 clients of the last 1 s did not get in."
	What string
	// Why is the chain in one sentence, to its root.
	Why string
	// Do are at most three steps in the order in which a person takes them, each one
	// action; none where nothing has to be done.
	Do []Step
	// Not is the one tempting change that does not help, and why; "" where there is none.
	Not string
}

// MaxSteps is how many steps an answer has at most.
const MaxSteps = 3

// Step is one action: something to look at, a command to copy, or a setting with its
// value as it is and as it should be.
type Step struct {
	Text string // one sentence without its full stop: "Raise the number of threads"
	// Command is to be copied as it is, "" where the step is none.
	Command string
	// Setting is what the value is called where this server is configured:
	// "server.tomcat.threads.max", "net.core.somaxconn". File is where the value in
	// force was found, "" where it is a default or nobody knows. From is "" where no
	// value is set or known.
	Setting, File, From, To string
	// Limit is the limit that Setting is, by its name among Listener.Limits
	// (accept_queue, max_connections, max_threads, open_files), or what else the effect of a change is known of
	// (reading.LimitConnectionPool and those with it), "" where it is not.
	Limit string
	// Effect is what the change would do to the clients that were measured, "" where that is not known.
	Effect string
}

// Lowers reports whether the step makes its limit less.
func (s Step) Lowers() bool {
	from, err := strconv.ParseFloat(s.From, 64)
	to, err2 := strconv.ParseFloat(s.To, 64)
	return err == nil && err2 == nil && to < from
}
