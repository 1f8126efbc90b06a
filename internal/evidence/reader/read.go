package reader

import (
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
)

func (r *Reader) readThread(out *evidence.Reading) {
	if r.thread == nil {
		return
	}
	var t threads.Thread
	if err := r.thread.Read(&t); err != nil { // it ended: found again at the next try
		out.Missing[evidence.SubjectAcceptor] = why(err)
		r.closeThread()
		return
	}
	out.Stopped = evidence.Known(t.Stopped() || t.Dumping)
	if r.acceptor == 0 {
		return
	}
	out.Acceptor = evidence.Acceptor{
		TID: r.acceptor, Activity: activity(&t), Futex: t.Call.Futex, OnStack: t.Call.OnStack, Plain: t.Call.Plain,
		Switches: t.Switches, Ran: t.Ran, CPUTime: t.CPUTime, RunDelay: t.RunDelay,
	}
}

// readFreezer: what is frozen has stopped, whatever its thread was doing.
func (r *Reader) readFreezer(out *evidence.Reading) {
	if r.freezer == nil {
		return
	}
	if frozen, err := r.freezer.Frozen(); err == nil && frozen {
		out.Stopped = evidence.Known(true)
	}
}

// activity is what an acceptor does, by the system call it is in. It polls only
// to accept: a ServerSocket with a timeout, and the APR connector, do so.
func activity(t *threads.Thread) evidence.Activity {
	switch t.Call.Kind {
	case threads.CallRunning:
		return evidence.Runnable
	case threads.CallAccept, threads.CallPoll:
		return evidence.Accepting
	case threads.CallSleep:
		return evidence.Sleeping
	case threads.CallFutex:
		if t.Call.Timed {
			return evidence.Sleeping
		}
		return evidence.Parked
	case threads.CallUnknown:
		return unseenActivity(t)
	}
	return evidence.Elsewhere
}

// unseenActivity is what the state shows where the call may not be read.
func unseenActivity(t *threads.Thread) evidence.Activity {
	switch {
	case t.Accepting:
		return evidence.Accepting
	case t.State == 'R':
		return evidence.Runnable
	case t.State == 'S':
		return evidence.Asleep
	}
	return evidence.Elsewhere
}

func (r *Reader) readFiles(out *evidence.Reading) {
	if r.files == nil {
		return
	}
	used, age, err := r.files.Open(out.Began)
	if err == nil {
		out.Files, out.FilesAge = evidence.Known(used), age
		var limit int
		if limit, err = r.files.Limit(); err == nil {
			out.FilesLimit = evidence.Known(limit)
		}
	}
	out.Missing[evidence.SubjectFiles] = why(err)
}

func (r *Reader) readSafepoints(out *evidence.Reading) {
	if r.jvm == nil {
		return
	}
	var s hsperf.Safepoints
	if err := r.jvm.Safepoints(&s); err != nil {
		out.Missing[evidence.SubjectSafepoints] = why(err)
		return
	}
	state := r.stands.Next(r.now(), evidence.Counters{
		Begun: s.Begun, Ran: s.Ran, Stood: s.Stood, Synced: s.Synced, Collecting: s.Collecting, Started: s.Started,
	})
	state.WakesFirst = s.Feature >= waitBarrier
	out.Safepoint = evidence.Known(state)
}

// waitBarrier is the Java version since which HotSpot holds threads at a
// WaitBarrier (JDK-8230594).
const waitBarrier = 14

func (r *Reader) readThrottle(out *evidence.Reading) {
	if r.throttle == nil {
		return
	}
	var t cgroup.Throttle
	if err := r.throttle.Read(&t); err != nil {
		out.Missing[evidence.SubjectThrottling] = why(err)
		return
	}
	out.CPULimit = evidence.Known(evidence.CPULimit{Periods: t.Periods, Throttled: t.Throttled, Withheld: t.Withheld, Used: t.Used})
}
