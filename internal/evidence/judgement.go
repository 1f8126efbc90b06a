package evidence

import "github.com/tcpdiag/tcpdiag/internal/model"

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
	// Weak: the acceptor has slept as it does at the connection latch, but
	// safepoints could not be read, at which it sleeps in the same way.
	Weak bool
	// Pending: one more reading, at least MinApart later, may decide.
	Pending bool
	// Soon: that reading decides within a second or so, as the acceptor's system call
	// can be read.
	Soon bool
	// Missing is what could not be read, in the order of the subjects. It is set
	// where the cause is not known or Weak.
	Missing []Missing
}
