package assemble

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// lately is how old a judgement on the acceptor, and the count with it, may be.
const lately = 1500 * time.Millisecond

// latched is how many connections were held when a listener's acceptor was seen to stand at the
// connection latch, or connections to be taken only as others end, and these were counted about
// then; 0 where neither was, or it stands with all others of the connector's threads.
func (d *draft) latched(l *model.Listener) int {
	j, ok := d.judgement(l)
	switch {
	case !ok || !acceptorExpected(l) || l.Connections == nil || l.Connections.Age > lately || reading.Suspended(l):
		return 0
	case !j.Weak && j.Strength == evidence.StrengthAcceptor && j.Acceptor == model.AcceptorAtLimit:
		return l.Connections.SlotsInUse()
	}
	return j.Turned
}

// judgement is the latest judgement on a listener, if it is of this moment.
func (d *draft) judgement(l *model.Listener) (out evidence.Judgement, ok bool) {
	list := d.f.Judgements[l.ID]
	last, ok := list.Last()
	return last.Value, ok && d.Time.Sub(last.At) <= lately
}

// sayWeak names what is missing where a cause is not known or rests on weak evidence.
func (d *draft) sayWeak(l *model.Listener) {
	j, ok := d.judgement(l)
	if !ok || !acceptorExpected(l) || j.Pending || !j.Weak && j.Strength != evidence.StrengthNone {
		return
	}
	for _, m := range j.Missing {
		u := model.Unavailable{What: m.Subject.String() + " as evidence of " + l.ID.String(), Why: m.Why}
		if j.Weak {
			u.Why += "; the cause rests on weak evidence"
		}
		d.miss.Add(u)
	}
}

// acceptorExpected reports whether the evidence of a JVM can be had: of a process
// that is known to be another program it is not missing.
func acceptorExpected(l *model.Listener) bool {
	return l.Connector.Kind().Name != model.ServerOther().Name
}
