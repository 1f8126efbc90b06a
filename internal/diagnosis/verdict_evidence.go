package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// evidence lists the numbers that a cause was judged from.
func (wd wording) evidence(c model.Cause, v model.Verdict) string {
	switch c {
	case model.CauseMaxThreads:
		if wd.waits.cause != model.CauseNone { // its own finding has the stacks
			return wd.join(wd.threadNumbers(), wd.queueNumbers())
		}
		return wd.join(wd.threadNumbers(), stackNumbers(wd.Now), wd.queueNumbers())
	case model.CauseDownstream, model.CauseConnectionPool:
		return wd.join(wd.waitNumbers(), wd.peerNumbers(), stackNumbers(wd.Now))
	case model.CauseMaxConnections, model.CauseKeepAliveIdle:
		return wd.join(wd.lossNumbers(c, v, wd.connectionsFull), wd.connectionNumbers(), wd.threadNumbers(), wd.queueNumbers())
	case model.CauseExecutorQueue:
		n, _ := boundedQueue(wd.Now)
		return wd.join(wd.threadNumbers(), phrase.Sprintf("executor queue bounded at %d", n))
	case model.CauseOpenFiles, model.CauseEphemeralPorts:
		full := c == model.CauseEphemeralPorts || wd.filesFull
		return wd.join(wd.lossNumbers(c, v, full), wd.stageOr(c), wd.connectionNumbers(), wd.queueNumbers())
	case model.CauseJVMPause, model.CauseCPUThrottled, model.CauseCPUSaturated:
		phrase := wd.pausePhrase()
		if c != model.CauseJVMPause {
			phrase = wd.cpuPhrase(c)
		}
		return wd.join(phrase, wd.connectionNumbers(), wd.queueNumbers(), wd.lossNumbers(c, v, true))
	case model.CauseBacklogClamped:
		return wd.join(wd.clampedNumbers(), wd.queueNumbers())
	case model.CauseSynBacklog:
		return wd.join(wd.synNumbers())
	case model.CauseListenerClosed:
		return wd.join(phrase.Sprintf("a listener on port %v went away with %s in its accept queue: their clients were reset, although all they did was wait", wd.Now.Port, phrase.Count(wd.resetInQueue(), "connection")), wd.resetNumbers())
	case model.CauseNoListener:
		return wd.join(phrase.Sprintf("no LISTEN socket on port %v", wd.Now.Port), wd.resetNumbers())
	}
	return wd.join(wd.connectionNumbers(), wd.queueNumbers(), wd.lossNumbers(c, v, true))
}

func (wd wording) join(parts ...string) string {
	kept := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return phrase.Capital(strings.Join(kept, "; ")) + "."
}

func (wd wording) threadNumbers() string {
	most, ok := maxThreads(wd.Now)
	if !ok {
		if virtualThreads(wd.Now) {
			return "virtual threads: maxThreads does not apply"
		}
		return ""
	}
	s := ""
	if busy, seen := busyThreads(wd.Now); seen {
		s = phrase.Sprintf("%d of %d threads busy", busy, most)
		if wd.Now.Connector.BusyThreads == nil {
			s = wd.atLeast() + s
		}
	}
	if n := wd.Now.Connector.PoolThreads; n != nil {
		if s != "" {
			s += ", "
		}
		if *n >= most {
			s += "the pool is at its maximum"
		} else {
			s += phrase.Sprintf("the pool has %d of at most %d", *n, most)
		}
	}
	s += wd.workerNumbers()
	if n := waitingRequests(wd.Now); n > 0 && s != "" {
		s += phrase.Sprintf(", %s waiting", phrase.Count(n, "request"))
		if gone := wd.Now.Connections.Abandoned; gone > 0 {
			s += phrase.Sprintf(" (%d of them from clients that have closed)", gone)
		}
	}
	return s
}

func (wd wording) connectionNumbers() string {
	n, ok := held(wd.Now)
	if !ok {
		return ""
	}
	s := phrase.Count(n, "connection") + " held"
	if connectionLimit(wd.Now) == limitKnown {
		s = phrase.Sprintf("%d of %d connections held", n, wd.Now.Connector.MaxConnections.Value)
	}
	var parts []string
	for ph := range model.NumPhases {
		if k := phase(wd.Now, ph); k > 0 {
			part := phrase.Sprintf("%d %s", k, strings.ReplaceAll(ph.String(), "_", " "))
			switch n := silent(wd.Now); {
			case ph != model.Idle || n == 0:
			case n >= k:
				part += ", which have sent nothing yet"
			default:
				part += phrase.Sprintf(", %d of which have sent nothing yet", n)
			}
			parts = append(parts, part)
		}
	}
	if r := wd.Now.Connections.Reset; r != nil && *r > 0 {
		parts = append(parts, phrase.Sprintf("%d without a socket", *r))
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return wd.atLeast() + s
}

// atLeast goes before what was counted of the connections.
func (wd wording) atLeast() string {
	switch {
	case partial(wd.Now):
		return "at least "
	case inexact(wd.Now):
		return "about "
	}
	return ""
}

func (wd wording) queueNumbers() string {
	q := wd.Now.AcceptQueue
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
func (wd wording) lossNumbers(c model.Cause, v model.Verdict, shown bool) string {
	n, all := wd.droppedFor(c), wd.losses().DroppedPackets
	switch {
	case n > 0 && !shown && v.Status == model.StatusLosing:
		return phrase.Sprintf("the limit was reached in the snapshots around %d of the %s, it is not now", n, phrase.Count(all, "dropped packet"))
	case n == 0 || n == all:
		return ""
	}
	return phrase.Sprintf("%d of the %s fall to this cause", n, phrase.Count(all, "dropped packet"))
}

func (wd wording) stageOr(c model.Cause) string {
	if _, ok := limitNamed(wd.limits, string(c)); ok {
		return wd.stagePhrase(c)
	}
	return ""
}

func (wd wording) clampedNumbers() string {
	n, ok := acceptCount(wd.Now)
	if !ok {
		return ""
	}
	s := phrase.Sprintf("configured is acceptCount %d%s, in force is %d (Send-Q of the listener)", n, sourceOf(wd.Now.Connector.AcceptCount), wd.Now.AcceptQueue.Limit)
	if somax, ok := wd.Sysctl["somaxconn"]; ok {
		s += phrase.Sprintf("; net.core.somaxconn is %d now", somax)
	}
	return s
}

func (wd wording) synNumbers() string {
	s := phrase.Sprintf("%s dropped before the accept queue", phrase.Count(wd.droppedFor(model.CauseSynBacklog), "packet"))
	if b := wd.Now.SynBacklog; b != nil {
		s += phrase.Sprintf("; %s half-open, limit %d", phrase.Count(b.Length, "connection"), b.Limit)
	}
	if n := wd.Delta["TCPReqQFullDrop"]; n > 0 {
		s += phrase.Sprintf("; TCPReqQFullDrop +%d", n)
	}
	return s
}

// resetNumbers support a refusal; they are the whole namespace's.
func (wd wording) resetNumbers() string {
	if n, ok := wd.Delta["OutRsts"]; ok && n > 0 {
		return phrase.Sprintf("the namespace sent %s%s, to whatever port", phrase.Count(n, "reset"), wd.inInterval())
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
