package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Quiet says what was lost before, of a listener that loses nothing now: "Quiet now. 34
// clients were turned away, the last one 55 s ago: max_connections." It is empty where
// nothing was, and while it lasts. It is not quiet where clients wait.
func Quiet(l *model.Listener, now time.Time) string {
	r := l.Recent
	if r == nil || !r.Over || l.Verdict.Status >= model.StatusLosing {
		return ""
	}
	begin := "Quiet now. "
	if l.Verdict.Status > model.StatusOK {
		begin = "Before: "
	}
	var what string
	last := ", the last one "
	switch n := r.ClientsTurnedAway; {
	case n != nil && *n > 0:
		noun, _ := Callers(r.Proxies)
		what = phrase.Count(*n, noun) + " " + phrase.Verb(*n, "was", "were") + " turned away"
		if *n == 1 {
			last = ", "
		}
	case r.Packets > 0:
		what = phrase.Count(r.Packets, "packet") + " of clients " + phrase.Verb(r.Packets, "was", "were") + " dropped"
		if n != nil {
			what += ", of none is it known that it was turned away"
			last = "; the last packet "
		}
	default:
		what = phrase.Count(r.QueueResets, "queued connection") + " " + phrase.Verb(r.QueueResets, "was", "were") + " reset"
		last = ", "
	}
	cause := "."
	if r.Cause != model.CauseNone {
		cause = ": " + string(r.Cause) + "."
	}
	return begin + what + last + phrase.Seconds(max(0, now.Sub(r.Ended)).Round(time.Second)) + " ago" + cause + unheard(l)
}

// unheard says of how many it is not known yet whether they still wait: the kernel of one that
// has left repeats its request like that of one that waits.
func unheard(l *model.Listener) string {
	if l.Losses == nil || l.Losses.Clients == nil {
		return ""
	}
	open := l.Losses.Clients.Trying()
	if open <= 0 {
		return ""
	}
	return " " + phrase.Number(open) + " more " + phrase.Verb(open, "has", "have") + " had no answer, and may have left: that is known within two minutes."
}
