package model

import (
	"math"
	"net/netip"
	"time"
)

// ListenerID names a listening address for as long as the agent runs: it
// survives the listener's restart, which gives the socket another inode.
type ListenerID struct {
	NetNS   uint64         // inode number of the network namespace (/proc/PID/ns/net)
	Address netip.AddrPort // bound address, v4-mapped ones unmapped; zero when nothing listens
	Device  string         // device the socket is bound to (SO_BINDTODEVICE), "" for any
}

// String is the address the way ss prints it: "[::]:8080", or "0.0.0.0%eth0:8080"
// for a listener bound to a device. It is the value of the metrics' listener label.
func (id ListenerID) String() string {
	if !id.Address.IsValid() {
		return ""
	}
	if id.Device == "" {
		return id.Address.String()
	}
	host := id.Address.Addr().String()
	if id.Address.Addr().Is6() {
		host = "[" + host + "]"
	}
	return host + "%" + Escape(id.Device) + ":" + portString(id.Address.Port())
}

// Listener is a LISTEN socket with everything that stands behind it, or an
// expected port on which nothing listens (ID.Address is then not valid).
type Listener struct {
	ID      ListenerID
	Port    uint16
	Inode   uint32  // socket inode; of the fullest member in an SO_REUSEPORT group
	User    *uint32 // who made the socket (idiag_uid); nil where nothing listens
	Members int     // sockets that share the address (SO_REUSEPORT); 1 = alone
	// Expected is set for ports asked for by --port or the config file, never
	// for those merely discovered.
	Expected bool

	// Pod is whose listener it is in Kubernetes, nil elsewhere and where its names are not
	// known.
	Pod *Pod

	Process     *Process
	Connector   *Connector
	SynBacklog  *SynBacklog
	AcceptQueue *AcceptQueue
	Connections *Connections
	// Acceptor is what its acceptor thread does, where it was just read.
	Acceptor AcceptorState

	Limits  []Limit // how full each stage is, from the client inwards
	Losses  *Losses // in the interval; nil when there was only one snapshot
	Lately  *Lately // nil where Losses are of no more than a status is
	Recent  *Recent // nil where nothing was lost in the last quarter of an hour
	Totals  Totals  // since the agent started
	Verdict Verdict
	Basis   *Basis // of the verdict; nil where nobody keeps it

	// Last is who listened on an expected port on which nothing listens now, nil where
	// nobody was seen to.
	Last *LastListener
	// Elsewhere is who listens on it in another network namespace, nil where nobody is known to.
	Elsewhere *Elsewhere
	// Draining is the process that has closed its listener on an expected port and still has
	// established connections which came through it, nil where none is known to.
	Draining *OtherProcess
	// AddressMissing is set where no packet is delivered to its address: nil where it is, and where that is not known.
	AddressMissing *AddressMissing
}

// AddressMissing is a listener whose address is none of its network namespace.
type AddressMissing struct {
	// HadClients: connections were seen while it was there.
	HadClients bool
	// Standby: it may be bound to an address that is not there (net.ipv4.ip_nonlocal_bind, IP_FREEBIND), as where another
	// machine has it until that fails. Without, the address was there when it was bound.
	Standby bool
}

// LastListener is what listened on a port before it was down.
type LastListener struct {
	Address string
	Comm    string // of its process, "" and PID 0 where it was not known
	PID     int
	Pod     *Pod
	Seen    time.Time     // of the latest snapshot that has it
	Ago     time.Duration // how long before this snapshot that was
}

// Listening distinguishes a real listener from the placeholder of an expected port.
func (l *Listener) Listening() bool { return l.ID.Address.IsValid() }

// OnVirtualThreads reports whether its requests are handled by virtual threads.
func (l *Listener) OnVirtualThreads() bool {
	return l.Connector != nil && l.Connector.OnVirtualThreads()
}

// Capacity is the number of clients that can be inside at once:
// maxConnections + Send-Q + 1. It is nil while maxConnections is not known
// or unlimited.
func (l *Listener) Capacity() *int {
	if l.AcceptQueue == nil || l.Connector == nil || l.Connector.MaxConnections == nil || l.Connector.MaxConnections.Value < 0 {
		return nil
	}
	return new(l.Connector.MaxConnections.Value + l.AcceptQueue.Capacity())
}

