package losses

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Window is what happened in a namespace from the window's first checkpoint to
// the latest tick.
type Window struct {
	At           time.Time     // of the latest checkpoint
	Interval     time.Duration // from the first to it; 0 with one
	Counters     model.Counters
	Delta        model.Counters // nil with one checkpoint
	Unattributed uint64         // since the start
}

// Window is of the latest tick for what the fast loop reads, of the latest
// checkpoint for the other counters. The books must be open.
func (b *Books) Window() Window {
	first, last := b.history.first(), b.history.last()
	w := Window{At: last.At, Interval: last.At.Sub(first.At), Counters: b.present(last), Unattributed: b.unattributed}
	if len(b.history.past) > 1 {
		w.Delta = w.Counters.Sub(first.counters.unpack())
	}
	return w
}

// present are the counters of a checkpoint with the newer ones in their place.
func (b *Books) present(last Checkpoint) model.Counters {
	now := last.counters.unpack()
	for name, value := range map[string]uint64{
		"ListenDrops": b.counts.ListenDrops, "ListenOverflows": b.counts.ListenOverflows,
		"TCPReqQFullDrop": b.counts.ReqQFullDrop, "TCPReqQFullDoCookies": b.counts.ReqQFullDoCookies,
		"SyncookiesRecv": b.counts.SyncookiesRecv,
	} {
		if _, ok := now[name]; ok { // this kernel has it
			now[name] = value
		}
	}
	return now
}

// Moved is how far a counter moved between the two latest checkpoints.
func (b *Books) Moved(name string) uint64 {
	n := len(b.history.past)
	if n < 2 {
		return 0
	}
	return b.history.past[n-1].counters.unpack().Sub(b.history.past[n-2].counters.unpack())[name]
}

// Losses are an account's in the window, nil with one checkpoint. sole says that
// no other listener of the namespace is watched.
func (b *Books) Losses(a *Account, sole bool) *model.Losses {
	if len(b.history.past) < 2 {
		return nil
	}
	return b.lost(a, b.history.past, sole, true)
}

// lost are those after the first of some checkpoints, the latest ones.
func (b *Books) lost(a *Account, past []Checkpoint, sole, late bool) *model.Losses {
	first := past[0]
	out := a.ledger.lost(first.Number, late)
	if out.DroppedPackets > 0 {
		out.Burst = min(max(a.ledger.burst(past), a.ledger.recent()), out.DroppedPackets)
	}
	if sole && b.solelyOf(a, first) {
		out.Unattributed = b.unattributed - first.Unattributed
		out.DroppedPackets += out.Unattributed
	}
	return out
}

// Lately is what an account lost in the last span, to the first checkpoint before it:
// without the packets of clients that were turned away before. It is nil where the window
// is not longer.
func (b *Books) Lately(a *Account, sole bool, now time.Time, span time.Duration) *model.Lately {
	past := b.history.past
	if len(past) < 2 || now.Sub(past[0].At) <= span {
		return nil
	}
	from := 0
	for from+1 < len(past) && now.Sub(past[from+1].At) >= span {
		from++
	}
	out := &model.Lately{Span: span, Losses: *b.lost(a, past[from:], sole, false)}
	out.Delta = b.present(b.history.last()).Sub(past[from].counters.unpack())
	if a.blamed.Before(now.Add(-span)) { // the checkpoint lies before the span
		out.Losses.By, out.Losses.DroppedPackets, out.Losses.Burst, out.Losses.Unattributed = nil, 0, 0, 0
	}
	return out
}

// solelyOf says that what could not be attributed can only be this account's: no
// other socket of the namespace counted a drop, and its own did, or its own queue
// was full. A listener that nobody has seen may have opened and closed, and have
// dropped them.
func (b *Books) solelyOf(a *Account, first Checkpoint) bool {
	return first.Unwatched == b.unwatched && a.blamed.After(first.At)
}

// recent is what was dropped since the latest mark.
func (l *ledger) recent() uint64 {
	n := l.packets()
	if len(l.marks) > 0 {
		n -= min(n, l.marks[len(l.marks)-1].packets())
	}
	return n
}

// Spans reports whether there is a window: more than one checkpoint.
func (b *Books) Spans() bool { return len(b.history.past) > 1 }
