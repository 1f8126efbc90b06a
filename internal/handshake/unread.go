package handshake

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
)

// Lag is how long a packet can be in a block that the kernel has not handed over to a Tap: the
// time of a block twice, and a timer that is late. A Report is of that long ago.
const Lag = 250 * time.Millisecond

// While packets that leave are not read, a client is known to have been let in by what it
// sends itself: its FIN, or a RST within its connection. Of the others the kernel is asked.
const (
	// unreadMargin is how long before that a SYN may have come whose SYN-ACK was not read.
	unreadMargin = 10 * time.Millisecond
	// unreadPatience is when the kernel is asked about a client that has sent nothing
	// since: by then it has repeated a SYN-ACK that was not answered.
	unreadPatience = synAckTimeout + slack
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

// unread is the latest time in which packets that leave were not read.
type unread struct {
	on       bool
	from, to time.Duration
	moved    kernel.Counters // since the latest Count up to which they were calm; RSTs that no client accounts for
	since    time.Duration   // when that Count ended
	until    time.Duration   // when the one after it began
	calmTo   time.Duration   // when the counters were last read, and had not moved; without end if not on
	calm     bool            // moved has not at all
	due      bool            // what is open since then has yet to be settled
	doubt    bool            // the counters are calm and a client is not
	distrust bool            // of the counters, or of what the kernel is asked
}

func (u *unread) at(at time.Duration) bool {
	return at >= u.from-unreadMargin && (u.on || u.from < u.to && at <= u.to)
}

// StopOutgoing says that packets which leave are not observed from now on, nor those that
// come from the ports by the loopback.
func (t *Tracker) StopOutgoing(at time.Duration) {
	t.unread = unread{on: true, from: at, calmTo: at}
}

// Calm says that the counters had not moved when they were read, then.
func (t *Tracker) Calm(at time.Duration) { t.unread.calmTo = at }

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
	t.unread = unread{
		from: t.unread.from, to: at, calmTo: math.MaxInt64,
		moved: moved, since: base.Ended, until: now.Began, calm: moved.Calm(), due: true,
	}
	if moved.Cookies > 0 {
		t.proofs.cookies.Mark(base.Began, now.Ended)
	}
}

// observedReset takes in a RST that the counters include, and that was read.
func (u *unread) observedReset(at time.Duration) {
	if u.due && at > u.to && at <= u.until && u.moved.Resets > 0 {
		u.moved.Resets--
	}
}

// Doubtful reports whether outgoing packets should be observed again, whatever the
// counters show.
func (t *Tracker) Doubtful() bool { return t.unread.doubt }

// Settled reports whether it is known what became of all clients of the time when
// outgoing packets were not observed.
func (t *Tracker) Settled() bool {
	return !t.unread.on && (t.unread.to == 0 || t.now >= t.unread.to+unreadPatience+slack)
}

// Distrust reports whether a client was not answered that no counter knows of:
// netfilter drops some, or the kernel is asked for other addresses than it uses.
func (t *Tracker) Distrust() bool { return t.unread.distrust }

// Trust forgets it.
func (t *Tracker) Trust() { t.unread.distrust = false }

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
		if a.has(answered) && a.first > t.unread.since && a.first <= t.unread.to {
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
	more := t.unread.moved.Opened - min(letIn, t.unread.moved.Opened)
	t.unread.moved.Opened = more
	earlier := make(map[uint16]uint64) // by endpoint
	for _, o := range others {
		a := t.table.at(o.i)
		killed := t.unread.moved.Killed > 0 && (o.met != kernel.NoSocket || earlier[a.endpoint] < more)
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
	if !t.unread.on || t.latest == none || t.latest >= t.table.used {
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
	case t.unread.on && !a.has(missing):
		a.signs |= missing
		return at + missingPatience
	case t.unread.on: // the counters have yet to be read
		t.unread.doubt = true
		return at + doubtPatience
	}
	t.unread.distrust = t.unread.distrust || t.unread.calm
	patience := a.patience()
	if a.replaced() {
		patience = 0
	}
	switch t.unread.fate(e, a, met, killed) {
	case fateDropped:
		a.signs &^= whileUnread
		t.ignored(a)
		return lastSYN + patience
	case fateCookie:
		a.suppose()
		return lastSYN + unreadPatience
	case fateLetIn:
		if quiet := lastSYN + unreadPatience; at < quiet {
			return quiet // else it repeats its SYN
		}
		t.unread.moved.Opened--
		t.unread.moved.Resets--
		a.suppose()
		a.signs |= answered | closed
		a.enter(a.entry(), false)
		return at
	case fateRefused:
		t.unread.moved.Resets--
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

// fate is what may have happened to a client without a connection whose answer was not
// read.
type fate uint8

const (
	fateUnknown fate = iota
	fateDropped      // its SYN was dropped
	fateCookie       // its SYN was dropped, or answered with a cookie
	fateRefused
	fateLetIn // the server ended its connection, and sent a RST after its FIN
)

// fate follows from what the kernel has, and from what the counters of that time have
// moved by. moved.Resets are those that no client accounts for, as moved.Opened once all are settled.
func (u *unread) fate(e *endpoint, a *attempt, met kernel.Socket, killed bool) fate {
	moved := &u.moved
	switch {
	case moved.Resets > 0 && met == kernel.NoSocket && (!e.letIn || e.trusted && moved.Drops == 0 && !killed):
		return fateRefused
	case !e.trusted && e.letIn:
		return fateUnknown // it may have a connection, by other addresses
	case moved.Resets > 0 && (e.letIn && (met == kernel.NoSocket || killed) || moved.Aborted > 0):
		return fateUnknown // it may have been let in and reset
	case !u.due && u.closedUnread(a, met):
		return fateLetIn
	case moved.Cookies > 0:
		return fateCookie
	}
	return fateDropped
}

// closedUnread reports whether an attempt's connection was one that the server closed with bytes that it had not read,
// behind a FIN: that RST is none of those that end an established connection (EstabResets). Nothing was dropped, more
// were let in than is known of, and the client repeats no SYN.
func (u *unread) closedUnread(a *attempt, met kernel.Socket) bool {
	m := &u.moved
	return met == kernel.OnlyListener && a.syns == 1 && m.Opened > 0 && m.Resets > 0 && m.Drops == 0 && m.Cookies == 0 && m.Killed == 0
}