// AcceptQueue holds connections whose handshake is complete and which the
// application has not accepted.
type AcceptQueue struct {
	Length int // connections waiting to be accepted (sk_ack_backlog; Recv-Q in ss -lt)
	Limit  int // the backlog in force: min(acceptCount, somaxconn at listen()) (sk_max_ack_backlog; Send-Q in ss -lt)

	// Peak is the highest sampled Length in the interval, nil with a single snapshot.
	Peak *int
	// PeakAge is how long ago the peak was seen, in the agent's 60 s window.
	PeakAge time.Duration
	// Recent is the highest Length since the snapshot before this one.
	Recent int
	// Samples are the lengths since the snapshot before this one, and some before,
	// nil where there was no sample.
	Samples *QueueSamples
	// OldestWait is the age in the queue of the connection that has waited
	// longest (tcp_info.tcpi_last_data_sent of a queued socket), nil when
	// nothing waits or the scan has not seen it.
	OldestWait *time.Duration
	// Left are those in it whose clients have sent a request and closed, at their side at least.
	Left int
	// Patience is how long the most patient of these had waited when it closed, 0 where that is not known.
	Patience time.Duration
	// Probes are those in it whose clients have closed and sent nothing, as a probe of the port does: they wait
	// for nothing. OldestClient is the longest wait of the others, where there are Probes; nil where the reading
	// that found these found no others.
	Probes       int
	OldestClient *time.Duration
	// NoAcceptFor is for how long nobody was taken out of the queue, at least: the first in it was the
	// first (by its socket's cookie) in each reading of that time. 0: somebody was taken out since the
	// reading before, or the first has reset; nil: not known.
	NoAcceptFor *time.Duration
	// TakenAgo is how long ago a sample last found the queue of a socket shorter than the one before did: somebody was
	// accepted. (A client that resets stays in it until then, and is gone from the readings.) nil: no sample has.
	TakenAgo *time.Duration
	// StandsFor is for how long each sample found somebody in it, and none that it had become shorter; nil: not known.
	StandsFor *time.Duration
	// SocketDrops is the listener's own lifetime counter (SK_MEMINFO_DROPS). It
	// over-counts: a dropped final ACK adds 2, a duplicate SYN or an RST to a
	// half-open connection 1. nil on kernels that do not report it.
	SocketDrops *uint64
}

// Capacity is one more than the limit: sk_acceptq_is_full compares with ">".
// Length can exceed it by the number of processors less one: final ACKs that
// several of them handle at the same time all find the last place free
// (tcp_v4_syn_recv_sock asks, inet_csk_reqsk_queue_add does not ask again).
func (q *AcceptQueue) Capacity() int { return q.Limit + 1 }

// Full says that the next SYN or final ACK is dropped.
func (q *AcceptQueue) Full() bool { return QueueFull(uint32(q.Length), uint32(q.Limit)) }

// Ratio is Length / Capacity: 1.0 is full.
func (q *AcceptQueue) Ratio() float64 { return QueueRatio(uint32(q.Length), uint32(q.Limit)) }

// QueueFull mirrors sk_acceptq_is_full: more than the backlog.
func QueueFull(length, limit uint32) bool { return length > limit }

// QueueRatio is 1.0 for a full queue: it holds limit + 1.
func QueueRatio(length, limit uint32) float64 { return float64(length) / (float64(limit) + 1) }

// SynBacklog holds half-open connections (request sockets, SYN_RECV).
type SynBacklog struct {
	Length int // half-open connections of this listener
	Limit  int // the listener's backlog (Send-Q); "full" is said from counters, never from Length
}

// Limit is how full one stage is. Ratio is Used / Max, 1.0 is full.
type Limit struct {
	Name  string // accept_queue, max_connections, max_threads, open_files, ephemeral_ports, …
	Used  int
	Max   int
	Ratio float64
	// FullIn is the time until the stage is full at the present trend, nil
	// when it is not filling.
	FullIn *time.Duration
}

// Process is the owner of a listener.
type Process struct {
	At   time.Time // when it was read
	PID  int
	Comm string
	// StartTime is field 22 of /proc/PID/stat, in clock ticks since boot: with
	// PID it names the process uniquely.
	StartTime uint64

	OpenFiles      *int // entries of /proc/PID/fd
	OpenFilesLimit *int // soft "Max open files"
	Threads        *int // "Threads" of /proc/PID/status
	Stopped        bool // state T: SIGSTOP or a debugger
	Frozen         bool // with its cgroup: docker pause, systemctl freeze
	Dumping        bool // it has crashed, and its core dump is written
	// Children are processes of the same program that it has started, as the workers of nginx, among those that are read, and
	// StoppedChildren how many of these are stopped (state T), StoppedChild the first. ChildrenUnread are those behind them, of
	// whatever program. They are not read of a JVM.
	Children, StoppedChildren, StoppedChild, ChildrenUnread int

	Container string // container id from the cgroup path, "" on a plain host
	PodUID    string // Kubernetes pod uid from the cgroup path
	// Owner is whose share of the agent it takes up: a pod, a container or a user, by the kernel's path of its cgroup
	// alone; "" where that does not say it.
	Owner string

	// Busiest is the peer that most of the outgoing connections go to, nil when
	// they were not counted.
	Busiest *Destination
	// Downstream is what the process's own requests wait for, nil where its
	// outgoing connections were not read.
	Downstream *Downstream
	// Stacks are what its threads do by its own account, nil where it was not asked
	// (--thread-dump) or did not say.
	Stacks *Stacks

	// UserThreads are the threads of all processes of the process's user, and UserThreadsLimit
	// is how many it lets there be (soft "Max processes", RLIMIT_NPROC); nil where that is no
	// limit for it, or none that is near.
	UserThreads, UserThreadsLimit *int

	MemoryLimit *uint64 // bytes, of the cgroup
	// MemoryUsed are bytes of it that the process itself has, and that cannot be taken from it without swapping (RssAnon and
	// RssShmem of /proc/PID/status).
	MemoryUsed *uint64
	PIDsLimit  *int // pids.max of the cgroup
	// PIDsRefused is how many threads and processes the cgroup was refused since the
	// process is watched (pids.events), nil where that cannot be read.
	PIDsRefused *uint64
	CPULimit    *float64 // CPUs, of the cgroup: quota / period

	// InSafepoint is how long a JVM has stood still at the safepoint that is
	// under way, nil when none is known to be.
	InSafepoint *time.Duration

	// Running totals since the process started.
	// OldUsed and OldMax are the bytes of the old generation of a JVM's heap, after the latest
	// collection, and as many as it may have; nil where the collector has none.
	OldUsed *int64
	OldMax  *int64
	// SafepointTime is sun.rt.safepointTime of hsperfdata, with the time until all threads had stopped
	// (sun.rt.safepointSyncTime, from Java 13 on); a safepoint counts when it ends.
	SafepointTime *time.Duration
	GCTime        *time.Duration // all collectors' time of hsperfdata
	// CPUThrottled is throttled_usec of the cgroup's cpu.stat and of those above
	// it, summed over CPUs: not a wall time. CPUUsed is the CPU time that the
	// cgroup got, the process's own where that cannot be seen.
	CPUThrottled, CPUUsed *time.Duration
	// CPUPeriods are the periods of the CPU limit in which the cgroup had
	// anything to run, CPUPeriodsThrottled those of them in which it was throttled.
	CPUPeriods, CPUPeriodsThrottled *uint64
	RunDelay                        *time.Duration // waiting for a CPU: field 2 of task/*/schedstat, summed
}

