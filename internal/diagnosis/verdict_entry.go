package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// entry is what the catalogue has of a cause; of none, and of one that a later version
// named, what is said where no cause is known.
func (j *judge) entry(name model.Cause) cause {
	for _, c := range j.catalogue {
		if c.name == name {
			return c
		}
	}
	return unknown()
}

// evidence lists the numbers that a cause was judged from.
func (j *judge) evidence(c model.Cause, v model.Verdict) string { return j.entry(c).evidence(j, v) }

// advice for a cause: one concrete change with its number, its side effects,
// and the change that suggests itself and would not help.
func (j *judge) advice(c model.Cause, v model.Verdict) string { return j.entry(c).advice(j, v) }

// steps are what to do about the verdict's cause, and the tempting change that does not
// help.
func (j *judge) steps(v model.Verdict) (do []model.Step, not string) {
	if v.Status == model.StatusOK && v.Cause == model.CauseNone {
		return nil, ""
	}
	return j.entry(v.Cause).steps(j, v)
}

// reason continues a sentence with why connections are not taken in.
func (j *judge) reason(v model.Verdict) string {
	full := ""
	switch {
	case v.Status != model.StatusLosing:
	case j.queueFull:
		full = ": " + j.queuePhrase()
	case v.Cause == model.CauseNone && j.losses().DroppedPackets > 0:
		full = " at a full accept queue"
	}
	return full + j.because(v)
}

// because is the reason alone.
func (j *judge) because(v model.Verdict) string { return j.entry(v.Cause).because(j, v) }
