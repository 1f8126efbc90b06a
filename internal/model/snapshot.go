// Package model holds the plain values of the domain: the stages a client's
// connection passes in front of a Tomcat, their limits, and what was lost at
// them. Every other package converts to or from these; this one imports
// nothing of the project and does no I/O.
//
// The funnel, from the client inwards:
//
//	SYN -> SYN backlog -> accept queue -> connections -> threads -> response
//
// A nil pointer means "this kernel, this user or this configuration cannot
// show it", which is never the same as zero.
package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Snapshot is one reading of everything. It is immutable once published.
type Snapshot struct {
	Time     time.Time
	Interval time.Duration // what the losses and peaks span; 0 for a single snapshot
	ScanAge  *time.Duration
	Host     string
	Kernel   string

	Listeners []Listener // sorted by port, then address
	Omitted   int        // listeners beyond --max-listeners, not in Listeners
	// Retired are addresses that nothing listens on any more and whose totals are
	// kept for an hour, the latest closed first, so that a counter survives
	// the listener's restart. Before them are the totals of those whose namespace
	// did not answer what listens there, which are not shown and may not be closed.
	// An address is never both here and in Listeners.
	Retired []RetainedTotals
	NetNS   []NetNS
	Targets []Target
	// TargetInfos are the labels of every port that is expected or watched.
	TargetInfos []TargetInfo
	// Notes are for people: "no Tomcat found: showing everything that listens".
	Notes       []string
	Unavailable []Unavailable

	Self Self
}

// Target is an expected port and whether something listens on it.
type Target struct {
	Port  uint16
	NetNS uint64
	Up    bool
	// Unasked: nobody asked for the port, but a server was watched there within the last hour. It
	// is missed where clients are refused, and not one alone.
	Unasked bool
	// Refused are clients that met no listener on the port; nil where handshakes
	// are not followed.
	Refused *uint64
	// Elsewhere is who listens on the port in another network namespace, nil where nobody
	// is known to, or the port is up.
	Elsewhere *Elsewhere
	// Draining is who still has established connections of the port, nil where nobody is known to,
	// or the port is up.
	Draining *OtherProcess
}

// Elsewhere is a process that listens on a port in a network namespace that was not asked for.
type Elsewhere struct {
	Port uint16
	PID  int    // one of the namespace, where the one that holds the port is not known
	Comm string // "" then
	Pod  *Pod

	Others int // in how many more namespaces somebody listens on that port
}

// Who is "java 2024 of shop/orders-7".
func (e *Elsewhere) Who() string {
	who := "a process of the network namespace of pid " + strconv.Itoa(e.PID)
	if e.Comm != "" {
		who = Printable(e.Comm) + " " + strconv.Itoa(e.PID)
	}
	if e.Pod != nil {
		who += " of " + e.Pod.String()
	}
	return who
}

// Same reports whether two targets are one.
func (t Target) Same(other Target) bool { return t.Port == other.Port && t.NetNS == other.NetNS }

// TargetInfo is what the configuration file says of a port, for the metrics.
// It must not be changed.
type TargetInfo struct {
	Port   uint16
	NetNS  uint64
	Labels map[string]string // names that Prometheus accepts
}

// Same reports whether two are about one port.
func (t TargetInfo) Same(other TargetInfo) bool {
	return t.Port == other.Port && t.NetNS == other.NetNS
}

// Unavailable names something that could not be seen.
type Unavailable struct {
	What string // "environ of pid 42"
	Why  string // "permission denied"
	How  string // "run as uid 1000 and gid 1000, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"

	// Subject is for code: the sentences are for people, and may change.
	Subject Subject
}

// Subject is what could not be read, where something depends on it.
type Subject int

// The subjects.
const (
	SubjectOther       Subject = iota
	SubjectEnvironment         // the environment of the process
	SubjectWorkingFile         // a file or folder that is sought below the working directory
)

// Counters are the kernel's own names and values: "ListenOverflows" (TcpExt),
// "OutRsts" (Tcp). A counter this kernel lacks is absent.
type Counters map[string]uint64

// The counter of a rule of the firewall has a name that begins with RulePrefix; RulesRead
// counts how often all of them were read, and is not there where they could not be.
const (
	RulePrefix = "nft "
	RulesRead  = "nftables_rules_read"
)

// The counter of the clients of the namespace itself that a reset has refused at an address has a name that begins with
// RefusedPrefix; RefusedMissed counts how often the kernel has not reported all of them, and is not there where they are not read.
const (
	RefusedPrefix = "refused "
	RefusedMissed = "refused_missed"
)

