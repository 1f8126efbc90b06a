package evidence

import "time"

// Value is a value that was read, or the zero value where it could not be.
type Value[T any] struct {
	V     T
	Known bool
}

// Known is a value that was read.
func Known[T any](v T) Value[T] { return Value[T]{V: v, Known: true} }

// Reading is what one process and its acceptor thread were doing at one moment.
// The zero value stands for no reading.
type Reading struct {
	// Began and Ended are the times before the first file was read and after the
	// last: the acceptor slept somewhere between them.
	Began, Ended time.Time

	// Stopped: state T or t (SIGSTOP, a debugger), or frozen with its cgroup, in which
	// a thread keeps the state and the system call it was in.
	Stopped  Value[bool]
	Acceptor Acceptor

	Files      Value[int] // open files
	FilesLimit Value[int] // soft RLIMIT_NOFILE, which accept(2) meets as EMFILE
	// FilesAge is the age of Files where they were listed rather than asked for
	// (before Linux 6.2).
	FilesAge time.Duration

	Safepoint Value[Safepoint]
	CPULimit  Value[CPULimit] // not known where the process has no CPU limit

	// Accepted is a running total of accepted connections, where it is followed.
	Accepted Value[uint64]
	// Queued is the length of the accept queue.
	Queued Value[int]

	// Missing says why a subject could not be read, "" where it was.
	Missing [NumSubjects]string
}

// taken reports whether it is a reading and not the zero value.
func (r *Reading) taken() bool { return !r.Ended.IsZero() }

// Activity is what the acceptor thread does, as the kernel shows it.
type Activity int

// The activities.
const (
	// Unknown: there is no acceptor thread, or it could not be read.
	Unknown Activity = iota
	// Accepting: in accept(2), or waiting for the listening socket to be ready.
	Accepting
	// Parked: in futex(2) without a timeout. At the LimitLatch; or held at a
	// safepoint, or waiting for a lock.
	Parked
	// Sleeping: in futex(2) with a timeout. Backing off after EMFILE, or the
	// connector is paused (Acceptor.handleExceptionWithDelay, Thread.sleep).
	Sleeping
	// Runnable: running, or waiting for a CPU.
	Runnable
	// Asleep: blocked, and which call it is in may not be read.
	Asleep
	// Elsewhere: in another system call.
	Elsewhere
)

// Acceptor is the state of the thread that accepts connections.
type Acceptor struct {
	TID      int
	Activity Activity
	Futex    uint64 // its address, while Parked
	// OnStack: the futex lies on the thread's own stack, where a LimitLatch
	// (java.util.concurrent.locks, parked on HotSpot's Parker) never is. Threads
	// that wait for memory of ZGC do so.
	OnStack bool
	// Plain: it waits as for a mutex (FUTEX_WAIT), and with an old C library as at
	// the latch: a thread that is woken waits so for the one that wakes it.
	Plain bool

	// Switches counts its voluntary context switches (task/TID/status), Ran the
	// times it was given a CPU (field 3 of schedstat; 0 without
	// CONFIG_SCHED_INFO). Neither moves while it sleeps.
	Switches, Ran uint64
	CPUTime       time.Duration // field 1 of schedstat
	RunDelay      time.Duration // field 2: waiting for a CPU; added when it is given one
}

// Safepoint is how far a JVM's safepoints have come.
type Safepoint struct {
	Begun int64 // sun.rt.safepoints
	// Stood is the time of those that have ended, from when the first thread was stopped.
	Stood time.Duration
	// UnderWay: one has begun and not ended; Lasted for how long.
	UnderWay bool
	Lasted   time.Duration
	// Unclear: one may be under way, but no collection is.
	Unclear bool
	// WakesFirst: a thread that was held is woken before the safepoint's time is
	// counted and the next one begins (HotSpot's WaitBarrier, JDK 14 and newer).
	// Older JVMs hold threads at Threads_lock, one of which wakes the next.
	WakesFirst bool
}

// CPULimit are the running totals of the CPU limit (cgroup cpu.stat).
type CPULimit struct {
	Periods, Throttled uint64        // nr_periods, nr_throttled
	Withheld           time.Duration // throttled_usec: summed over CPUs
	Used               time.Duration // usage_usec
}

// Phases is what the nearest walk of the connections said.
type Phases struct {
	Walked     bool
	Age        time.Duration
	Partial    bool   // the walk was cut short: too few were counted
	SlotsInUse int    // connection slots in use: accepted and reset
	Set        uint64 // differs where others are held
	Idle       int    // of them between two requests, or silent; 0 where most of them may be in service

	MaxConnections Value[int] // negative: no limit
	Uncertain      bool       // the limit may be overruled by what could not be read
	Given          bool       // the server itself says so, or somebody has set it: it is no default, and was not inferred

	// ByWorkers: a worker takes the next connection (NIO2), when it is done with another.
	ByWorkers bool
}
