package words

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// ConnectionsEvidence is what a cause of used up connections was judged from.
func ConnectionsEvidence(s *symptoms.Symptoms, c model.Cause, v model.Verdict) string {
	return Join(LossNumbers(s, c, v, s.ConnectionsFull), ConnectionNumbers(s), ThreadNumbers(s), QueueNumbers(s))
}

// CPUEvidence is what a cause that is a want of CPU was judged from.
func CPUEvidence(s *symptoms.Symptoms, what string, c model.Cause, v model.Verdict) string {
	return Join(what, ConnectionNumbers(s), QueueNumbers(s), LossNumbers(s, c, v, true))
}

// QueueEvidence is what a cause of a full accept queue was judged from.
func QueueEvidence(s *symptoms.Symptoms, c model.Cause, v model.Verdict) string {
	return Join(ConnectionNumbers(s), QueueNumbers(s), LossNumbers(s, c, v, true))
}

// Join makes one sentence of facts, those that are empty left out.
func Join(parts ...string) string {
	said := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			said = append(said, p)
		}
	}
	return phrase.Capital(strings.Join(said, "; ")) + "."
}

// ThreadNumbers are how many threads are busy, and how many requests wait for one.
func ThreadNumbers(s *symptoms.Symptoms) string {
	most, ok := reading.MaxThreads(s.Now)
	if !ok {
		if reading.VirtualThreads(s.Now) {
			return "virtual threads: maxThreads does not apply"
		}
		return ""
	}
	text := ""
	if busy, seen := reading.BusyThreads(s.Now); seen {
		text = phrase.Sprintf("%d of %d threads busy", busy, most)
		if s.Now.Connector.BusyThreads == nil {
			text = atLeastCounted(s) + text
		}
	}
	if n := s.Now.Connector.PoolThreads; n != nil {
		if text != "" {
			text += ", "
		}
		if *n >= most {
			text += "the pool is at its maximum"
		} else {
			text += phrase.Sprintf("the pool has %d of at most %d", *n, most)
		}
	}
	text += workerNumbers(s)
	if n := reading.WaitingRequests(s.Now); n > 0 && text != "" {
		text += phrase.Sprintf(", %s waiting", phrase.Count(n, "request"))
		if left := s.Now.Connections.Abandoned; left > 0 {
			text += phrase.Sprintf(" (%d of them from clients that have closed)", left)
		}
	}
	return text
}

