package evidence

import "time"

const (
	// weakApart is how long the same sleep must have lasted where safepoints
	// cannot be read, or it is not clear whether one is under way, or the thread
	// may wait for one that lacks a CPU: longer than most collections, and than
	// threads take to get to a safepoint and to leave it.
	weakApart = time.Second
	// asleepApart is how long a sleep must have lasted that is not known to be
	// in futex(2): longer than Tomcat's longest back-off after EMFILE
	// (Acceptor.MAX_ERROR_DELAY, 1.6 s), and than a paused acceptor's sleeps. An
	// acceptor in accept(2) is woken when the queue is not empty.
	asleepApart = 2 * time.Second
)

// atLatch reports whether the acceptor waited at the connection latch from one
// reading to the other: it slept all that time, in futex(2) without a timeout,
// at an address that is not on its own stack, and no safepoint held it.
func (j *judge) atLatch() bool {
	if !j.sameSleep() || !j.apart(j.latchApart()) || j.accepted() {
		return false
	}
	return j.blind() || j.notHeld()
}

func (j *judge) latchApart() time.Duration {
	switch {
	case j.cur.Acceptor.Activity == Asleep:
		return asleepApart
	case j.blind(), !j.cur.Safepoint.V.WakesFirst, j.cur.Acceptor.Plain, j.cur.Safepoint.V.Unclear && !j.sleptThrough():
		return weakApart
	}
	return MinApart
}

// sameSleep: the thread has not run between the two readings. A reading takes
// the counters first and the system call after them, so what the first reading
// shows is the sleep that lasts at the second.
func (j *judge) sameSleep() bool {
	then, now := &j.near.Acceptor, &j.cur.Acceptor
	if now.TID == 0 || then.TID != now.TID || then.Switches != now.Switches || then.Ran != now.Ran || then.Activity != now.Activity {
		return false
	}
	switch now.Activity {
	case Parked:
		return then.Futex == now.Futex && !now.OnStack
	case Asleep:
		return j.near.Queued.V > 0 && j.cur.Queued.V > 0
	}
	return false
}

// accepted: a connection was accepted meanwhile, by whomever.
func (j *judge) accepted() bool {
	then, now := j.near.Accepted, j.cur.Accepted
	return then.Known && now.Known && then.V != now.V
}

// blind: safepoints cannot be read.
func (j *judge) blind() bool { return !j.near.Safepoint.Known || !j.cur.Safepoint.Known }

// notHeld says that no safepoint was the reason of a sleep.
func (j *judge) notHeld() bool { return j.sleptThrough() || j.undisturbed() }

// undisturbed: no safepoint is under way, and none has begun or ended.
func (j *judge) undisturbed() bool {
	then, now := j.near.Safepoint.V, j.cur.Safepoint.V
	return !then.UnderWay && !now.UnderWay && then.Begun == now.Begun && then.Stood == now.Stood
}

// sleptThrough: two safepoints have begun meanwhile, the first of which must
// have ended and woken whoever it held, while this thread slept on.
func (j *judge) sleptThrough() bool { return j.cur.Safepoint.V.Begun-j.near.Safepoint.V.Begun >= 2 }

// accepting says that the acceptor takes connections as they come: it was in
// accept() each time.
func (j *judge) accepting() bool {
	return j.apart(MinApart) && j.near.Acceptor.Activity == Accepting && j.cur.Acceptor.Activity == Accepting &&
		j.near.Acceptor.TID == j.cur.Acceptor.TID
}
