package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// judge names what the symptoms mean, by the catalogue.
type judge struct {
	s         *symptoms.Symptoms
	catalogue []causes.Cause
	numbers   string // see okNumbers
}

func newJudge(e symptoms.Input, all []causes.Cause, t reading.Thresholds) *judge {
	return &judge{s: symptoms.Of(e, t), catalogue: all}
}

// entry is what the catalogue has of a cause; of none, and of one that a later version
// named, what is said where no cause is known.
func (j *judge) entry(name model.Cause) causes.Cause {
	for _, c := range j.catalogue {
		if c.Name == name {
			return c
		}
	}
	return causes.Unknown()
}

// evidence lists the numbers that a cause was judged from.
func (j *judge) evidence(c model.Cause, v model.Verdict) string { return j.entry(c).Evidence(j.s, v) }

// advice for a cause: one concrete change with its number, its side effects,
// and the change that suggests itself and would not help.
func (j *judge) advice(c model.Cause, v model.Verdict) string { return j.entry(c).Advice(j.s, v) }

// steps are what to do about the verdict's cause, and the tempting change that does not
// help.
func (j *judge) steps(v model.Verdict) (do []model.Step, not string) {
	if v.Status == model.StatusOK && v.Cause == model.CauseNone {
		return nil, ""
	}
	return j.entry(v.Cause).Steps(j.s, v)
}

// reason continues a sentence with why connections are not taken in.
func (j *judge) reason(v model.Verdict) string {
	full := ""
	switch {
	case v.Status != model.StatusLosing:
	case j.s.QueueFull && v.Cause != model.CauseBeforeListener: // who is lost in front of the listener does not stand before its queue
		full = ": " + words.Queue(j.s)
	case v.Cause == model.CauseNone && j.s.Losses().DroppedPackets > 0:
		full = " at a full accept queue"
	}
	because := j.because(v)
	if because == "" && v.Status == model.StatusLosing && j.s.Losses().DroppedPackets > 0 && (v.Cause == model.CauseDownstream || v.Cause == model.CauseConnectionPool) {
		because = " while " + words.WaitOf(j.s) // whose workers accept
	}
	return full + because
}

// because is the reason alone.
func (j *judge) because(v model.Verdict) string { return j.entry(v.Cause).Because(j.s, v) }
