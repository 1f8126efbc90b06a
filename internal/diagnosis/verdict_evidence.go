package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// connectionsEvidence, cpuEvidence and queueEvidence are the numbers that several causes
// were judged from.
func (j *judge) connectionsEvidence(c model.Cause, v model.Verdict) string {
	return j.join(j.lossNumbers(c, v, j.connectionsFull), j.connectionNumbers(), j.threadNumbers(), j.queueNumbers())
}

func (j *judge) cpuEvidence(what string, c model.Cause, v model.Verdict) string {
	return j.join(what, j.connectionNumbers(), j.queueNumbers(), j.lossNumbers(c, v, true))
}

func (j *judge) queueEvidence(c model.Cause, v model.Verdict) string {
	return j.join(j.connectionNumbers(), j.queueNumbers(), j.lossNumbers(c, v, true))
}

func (j *judge) join(parts ...string) string {
	kept := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return phrase.Capital(strings.Join(kept, "; ")) + "."
}

func (j *judge) threadNumbers() string {
	most, ok := reading.MaxThreads(j.Now)
	if !ok {
		if reading.VirtualThreads(j.Now) {
			return "virtual threads: maxThreads does not apply"
		}
		return ""
	}
	s := ""
	if busy, seen := reading.BusyThreads(j.Now); seen {
		s = phrase.Sprintf("%d of %d threads busy", busy, most)
		if j.Now.Connector.BusyThreads == nil {
			s = j.atLeast() + s
		}
	}
	if n := j.Now.Connector.PoolThreads; n != nil {
		if s != "" {
			s += ", "
		}
		if *n >= most {
			s += "the pool is at its maximum"
		} else {
			s += phrase.Sprintf("the pool has %d of at most %d", *n, most)
		}
	}
	s += j.workerNumbers()
	if n := reading.WaitingRequests(j.Now); n > 0 && s != "" {
		s += phrase.Sprintf(", %s waiting", phrase.Count(n, "request"))
		if gone := j.Now.Connections.Abandoned; gone > 0 {
			s += phrase.Sprintf(" (%d of them from clients that have closed)", gone)
		}
	}
	return s
}

func (j *judge) connectionNumbers() string {
	n, ok := reading.Held(j.Now)
	if !ok {
		return ""
	}
	s := phrase.Count(n, "connection") + " held"
	if reading.ConnectionLimit(j.Now) == reading.LimitKnown {
		s = phrase.Sprintf("%d of %d connections held", n, j.Now.Connector.MaxConnections.Value)
	}
	var parts []string
	for ph := range model.NumPhases {
		if k := reading.Phase(j.Now, ph); k > 0 {
			part := phrase.Sprintf("%d %s", k, strings.ReplaceAll(ph.String(), "_", " "))
			switch n := reading.Silent(j.Now); {
			case ph != model.Idle || n == 0:
			case n >= k:
				part += ", which have sent nothing yet"
			default:
				part += phrase.Sprintf(", %d of which have sent nothing yet", n)
			}
			parts = append(parts, part)
		}
	}
	if r := j.Now.Connections.Reset; r != nil && *r > 0 {
		parts = append(parts, phrase.Sprintf("%d without a socket", *r))
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return j.atLeast() + s
}

// atLeast goes before what was counted of the connections.
func (j *judge) atLeast() string {
	switch {
	case reading.Partial(j.Now):
		return "at least "
	case reading.Inexact(j.Now):
		return "about "
	}
	return ""
}

func (j *judge) queueNumbers() string {
	q := j.Now.AcceptQueue
	if q == nil {
		return ""
	}
	s := phrase.Sprintf("accept queue %d of %d", q.Length, q.Capacity())
	if q.Peak != nil && *q.Peak > q.Length {
		s += phrase.Sprintf(", at its peak %d", *q.Peak)
	}
	if q.OldestWait != nil && q.Length > 0 {
		s += ", the oldest has waited " + phrase.Seconds(*q.OldestWait)
	}
	return s
}

// lossNumbers are the packets of one cause, where they are not all. shown is
// false when the present snapshot no longer shows what the snapshots around the drops
// did; the numbers that follow are then those of now.
func (j *judge) lossNumbers(c model.Cause, v model.Verdict, shown bool) string {
	n, all := j.droppedFor(c), j.losses().DroppedPackets
	switch {
	case n > 0 && !shown && v.Status == model.StatusLosing:
		return phrase.Sprintf("the limit was reached in the snapshots around %d of the %s, it is not now", n, phrase.Count(all, "dropped packet"))
	case n == 0 || n == all:
		return ""
	}
	return phrase.Sprintf("%d of the %s fall to this cause", n, phrase.Count(all, "dropped packet"))
}

func (j *judge) stageOr(c model.Cause) string {
	if _, ok := reading.LimitNamed(j.limits, string(c)); ok {
		return j.stagePhrase(c)
	}
	return ""
}

func (j *judge) clampedNumbers() string {
	n, ok := reading.AcceptCount(j.Now)
	if !ok {
		return ""
	}
	s := phrase.Sprintf("configured is acceptCount %d%s, in force is %d (Send-Q of the listener)", n, sourceOf(j.Now.Connector.AcceptCount), j.Now.AcceptQueue.Limit)
	if somax, ok := j.Sysctl["somaxconn"]; ok {
		s += phrase.Sprintf("; net.core.somaxconn is %d now", somax)
	}
	return s
}

func (j *judge) synNumbers() string {
	s := phrase.Sprintf("%s dropped before the accept queue", phrase.Count(j.droppedFor(model.CauseSynBacklog), "packet"))
	if b := j.Now.SynBacklog; b != nil {
		s += phrase.Sprintf("; %s half-open, limit %d", phrase.Count(b.Length, "connection"), b.Limit)
	}
	if n := j.Delta["TCPReqQFullDrop"]; n > 0 {
		s += phrase.Sprintf("; TCPReqQFullDrop +%d", n)
	}
	return s
}

// resetNumbers support a refusal; they are the whole namespace's.
func (j *judge) resetNumbers() string {
	if n, ok := j.Delta["OutRsts"]; ok && n > 0 {
		return phrase.Sprintf("the namespace sent %s%s, to whatever port", phrase.Count(n, "reset"), j.inInterval())
	}
	return ""
}

// sourceOf says where a setting was found.
func sourceOf(s *model.Setting[int]) string {
	switch {
	case s.Source != "":
		return " (" + s.Source + ")"
	case s.Kind != "":
		return " (" + string(s.Kind) + ")"
	}
	return ""
}
