package predict

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// kept are clients that keep their connections while they want nothing: how many are inside
// follows from their number, and no request has to be simulated.
type kept struct {
	inside, outside int // accepted, and in front of that
	lost            bool
}

// countKept counts them where idle connections take all places, and no thread is waited for.
func countKept(l *model.Listener) (*kept, bool) {
	v, n, q := &l.Verdict, l.Connections, l.AcceptQueue
	if n == nil || v.Cause != model.CauseKeepAliveIdle || q == nil || l.Losses == nil || n.Subset > 0 || l.Members > 1 || over(l) {
		return nil, false
	}
	for _, c := range v.Chain {
		if c == model.CauseMaxThreads {
			return nil, false
		}
	}
	k := &kept{inside: n.Accepted, outside: q.Length, lost: l.Losses.DroppedPackets > 0}
	if c := l.Losses.Clients; c != nil {
		if c.PacketsLost > 0 || c.Untracked > 0 || c.Flood != nil {
			return nil, false
		}
		k.outside += c.Waiting + c.Stalling
		k.lost = k.lost || c.TurnedAway() > 0
	}
	return k, k.inside > 0 && k.outside > 0
}

// effect is of a limit of the connections alone: one of the queue lets nobody further in.
func (k *kept) effect(limit string, to int) string {
	all := k.inside + k.outside
	if limit != "max_connections" {
		return ""
	}
	who := phrase.Number(all) + " clients"
	if k.lost { // who was turned away may come again, or not
		who += " seen at once"
	}
	then := "all " + who + " are inside"
	if to < all {
		then = phrase.Number(to) + " of " + who + " are inside"
	}
	return "with " + phrase.Count(to, "connection") + " " + then + "; now " + phrase.Number(k.inside) + " are, and " + phrase.Number(k.outside) + " wait outside"
}
