package watch

import "github.com/tcpdiag/tcpdiag/internal/model"

// tally is how many packets a place had dropped at the latest sample, by its own
// count and by its namespace's of those that no socket accounts for.
type tally struct{ own, unattributed uint64 }

// since is how many have come since the snapshot before. A counter that starts again
// has dropped nothing. What no socket accounts for counts as long as the losses
// say that it can only be this listener's.
func (t *tally) since(snap *model.Snapshot, id model.ListenerID, totals *model.Totals, lost *model.Losses) uint64 {
	before := *t
	*t = tally{droppedSince(totals), max(before.unattributed, unattributed(snap, id.NetNS))}
	n := t.own - min(before.own, t.own)
	if lost != nil {
		n += min(t.unattributed-before.unattributed, lost.Unattributed)
	}
	return n
}

// droppedSince is an address's running total since tcpdiag started.
func droppedSince(t *model.Totals) uint64 {
	sum := t.Pending
	for _, n := range t.Dropped {
		sum += n
	}
	return sum
}

// unattributed is a namespace's running total since tcpdiag started; 0 when it
// could not be read.
func unattributed(snap *model.Snapshot, netns uint64) uint64 {
	for i := range snap.NetNS {
		if snap.NetNS[i].ID == netns {
			return snap.NetNS[i].Unattributed
		}
	}
	return 0
}
