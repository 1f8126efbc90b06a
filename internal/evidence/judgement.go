package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Strength is the kind of evidence behind a cause, the "evidence" field of the
// JSON.
type Strength string

// The strengths. StrengthNone goes with CauseAcceptQueue.
const (
	StrengthNone     Strength = ""
	StrengthAcceptor Strength = "acceptor" // the acceptor thread's own state
	StrengthFiles    Strength = "files"    // open files at their limit
	StrengthProcess  Strength = "process"  // stopped, at a safepoint, without a CPU
	StrengthPhases   Strength = "phases"   // the connections as of the nearest walk
)

// Subject is something that a cause is judged from and that can be missing.
type Subject int

// The subjects.
const (
	SubjectProcess Subject = iota
	SubjectAcceptor
	SubjectFiles
	SubjectSafepoints
	SubjectThrottling
	SubjectConnections
	SubjectLimit
	NumSubjects
)

// String is the subject's name in JSON.
func (s Subject) String() string {
	return [NumSubjects]string{
		"process", "acceptor", "open_files", "safepoints", "throttling", "connections", "max_connections",
	}[s]
}

// Missing is a subject that could not be used, and why.
type Missing struct {
	Subject Subject
	Why     string
}

// Judgement is the cause that the evidence of a moment names.
type Judgement struct {
	// Cause is one of model.DropCauses; CauseAcceptQueue where nothing of that
	// moment names the limit.
	Cause    model.Cause
	Strength Strength
	// Acceptor is what the thread that accepts was seen to do.
	Acceptor model.AcceptorState
	// Turned is how many connections are held while others are taken only as these end, 0 where
	// that is not seen.
	Turned int
	// Weak: the acceptor has slept as it does at the connection latch, but
	// safepoints could not be read, at which it sleeps in the same way.
	Weak bool
	// Pending: one more reading, at least MinApart later, may decide.
	Pending bool
	// Soon: readings decide within a second or two, as the acceptor sleeps, or connections are taken as
	// others end.
	Soon bool
	// Missing is what could not be read, in the order of the subjects. It is set
	// where the cause is not known or Weak.
	Missing []Missing
}

// What a judgement depends on.
const (
	// MinApart is the least time between two readings that prove the latch: a
	// safepoint's synchronisation and a context switch take less.
	MinApart = 20 * time.Millisecond
	// pauseMin is the least time at a safepoint that counts as a pause.
	pauseMin = 100 * time.Millisecond
	// Most is the share of the time that the process must have been kept from
	// running for that to be the cause whatever else is full.
	Most = .5
	// Some is the share that is the cause when nothing else is.
	Some = .2
	// Much is the share of the CPU time, and of the periods, in which the CPU limit must have
	// withheld it, that is the cause when nothing else is.
	Much = .25
	// listed is how old a listing of the open files may be to speak for itself.
	listed = 5 * time.Second
	// rateOver is the longest time over which rates are compared.
	rateOver = 5 * time.Second
)

// Choose names the cause that a moment shows and what that rests on. The order of the
// causes and what each of them takes is the catalogue's (internal/diagnosis).
type Choose func(*Moment) (model.Cause, Strength)

// judgement names the limit that kept the accept queue from being emptied.
func (m *Moment) judgement(choose Choose) Judgement {
	cause, strength := choose(m)
	out := Judgement{Cause: cause, Strength: strength, Acceptor: m.acceptorState()}
	if m.TurnsOver() {
		out.Turned = m.turns.slots
	}
	switch {
	case strength == StrengthNone:
		out.Pending = !m.apart(MinApart) || m.sameSleep() && !m.apart(m.latchApart())
		out.Missing = m.missing()
	case strength == StrengthPhases && cause == model.CauseSlowAccept:
		out.Pending = m.sameSleep() && !m.apart(m.latchApart()) // an acceptor that accepts does not sleep
	case strength == StrengthAcceptor && m.blind():
		out.Weak = m.AtLatch()
	}
	out.Soon = strength == StrengthNone && m.turns.begun() || out.Pending && (m.cur.Acceptor.Activity == Parked || m.cur.Acceptor.Activity == Asleep && m.sameSleep())
	if out.Weak {
		out.Missing = m.unread()
	}
	return out
}
