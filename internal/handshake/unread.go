package handshake

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/timers"
)

// Lag is how long a packet can be in a block that the kernel has not handed over to a Tap: the
// time of a block twice, and a timer that is late. A Report is of that long ago.
const Lag = 250 * time.Millisecond

// While packets that leave are not read, a client is known to have been let in by what it
// sends itself: its FIN, or a RST within its connection. Of the others the kernel is asked.
const (
	// unreadPatience is when the kernel is asked about a client that has sent nothing
	// since: by then it has repeated a SYN-ACK that was not answered.
	unreadPatience = timers.First + timers.Slack
	// missingPatience is how long a client without a socket may have a FIN that has not
	// been read.
	missingPatience = Lag
	// doubtPatience is until the counters have been read that belong to a doubt.
	doubtPatience = time.Second / 2
	// settleMost bounds the questions at one time; about the other clients they are
	// asked when it is their time.
	settleMost = 1 << 14
	// maxUpload is what a client sends within its time.
	maxUpload = 1 << 31
)

// StopOutgoing says that packets which leave are not observed from now on, nor those that
// come from the ports by the loopback.
func (t *Tracker) StopOutgoing(at time.Duration) {
	t.unread = kernel.Unread{On: true, From: at, CalmTo: at}
}

// Unread is what is known of the time when packets that leave are not observed.
func (t *Tracker) Unread() *kernel.Unread { return &t.unread }

// LetIn reports whether all whose SYN came by then are known to have been let in. About the
// others the kernel is asked, when what they sent by then has been read.
func (t *Tracker) LetIn(by time.Duration) bool {
	all := true
	t.table.each(func(i int32) {
		if a := t.table.at(i); a.unread() && a.first <= by {
			all = false
			if !a.has(missing) {
				t.table.move(i, by)
			}
		}
	})
	return all
}

// ResetSince reports whether the server has refused or reset an open attempt since.
func (t *Tracker) ResetSince(at time.Duration) bool { return t.resetAt > 0 && t.resetAt >= at }

// ResumeOutgoing says that they are observed again. Up to base the counters were calm; now
// is after at.
func (t *Tracker) ResumeOutgoing(at time.Duration, base, now kernel.Count) {
	t.comeBack()
	moved := now.Sub(base.Counters)
	t.unread = kernel.Unread{
		From: t.unread.From, To: at, CalmTo: math.MaxInt64,
		Moved: moved, Since: base.Ended, Until: now.Began, Calm: moved.Calm(), Due: true,
	}
	if moved.Cookies > 0 {
		t.proofs.cookies.Mark(base.Began, now.Ended)
	}
}

// Settled reports whether it is known what became of all clients of the time when
// outgoing packets were not observed.
func (t *Tracker) Settled() bool {
	return !t.unread.On && (t.unread.To == 0 || t.now >= t.unread.To+unreadPatience+timers.Slack)
}

// other is a client whose SYN-ACK was not read, and that has no connection.
type other struct {
	i     int32
	first time.Duration
	met   kernel.Socket
	never bool // nobody was ever let in there
}

// settle asks what became of the clients whose SYN-ACK was not read. Those that have a
// socket come first: they show that the kernel has it by the addresses in the packets.
// Then come those that were refused for certain: each accounts for a RST.
func (t *Tracker) settle(at time.Duration) {
	var others []other
	asked, letIn := 0, uint64(0)
	t.table.each(func(i int32) {
		a := t.table.at(i)
		if deadline := a.undropped(); deadline > at {
			t.table.move(i, deadline)
		}
		if a.unread() && asked < settleMost {
			asked++
			if met := t.ask(a).Socket; met >= kernel.HalfOpenSocket && !a.replaced() {
				t.table.move(i, t.resolve(at, a, met, false))
			} else {
				others = append(others, other{i, a.first, met, false})
			}
		}
		if a.has(answered) && a.first > t.unread.Since && a.first <= t.unread.To {
			letIn++
		}
	})
	for i := range others {
		o := &others[i]
		o.never = o.met == kernel.NoSocket && !t.endpoints.of(t.table.at(o.i)).letIn
	}
	slices.SortFunc(others, func(a, b other) int {
		switch {
		case a.never && !b.never:
			return -1
		case b.never && !a.never:
			return 1
		}
		return cmp.Compare(a.first, b.first)
	})
	// More were let in, and killed: where nothing listens any more, before the others were
	// refused.
	more := t.unread.Moved.Opened - min(letIn, t.unread.Moved.Opened)
	t.unread.Moved.Opened = more
	earlier := make(map[uint16]uint64) // by endpoint
	for _, o := range others {
		a := t.table.at(o.i)
		killed := t.unread.Moved.Killed > 0 && (o.met != kernel.NoSocket || earlier[a.endpoint] < more)
		earlier[a.endpoint]++
		if deadline := t.resolve(at, a, o.met, killed); deadline != never {
			t.table.move(o.i, deadline)
		} else {
			t.forget(o.i)
		}
	}
}

