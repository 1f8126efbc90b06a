package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What a judgement depends on.
const (
	// MinApart is the least time between two readings that prove the latch: a
	// safepoint's synchronisation and a context switch take less.
	MinApart = 20 * time.Millisecond
	// pauseMin is the least time at a safepoint that counts as a pause.
	pauseMin = 100 * time.Millisecond
	// most is the share of the time that the process must have been kept from
	// running for that to be the cause whatever else is full, some the share
	// that is the cause when nothing else is.
	most, some = .5, .2
	// listed is how old a listing of the open files may be to speak for itself.
	listed = 5 * time.Second
	// rateOver is the longest time over which rates are compared.
	rateOver = 5 * time.Second
)

// Judge names the limit that kept the accept queue from being emptied. prev is
// an earlier reading of the same process or the zero value. In order: a stopped
// process, a CPU limit that withholds most of what it wants, a safepoint, a missing
// CPU; open files; the acceptor's own state; the connections as of the nearest walk.
func Judge(prev, cur Reading, phases Phases) Judgement {
	j := judge{near: &prev, wide: &prev, cur: &cur, phases: &phases}
	return j.judgement()
}

func (j *judge) judgement() Judgement {
	cause, strength := j.cause()
	out := Judgement{Cause: cause, Strength: strength}
	switch {
	case strength == StrengthNone:
		out.Pending = !j.apart(MinApart) || j.sameSleep() && !j.apart(j.latchApart())
		out.Missing = j.missing()
	case strength == StrengthPhases && cause == model.CauseSlowAccept:
		out.Pending = j.sameSleep() && !j.apart(j.latchApart()) // an acceptor that accepts does not sleep
	case strength == StrengthAcceptor && j.blind():
		out.Weak = cause != model.CauseSlowAccept
	}
	out.Soon = out.Pending && j.cur.Acceptor.Activity == Parked
	if out.Weak {
		out.Missing = j.unread()
	}
	return out
}

func (j *judge) cause() (model.Cause, Strength) {
	latched := j.atLatch()
	switch {
	case j.stopped():
		return model.CauseJVMPause, StrengthProcess
	case j.throttled(most): // then a safepoint takes as long
		return model.CauseCPUThrottled, StrengthProcess
	case j.paused(most):
		return model.CauseJVMPause, StrengthProcess
	case j.starved() && j.throttled(0):
		return model.CauseCPUThrottled, StrengthProcess
	case j.starved():
		return model.CauseCPUSaturated, StrengthProcess
	case !latched && j.outOfFiles():
		return model.CauseOpenFiles, StrengthFiles
	case latched:
		return j.connectionsCause(), StrengthAcceptor
	}
	return j.lesserCause()
}

// lesserCause is asked when no limit is proven to be reached.
func (j *judge) lesserCause() (model.Cause, Strength) {
	switch {
	case j.paused(some):
		return model.CauseJVMPause, StrengthProcess
	case j.throttled(some):
		return model.CauseCPUThrottled, StrengthProcess
	case j.accepting():
		return model.CauseSlowAccept, StrengthAcceptor
	case j.phases.atLimit():
		return j.connectionsCause(), StrengthPhases
	case j.phases.room():
		return model.CauseSlowAccept, StrengthPhases
	}
	return model.CauseAcceptQueue, StrengthNone
}
