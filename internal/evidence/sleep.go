package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

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

// AtLatch reports whether the acceptor waited at the connection latch from one
// reading to the other: it slept all that time, in futex(2) without a timeout,
// at an address that is not on its own stack, and no safepoint held it.
func (m *Moment) AtLatch() bool {
	if !m.sameSleep() || !m.apart(m.latchApart()) || m.accepted() {
		return false
	}
	return m.blind() || m.withoutSafepoint()
}

// MayBeAtSafepoint says that the sleep that AtLatch goes by is one at a safepoint, for all that is known: safepoints cannot be read, or
// one may have been under way all the time, and slots are free, for certain. A count at the limit, or connections that are
// taken only as others end, show the limit without it.
func (m *Moment) MayBeAtSafepoint() bool {
	hidden := m.blind() || m.cur.Safepoint.V.Unclear && !m.sleptThrough()
	return hidden && m.AtLatch() && m.FarFromLimit() && !m.AtLimit() && !m.TurnsOver()
}

func (m *Moment) latchApart() time.Duration {
	switch {
	case m.cur.Acceptor.Activity == Asleep:
		return asleepApart
	case m.blind(), !m.cur.Safepoint.V.WakesFirst, m.cur.Acceptor.Plain, m.cur.Safepoint.V.Unclear && !m.sleptThrough():
		return weakApart
	}
	return MinApart
}

// sameSleep: the thread has not run between the two readings. A reading takes
// the counters first and the system call after them, so what the first reading
// shows is the sleep that lasts at the second.
func (m *Moment) sameSleep() bool {
	then, now := &m.near.Acceptor, &m.cur.Acceptor
	if now.TID == 0 || then.TID != now.TID || then.Switches != now.Switches || then.Ran != now.Ran || then.Activity != now.Activity {
		return false
	}
	switch now.Activity {
	case Parked:
		return then.Futex == now.Futex && !now.OnStack
	case Asleep:
		return m.near.Queued.V > 0 && m.cur.Queued.V > 0
	}
	return false
}

// accepted: a connection was accepted meanwhile, by whomever.
func (m *Moment) accepted() bool {
	then, now := m.near.Accepted, m.cur.Accepted
	return then.Known && now.Known && then.V != now.V
}

// blind: safepoints cannot be read.
func (m *Moment) blind() bool { return !m.near.Safepoint.Known || !m.cur.Safepoint.Known }

// withoutSafepoint says that no safepoint was the reason of a sleep.
func (m *Moment) withoutSafepoint() bool { return m.sleptThrough() || m.undisturbed() }

// undisturbed: no safepoint is under way, and none has begun or ended.
func (m *Moment) undisturbed() bool {
	then, now := m.near.Safepoint.V, m.cur.Safepoint.V
	return !then.UnderWay && !now.UnderWay && then.Begun == now.Begun && then.Stood == now.Stood
}

// sleptThrough: two safepoints have begun meanwhile, the first of which must
// have ended and woken whoever it held, while this thread slept on.
func (m *Moment) sleptThrough() bool { return m.cur.Safepoint.V.Begun-m.near.Safepoint.V.Begun >= 2 }

// Accepting says that the acceptor takes connections as they come: it was in
// accept() each time.
func (m *Moment) Accepting() bool {
	return m.apart(MinApart) && m.near.Acceptor.Activity == Accepting && m.cur.Acceptor.Activity == Accepting &&
		m.near.Acceptor.TID == m.cur.Acceptor.TID
}

// AcceptsGoOn says that the acceptor takes connections: in accept() or running in both
// readings, and connections were accepted between them.
func (m *Moment) AcceptsGoOn() bool {
	works := func(a *Acceptor) bool { return a.Activity == Accepting || a.Activity == Runnable }
	return m.apart(MinApart) && works(&m.near.Acceptor) && works(&m.cur.Acceptor) && m.accepted()
}

// Accepted reports whether connections were accepted between the readings, by whomever.
func (m *Moment) Accepted() bool { return m.near.taken() && m.accepted() }

// Pauses says that the acceptor sleeps for a set time, again and again, while clients wait
// and it has descriptors: the connector is paused (Acceptor.run sleeps for 10 ms while it
// is). One of the two readings may have met it while it woke up.
func (m *Moment) Pauses() bool {
	used, limit := m.cur.Files, m.cur.FilesLimit
	filesLeft := used.Known && limit.Known && used.V < limit.V
	then, now := m.near.Acceptor, m.cur.Acceptor
	sleeps := then.Activity == Sleeping && (now.Activity == Sleeping || now.Activity == Runnable) || then.Activity == Runnable && now.Activity == Sleeping
	return m.apart(MinApart) && filesLeft && sleeps && then.TID == now.TID && !m.OutOfFiles() && !m.accepted() &&
		m.near.Queued.V > 0 && m.cur.Queued.V > 0
}

// noAcceptor: the threads could be read, and none of them is the acceptor, in both readings.
func (m *Moment) noAcceptor() bool {
	none := func(r *Reading) bool {
		return r.Missing[SubjectAcceptor] == "" && r.Acceptor.TID == 0 && r.Acceptor.Activity == Unknown
	}
	return m.apart(MinApart) && none(m.near) && none(m.cur)
}

// acceptorState is what the two readings show of the acceptor alone.
func (m *Moment) acceptorState() model.AcceptorState {
	switch {
	case m.MayBeAtSafepoint():
		return ""
	case m.AtLatch():
		return model.AcceptorAtLimit
	case m.Accepting() || m.AcceptsGoOn():
		return model.AcceptorAccepts
	case m.Pauses():
		return model.AcceptorPauses
	case m.noAcceptor():
		return model.AcceptorMissing
	}
	return ""
}