// probe asks about the latest client, so that the kernel is seen to know a port's clients
// by the addresses in the packets before that matters.
func (t *Tracker) probe() {
	if !t.unread.On || t.latest == none || t.latest >= t.table.used {
		return
	}
	if a := t.table.at(t.latest); a.unread() && !t.endpoints.of(a).trusted {
		t.ask(a)
	}
	t.latest = none
}

// never is the deadline of an attempt of which nobody will know how it ended.
const never = time.Duration(-1)

// resolve takes in what the kernel has for a client whose SYN-ACK was not read, if one
// left, and says when to judge it. killed: it may have had a connection that was reset.
func (t *Tracker) resolve(at time.Duration, a *attempt, met kernel.Socket, killed bool) (deadline time.Duration) {
	e := t.endpoints.of(a)
	defer t.restage(a)
	lastSYN := a.first + ms(a.lastSYN)
	switch {
	case met >= kernel.HalfOpenSocket && a.replaced():
		return never // it may be the other's
	case met == kernel.Connection:
		a.suppose()
		a.signs |= answered
		a.enter(a.entry(), false)
		return lastSYN + unreadPatience
	case met == kernel.HalfOpenSocket:
		return a.supposeRepeated(at)
	case met == kernel.SocketUnknown:
		return never
	case t.unread.On && !a.has(missing):
		a.signs |= missing
		return at + missingPatience
	case t.unread.On: // the counters have yet to be read
		t.unread.Doubt = true
		return at + doubtPatience
	}
	t.unread.Distrust = t.unread.Distrust || t.unread.Calm
	patience := a.patience()
	if a.replaced() {
		patience = 0
	}
	switch t.unread.Fate(kernel.Case{Trusted: e.trusted, LetIn: e.letIn, Single: a.syns == 1, Met: met, Killed: killed}) {
	case kernel.FateDropped:
		a.signs &^= whileUnread
		t.ignored(a)
		return lastSYN + patience
	case kernel.FateCookie:
		a.suppose()
		return lastSYN + unreadPatience
	case kernel.FateLetIn:
		if quiet := lastSYN + unreadPatience; at < quiet {
			return quiet // else it repeats its SYN
		}
		t.unread.Moved.Opened--
		t.unread.Moved.Resets--
		a.suppose()
		a.signs |= answered | closed
		a.enter(a.entry(), false)
		return at
	case kernel.FateRefused:
		t.unread.Moved.Resets--
		a.signs = a.signs&^(whileUnread|owed) | refusal
		return lastSYN + patience
	}
	return never
}

// ignored counts the SYNs of an attempt before its latest, whose answer was not read: they were dropped. Who is answered
// repeats none.
func (t *Tracker) ignored(a *attempt) {
	for ; a.unknown > 0; a.unknown-- {
		a.signs |= ignored
		t.endpoints.of(a).account.Unanswered()
	}
}

// forget ends an attempt of which nobody knows how it ended.
func (t *Tracker) forget(i int32) {
	t.lose(t.table.at(i))
	t.table.remove(i)
}

func (t *Tracker) lose(a *attempt) {
	t.drop(a)
	t.endpoints.of(a).account.Untracked(1)
}