// ConnectionNumbers are how many connections are held, and in which phases.
func ConnectionNumbers(s *symptoms.Symptoms) string {
	n, ok := reading.SlotsInUse(s.Now)
	if !ok {
		return ""
	}
	text := phrase.Count(n, "connection") + " held"
	if reading.ConnectionLimit(s.Now) == reading.LimitKnown {
		text = phrase.Sprintf("%d of %d connections held", n, s.Now.Connector.MaxConnections.Value)
	}
	var parts []string
	for ph := range model.NumPhases {
		if k := reading.Phase(s.Now, ph); k > 0 {
			part := phrase.Sprintf("%d %s", k, strings.ReplaceAll(ph.String(), "_", " "))
			switch n := reading.Silent(s.Now); {
			case ph != model.Idle || n == 0:
			case n >= k:
				part += ", which have sent nothing yet"
			default:
				part += phrase.Sprintf(", %d of which have sent nothing yet", n)
			}
			parts = append(parts, part)
		}
	}
	if r := s.Now.Connections.Reset; r != nil && *r > 0 {
		parts = append(parts, phrase.Sprintf("%d without a socket", *r))
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return atLeastCounted(s) + text
}

// atLeastCounted goes before what was counted of the connections.
func atLeastCounted(s *symptoms.Symptoms) string {
	switch {
	case reading.Partial(s.Now):
		return "at least "
	case reading.Inexact(s.Now):
		return "about "
	}
	return ""
}

// QueueNumbers are how many connections wait in the accept queue.
func QueueNumbers(s *symptoms.Symptoms) string {
	q := s.Now.AcceptQueue
	if q == nil {
		return ""
	}
	text := phrase.Sprintf("accept queue %d of %d", min(q.Length, q.Capacity()), q.Capacity())
	if q.Peak != nil && *q.Peak > q.Length {
		text += phrase.Sprintf(", at its peak %d", *q.Peak)
	}
	if q.OldestWait != nil && q.Length > 0 {
		text += ", the oldest has waited " + phrase.Seconds(*q.OldestWait)
	}
	return text + Probes(q)
}

// Probes says how many in the accept queue wait for nothing.
func Probes(q *model.AcceptQueue) string {
	n := min(q.Probes, q.Length)
	if n == 0 {
		return ""
	}
	return phrase.Sprintf(" (%d whose %s closed and sent nothing, as a probe of the port does)", n, phrase.Verb(n, "client has", "clients have"))
}

// LossNumbers are the packets of one cause, where they are not all. shown is
// false when the present snapshot no longer shows what the snapshots around the drops
// did; the numbers that follow are then those of now.
func LossNumbers(s *symptoms.Symptoms, c model.Cause, v model.Verdict, shown bool) string {
	n, all := s.DroppedFor(c), s.Losses().DroppedPackets
	switch {
	case n > 0 && !shown && v.Status == model.StatusLosing && n == all:
		return phrase.Sprintf("the limit was reached when %s %s dropped, it is not now", phrase.Count(n, "packet"), phrase.Verb(n, "was", "were"))
	case n > 0 && !shown && v.Status == model.StatusLosing:
		return phrase.Sprintf("the limit was reached when %d of %s were dropped, it is not now", n, phrase.Count(all, "packet"))
	case n == 0 || n == all:
		return ""
	}
	return phrase.Sprintf("%d of the %s were lost to this", n, phrase.Count(all, "dropped packet"))
}

// StageOr is how far a stage is used where its limit is known.
func StageOr(s *symptoms.Symptoms, c model.Cause) string {
	if _, ok := reading.LimitNamed(s.Limits, string(c)); ok {
		return Stage(s, c)
	}
	return ""
}

// ClampedNumbers are the acceptCount that is configured and the one in force.
func ClampedNumbers(s *symptoms.Symptoms) string {
	n, ok := reading.AcceptCount(s.Now)
	if !ok {
		return ""
	}
	text := phrase.Sprintf("configured is acceptCount %d%s, in force is %d (Send-Q of the listener)", n, SourceOf(s.Now.Connector.AcceptCount), s.Now.AcceptQueue.Limit)
	if somax, ok := s.Sysctl["somaxconn"]; ok {
		text += phrase.Sprintf("; net.core.somaxconn is %d now", somax)
	}
	return text
}

// SynNumbers are those of the SYN queue.
func SynNumbers(s *symptoms.Symptoms) string {
	text := phrase.Sprintf("%s dropped before the accept queue", phrase.Count(s.DroppedFor(model.CauseSynBacklog), "packet"))
	if b := s.Now.SynBacklog; b != nil {
		text += phrase.Sprintf("; %s half-open, limit %d", phrase.Count(b.Length, "connection"), b.Limit)
	}
	if n := s.Delta["TCPReqQFullDrop"]; n > 0 {
		text += phrase.Sprintf("; TCPReqQFullDrop +%d", n)
	}
	return text
}

// ResetNumbers support a refusal; they are the whole namespace's.
func ResetNumbers(s *symptoms.Symptoms) string {
	if n, ok := s.Delta["OutRsts"]; ok && n > 0 {
		return phrase.Sprintf("the namespace sent %s%s, to whatever port", phrase.Count(n, "reset"), InInterval(s))
	}
	return ""
}

// SourceOf says where a setting was found.
func SourceOf(s *model.Setting[int]) string {
	switch {
	case s.Source != "":
		return " (" + s.Source + ")"
	case s.Kind != "":
		return " (" + string(s.Kind) + ")"
	}
	return ""
}

// maxGroups is how many groups a sentence names.
const maxGroups = 3

// StackNumbers are where the busy threads are by the JVM's own account.
func StackNumbers(l *model.Listener) string {
	s := reading.StacksOf(l)
	if s.BusyGroup() == nil {
		return ""
	}
	var parts []string
	for i := range s.Groups {
		g := &s.Groups[i]
		if !g.Busy() || len(parts) == maxGroups {
			break
		}
		part := phrase.Sprintf("%d in %s", g.Threads, model.ShortMethod(g.Library))
		if g.Application != "" && g.Application != g.Library {
			part += " called by " + model.ShortMethod(g.Application)
		}
		parts = append(parts, part)
	}
	return phrase.Sprintf("a thread dump shows of %s at work ", phrase.Count(s.Busy(), "thread")) + strings.Join(parts, ", ")
}

// GateWords say what it does.
func GateWords(s *symptoms.Symptoms) string {
	g := reading.Gate(s.Now)
	return phrase.Sprintf("a SemaphoreValve lets %d requests through at a time%s, and the others wait in it with a thread each", g.Value, SourceOf(g))
}