// Destination is a peer address and the local ports in use towards it: each
// connection there takes one of ip_local_port_range, and so does its TIME_WAIT.
type Destination struct {
	Address  netip.AddrPort
	Ports    int
	TimeWait int // of these; they belong to no process any more
	// Reusable are those in TIME_WAIT that the kernel gives to a new connection there
	// (net.ipv4.tcp_tw_reuse).
	Reusable int
	// Unowned: no process is seen to hold a connection there, so that whose they were
	// is not known. Ports are the network namespace's, which this process shares.
	Unowned bool
}

// Taken are the ports that a new connection there cannot have.
func (d *Destination) Taken() int { return d.Ports - d.Reusable }

// AcceptorState is what the thread that accepts connections was seen to do, in two
// readings where that takes two.
type AcceptorState string

// The states; "" is not read, or not clear.
const (
	AcceptorAccepts AcceptorState = "accepts"  // in accept(2), or running
	AcceptorAtLimit AcceptorState = "at_limit" // at the connection latch
	AcceptorPauses  AcceptorState = "pauses"   // asleep for a set time, with open files below their limit
	AcceptorMissing AcceptorState = "missing"  // there is no such thread
)

// Basis is what a verdict was judged from besides the listener itself: from both
// it can be judged again. It must not be changed.
type Basis struct {
	Before   *Listener     // nil with a single snapshot; it has no basis of its own
	First    bool          // another snapshot follows the only one
	Elapsed  time.Duration // between the two snapshots
	Interval time.Duration // what the losses and Delta span
	Delta    Counters
	Sysctl   map[string]int
	Closed   *Closed
	Shown    *Shown // nil where the verdict was shown as it was judged
}

// Closed is a listener that went away.
type Closed struct {
	Queued int           // connections that stood in its accept queue: they were reset
	Ago    time.Duration // how long ago it was missed
	Part   bool          // only some sockets of an SO_REUSEPORT group: the others listen on
}

// Shown is the verdict that was shown before, and since when those judged differ
// from it: what decides whether the next one replaces it.
type Shown struct {
	Verdict Verdict
	Started bool
	Last    time.Time // when a verdict like the one shown was last judged
	Better  time.Time // since when the status is better; zero while it is not
	Other   time.Time // since when the cause is another one, the status the same
	Cause   Cause     // the latest of these
}

// QueueSamples is how an accept queue went since the publication before, and about a
// second longer: each run holds until the next one begins, the last until To.
type QueueSamples struct {
	From, To time.Time // of the first and of the last sample
	Runs     []QueueRun
}

// QueueRun is a stretch of samples that saw the same.
type QueueRun struct {
	At      time.Duration // since From
	Length  uint32        // connections waiting (sk_ack_backlog), of the fullest socket of a group
	Dropped uint32        // packets dropped when it began; never clients
}

// Halved makes every two runs one, with the longer queue and the drops of both. It writes over the runs.
func Halved(runs []QueueRun) []QueueRun {
	out := runs[:0]
	for i := 0; i < len(runs); i += 2 {
		r := runs[i]
		if i+1 < len(runs) {
			next := runs[i+1]
			r.Length, r.Dropped = max(r.Length, next.Length), r.Dropped+min(next.Dropped, math.MaxUint32-r.Dropped)
		}
		out = append(out, r)
	}
	return out
}