// Sub returns c - base for every counter that both have; a counter that went
// backwards (another namespace under the same number) counts from zero, as do that of a
// rule and that of an address that base has not, though it has all of its time.
func (c Counters) Sub(base Counters) Counters {
	out := make(Counters, len(c))
	_, read := base[RulesRead]
	_, heard := base[RefusedMissed]
	for name, v := range c {
		b, ok := base[name]
		switch {
		case !ok && (read && strings.HasPrefix(name, RulePrefix) || heard && strings.HasPrefix(name, RefusedPrefix)):
			out[name] = v // it was made since
		case !ok:
		case v >= b:
			out[name] = v - b
		default:
			out[name] = v
		}
	}
	return out
}

// NetNS is a network namespace's own totals.
type NetNS struct {
	ID       uint64
	PID      int // of a process that was in it when it was opened; 0 for the agent's own, or unknown
	Counters Counters
	Delta    Counters // over Interval, nil for a single snapshot
	// Sysctl holds somaxconn, tcp_max_syn_backlog, tcp_syncookies,
	// tcp_abort_on_overflow, ip_local_port_range_{min,max} where readable.
	Sysctl map[string]int
	// Sockstat holds TCP's inuse, orphan, tw, alloc (sockets) and mem (pages)
	// of /proc/net/sockstat.
	Sockstat map[string]int
	// Unattributed counts dropped packets since the agent's start that no
	// watched listener's own counter accounts for.
	Unattributed uint64
	// LetInElsewhere are the clients that were let in at ports whose handshakes are not
	// followed, since the others' are: PassiveOpens less theirs. nil where all are followed.
	LetInElsewhere *uint64
}

// Self is what the agent measures about itself.
type Self struct {
	SampleSeconds DurationHistogram
	ScanSeconds   DurationHistogram
	MissedTicks   uint64
	FailedSamples uint64        // that the kernel did not answer
	LongestGap    time.Duration // between two samples, of the last minute
	ScanInterval  time.Duration // as stretched to stay under 2 % of a core
	CalmInterval  time.Duration // between two samples of queues that have been empty for ten seconds
	SourceUp      map[string]bool
	Agent
}

// Agent is what the agent's other tasks say of themselves. What hangs on it is not changed.
type Agent struct {
	Config    *ConfigReload // nil without a configuration file
	Incidents *Incidents    // nil where none are recorded
	Shares    []Share       // what strangers share, by resource; nil where nothing is served
}

// ConfigReload is how the agent stands with its configuration file.
type ConfigReload struct {
	Successful  bool      // the latest reading of it
	LastSuccess time.Time // of the reading that is in force
}

func portString(p uint16) string { return strconv.Itoa(int(p)) }

// Incidents is how the recording of incidents stands.
type Incidents struct {
	Total       uint64 // begun since the agent started
	Open        int    // being recorded
	LostFrames  uint64 // that found no room on their way to the disk, or on it
	WriteErrors uint64
}

// Share is what became of those that wanted a part of something that strangers share.
type Share struct {
	Resource string // "connections", "streams", …
	Refused  uint64 // there was no room for them
	Evicted  uint64 // what they had was taken away, for others
}

// ByAddress orders listeners by port, address, device and namespace, so that
// two snapshots of the same machine can be compared line by line. The list
// itself is left as it is.
func ByAddress(in []Listener) []*Listener {
	out := make([]*Listener, len(in))
	for i := range in {
		out[i] = &in[i]
	}
	slices.SortStableFunc(out, CompareAddress)
	return out
}

// CompareAddress is the order of ByAddress.
func CompareAddress(a, b *Listener) int {
	return cmp.Or(
		cmp.Compare(a.Port, b.Port),
		a.ID.Address.Addr().Compare(b.ID.Address.Addr()),
		cmp.Compare(a.ID.Device, b.ID.Device),
		cmp.Compare(a.ID.NetNS, b.ID.NetNS),
	)
}

// RefusedAt is how many clients a listener's port has refused, nil where that is not counted, or where it is not this listener's alone.
func (s *Snapshot) RefusedAt(l *Listener) *uint64 {
	of := 0
	for i := range s.Listeners {
		if other := &s.Listeners[i]; other.Port == l.Port && other.ID.NetNS == l.ID.NetNS {
			of++
		}
	}
	i := slices.IndexFunc(s.Targets, func(t Target) bool { return t.Port == l.Port && t.NetNS == l.ID.NetNS })
	if of > 1 || i < 0 {
		return nil
	}
	return s.Targets[i].Refused
}
