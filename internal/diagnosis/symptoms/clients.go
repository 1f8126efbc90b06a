package symptoms

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Clients are those whose handshakes were followed lately, nil where they were not, or where
// nobody is behind them.
func (s *Symptoms) Clients() *model.Clients {
	c := s.Losses().Clients
	if c == nil || c.Flood != nil || c.PacketsLost > 0 {
		return nil
	}
	return c
}

// GaveUp are the clients whose SYNs nothing answered, and those whom no answer reached where they are more than a
// network loses.
func (s *Symptoms) GaveUp() uint64 {
	c := s.Clients()
	switch {
	case c == nil || !s.Now.Listening():
		return 0
	case s.Unreached() == 0:
		return c.Outcomes[model.ClientGaveUp] - min(c.Outcomes[model.ClientGaveUp], c.GaveUpUnreached)
	}
	return c.Outcomes[model.ClientGaveUp]
}

// StillTry are the clients whose SYNs nothing has answered so far, in two snapshots: a listener with room
// answers at once, and one without counts what it drops. With them are those whom no answer reaches.
func (s *Symptoms) StillTry() (n uint64) {
	if s.Unreached() > 0 {
		n = s.repeatInVain()
	}
	c, was := s.Clients(), s.clientsBefore()
	n += s.LocalTrying()
	if c == nil || !s.Now.Listening() || c.Waiting == 0 || was == nil || was.Waiting == 0 || s.DroppedLately() || s.WasFull() {
		return n
	}
	return n + uint64(c.Waiting)
}

// LocalTrying are those of the listener's own network namespace, as their sockets show it, where no handshakes are followed and
// the listener has dropped nothing since their latest SYN. A half-open connection may be one of theirs, whom the SYN-ACK does not reach.
func (s *Symptoms) LocalTrying() uint64 {
	c := s.Now.Connections
	if c == nil || c.Partial || s.Losses().Clients != nil || !s.Now.Listening() || s.DroppedLately() || s.WasFull() || s.whole < c.Age+model.TriedWithin {
		return 0
	}
	n := c.LocalTrying
	if b := s.Now.SynBacklog; b != nil {
		n -= b.Length
	}
	return uint64(max(n, 0))
}

// LocalRefused are those of the listener's own network namespace that a reset has refused at an address of the listener, where no
// handshakes are followed: their sockets show it as they end. Only where they are far more than the resets that
// TCP itself has sent there (OutRsts), which a rule's are not: before the port had a listener, TCP refused them. Where the
// listener is of one device alone TCP refuses whoever comes in by another.
func (s *Symptoms) LocalRefused() (n uint64) {
	if s.Losses().Clients != nil || !s.Now.Listening() || s.Closed != nil || s.Before == nil {
		return 0
	}
	for name, refused := range s.Delta {
		at, ok := strings.CutPrefix(name, model.RefusedPrefix)
		if !ok {
			continue
		}
		if a, err := netip.ParseAddrPort(at); err == nil && a.Port() == s.Now.Port && covers(s.Now, a.Addr()) {
			n += refused
		}
	}
	if sent, known := s.Delta["OutRsts"]; !known || n < leftLeast || n <= 2*sent && s.Now.ID.Device == "" {
		return 0
	}
	return n
}

// clientsBefore are those of the snapshot before, nil where they are not known.
func (s *Symptoms) clientsBefore() *model.Clients {
	if s.Before == nil || s.Before.Losses == nil {
		return nil
	}
	return s.Before.Losses.Clients
}

// repeatInVain are the clients that repeat a SYN which was answered, in two snapshots: one that is far away may at one
// moment.
func (s *Symptoms) repeatInVain() uint64 {
	if c, was := s.Clients(), s.clientsBefore(); c != nil && was != nil && was.Unreached > 0 {
		return uint64(c.Unreached)
	}
	return 0
}

// Unreached are the clients whom the server's SYN-ACKs do not reach, where they are more than a network loses: of those
// that have ended a twentieth, or with those that still try as many as a SYN-ACK has reached.
func (s *Symptoms) Unreached() uint64 {
	c := s.Clients()
	if c == nil || !s.Now.Listening() {
		return 0
	}
	o := &c.Outcomes
	left, reached := c.GaveUpUnreached, o[model.ClientConnected]+o[model.ClientDelayed]+o[model.ClientStalled]+o[model.ClientReset]
	switch n := left + s.repeatInVain(); {
	case n < leftLeast && reached > 0:
		return 0
	case n >= reached, left >= leftLeast && unansweredPart*left >= left+reached:
		return n
	}
	return 0
}

// MostlyUnreached means that most of those that are lost in front of the listener are such.
func (s *Symptoms) MostlyUnreached() bool {
	n := s.Unreached()
	return n > 0 && 2*n >= s.InFront()
}

// WasFull reports whether the accept queue is or was full.
func (s *Symptoms) WasFull() bool {
	q := s.Now.AcceptQueue
	return q == nil || q.Full() || q.Peak != nil && *q.Peak >= q.Capacity()
}

// NobodyTried is for how long no client has tried to connect, while handshakes were followed;
// 0 where one has, or that is not known.
func (s *Symptoms) NobodyTried() time.Duration {
	if s.Now.Losses == nil || s.Clients() == nil || !s.Now.Listening() {
		return 0
	}
	c := s.Now.Losses.Clients
	if c == nil || c.Begun > 0 || c.Untracked > 0 || c.Trying()+c.Settling > 0 || c.Outcomes != [model.NumClientOutcomes]uint64{} {
		return 0
	}
	return c.Observed
}

// NobodyCame is for how long handshakes were followed in the interval, and nobody began to connect: what
// was dropped then is of clients that had come before, and may have left. 0 where somebody did, or that
// is not known.
func (s *Symptoms) NobodyCame() time.Duration {
	c := s.Clients()
	if c == nil || c.Begun > 0 || c.Untracked > 0 || c.Waiting > 0 || c.Observed < leastFollowed {
		return 0
	}
	others := c.Outcomes
	others[model.ClientStalled] = 0 // known minutes later of one that has left
	if others != [model.NumClientOutcomes]uint64{} {
		return 0
	}
	return c.Observed
}

// leastFollowed is for how long that must be so.
const leastFollowed = time.Second / 2

// CameBefore are requests in service that may be of clients that came before handshakes were followed, where the oldest
// is: it is not known of those whether they get an answer, nor of others that have left meanwhile.
func (s *Symptoms) CameBefore() (n int, oldest, followed time.Duration) {
	c := s.Now.Connections
	if s.Now.Losses == nil || s.Now.Losses.Clients == nil || c == nil || !s.Now.Listening() {
		return 0, 0, 0
	}
	followed = s.Now.Losses.Clients.Observed
	if followed >= s.whole || c.Phases[model.InService] == 0 || c.InServiceFor <= followed {
		return 0, 0, 0
	}
	return c.Phases[model.InService], c.InServiceFor, followed
}

// NoneAnswered is of how many clients that were let in none has had an answer yet, and for how long
// these have been followed; 0 where somebody has, or that is not known. An agent has seen those before.
func (s *Symptoms) NoneAnswered() (n uint64, followed time.Duration) {
	c := s.Clients()
	if c == nil || s.Now.Lately != nil || !s.Now.Listening() || !reading.Asked(s.Now) {
		return 0, 0
	}
	return c.NoneAnswered(), c.Observed
}

// LongUnanswered means that they are several, and have waited for longer than most requests take.
func (s *Symptoms) LongUnanswered() bool {
	n, followed := s.NoneAnswered()
	return n >= leftLeast && followed >= unansweredFrom
}

// unansweredFrom is for how long clients are followed at least until that is said.
const unansweredFrom = 5 * time.Second

// NobodyIn means that no connection is held, and none waits.
func (s *Symptoms) NobodyIn() bool { return s.HoldsNobody() && reading.Queued(s.Now) == 0 }

// HoldsNobody means that no connection is held: whatever maxConnections is, it is not reached, unless clients have reset all.
func (s *Symptoms) HoldsNobody() bool {
	n, known := reading.SlotsInUse(s.Now)
	return known && n == 0 && !reading.Inexact(s.Now)
}

// ofBefore: all clients that ended lately are those of a trouble before. It may take minutes until that is
// known of one: its kernel repeats its packets when it has left.
func (s *Symptoms) ofBefore(c *model.Clients) bool {
	others := c.Answers.Answered
	for o, n := range c.Outcomes {
		if model.ClientOutcome(o) != model.ClientStalled {
			others += n
		}
	}
	return s.Now.Recent != nil && others == 0
}

// stalledClients are those that believed to be connected and left without having been let in.
func (s *Symptoms) stalledClients() uint64 {
	if c := s.Clients(); c != nil && s.Now.Listening() && !s.ofBefore(c) {
		return c.Outcomes[model.ClientStalled]
	}
	return 0
}

// Unanswered are the clients that were let in and had no answer, of those that ended, or, where it is not known who had one, that were
// let in; 0 of 0 where that is not known. Whose connections the server has ended are among them where it would have answered: some
// protocols have messages without an answer, as PostgreSQL's CancelRequest, a connection of its own.
func (s *Symptoms) Unanswered() (n, ended uint64) {
	n, ended = s.allUnanswered()
	if n > 0 && !s.wouldAnswer() {
		closed := min(n, s.Clients().Answers.Closed)
		n, ended = n-closed, ended-min(ended, closed)
	}
	return n, ended
}

// wouldAnswer means that the server answers whoever asks, by its protocol, or sends away all that come: nobody has had a byte lately, nor
// is anybody connected who had one, and few are.
func (s *Symptoms) wouldAnswer() bool {
	if s.Now.Connector.KnownHTTP() {
		return true
	}
	a := &s.Clients().Answers
	return a.Answered == 0 && a.Closed >= leftLeast && unansweredPart*uint64(s.Open()) <= a.Closed && s.Both(func(l *model.Listener) bool {
		return l.Connections == nil || l.Connections.Answered() == 0
	})
}

// allUnanswered are the same with all whose connections the server has ended.
func (s *Symptoms) allUnanswered() (n, ended uint64) {
	c := s.Clients()
	switch {
	case c == nil || !s.Now.Listening() || s.ofBefore(c):
		return 0, 0
	case c.Answers.Known:
		return c.Answers.Unanswered, c.Answers.Unanswered + c.Answers.Answered
	case c.Answers.Unanswered > 0:
		return c.Answers.Unanswered, max(c.Answers.Unanswered, c.Outcomes[model.ClientConnected]+c.Outcomes[model.ClientDelayed])
	}
	return 0, 0
}

// TurnedOut is how many clients' connections the server has ended without a byte of an answer, where they are those of ClosedUnanswered,
// and it would have answered: else that may be all that these clients wanted.
func (s *Symptoms) TurnedOut() uint64 {
	if n := s.ClosedUnanswered(); n > 0 && s.wouldAnswer() {
		return n
	}
	return 0
}

// ClosedUnanswered is how many clients' connections the server has ended without a byte of an answer, where they
// are a twentieth of those that ended, and most of those that had none; 0 where they are not. Where its protocol is not known to be HTTP,
// connections are kept, and few end: it is a twentieth of those that came and of those that are connected.
func (s *Symptoms) ClosedUnanswered() uint64 {
	n, ended := s.allUnanswered()
	if n == 0 {
		return 0
	}
	closed := s.Clients().Answers.Closed
	if !s.Now.Connector.KnownHTTP() {
		ended = max(ended, s.LetInLately(), uint64(s.Open()))
	}
	if closed < leftLeast || unansweredPart*closed < ended || 2*closed < n {
		return 0
	}
	return closed
}

// ClosesUnanswered means that most of those that the server has turned away it has not reset.
func (s *Symptoms) ClosesUnanswered() bool { return s.ClosedUnanswered() > s.ResetMany() }

// LeaveInside means that many of those that were let in leave before their answer, a third of those that ended: it takes
// longer than their patience, and room for more is room for more of these. Where they wait for threads, see
// reading.GivenUp.
func (s *Symptoms) LeaveInside() bool {
	n, ended := s.allUnanswered()
	if n > 0 {
		n -= min(n, s.Clients().Answers.Closed)
	}
	return n >= leaveInsideLeast && 3*n >= ended && s.longInService()
}

// ClosedInside means that the clients of as many as half of the connections have closed while their requests were in
// service, now or a moment ago. Those of now may still wait for the answer, where few are known to leave without.
func (s *Symptoms) ClosedInside() bool {
	slots, known := reading.SlotsInUse(s.Now)
	n := reading.LeftInService(s.Now)
	if s.longInService() { // else they had left while they waited in the accept queue
		n += int(s.Losses().AbandonedRequests)
	}
	return known && !s.mostlyAnswered() && n >= leaveInsideLeast && 2*n >= slots
}

// QueueOfLeft means that the clients of as many as half of those in the accept queue have closed: it is longer than their
// patience, and who is let in of these is served for nothing.
func (s *Symptoms) QueueOfLeft() bool {
	q := s.Now.AcceptQueue
	return q != nil && !s.mostlyAnswered() && q.Left >= leaveInsideLeast && 2*q.Left >= q.Length
}

// ClosedInQueue is the same where more room may not have them served in time.
func (s *Symptoms) ClosedInQueue() bool { return s.QueueOfLeft() && s.longInService() }

// longInService means that a request is in service for a quarter of the time at least that connections wait in the
// accept queue. Where it is much shorter it is the queue alone that is longer than its clients' patience, and more of
// them inside are served in time even if they have to wait for one another. A moment in which none is in service shows
// nothing, where most connections were used just before.
func (s *Symptoms) longInService() bool {
	q, c := s.Now.AcceptQueue, s.Now.Connections
	return q == nil || q.OldestWait == nil || c == nil || 4*c.InServiceFor >= *q.OldestWait ||
		c.Phases[model.InService] == 0 && c.MostlyRecent()
}

// WaitsUnseen means that it is not known whether those that are let in have their answer, and that their requests may
// wait for one another: on virtual threads, whom no limit holds back, or as most connections are idle just now, and
// were used a moment ago, while others wait to be let in.
func (s *Symptoms) WaitsUnseen() bool {
	if c := s.Clients(); c != nil && c.Answers.Known {
		return false
	}
	c := s.Now.Connections
	slots, known := reading.SlotsInUse(s.Now)
	return reading.VirtualThreads(s.Now) || known && c != nil && model.MostlyIdle(c.Phases[model.Idle], slots) && c.MostlyRecent() && s.Overflowed() > 0
}

// mostlyAnswered: who closes has only ended its side.
func (s *Symptoms) mostlyAnswered() bool {
	n, ended := s.Unanswered()
	return ended > 0 && s.Clients().Answers.Known && 5*n < ended
}

// leaveInsideLeast is of how many of them the one or the other is said.
const leaveInsideLeast = 5

// Refused are those that were refused on the listener's port.
func (s *Symptoms) Refused() uint64 {
	if c := s.Clients(); c != nil && s.Now.Listening() {
		return c.Outcomes[model.ClientRefused]
	}
	return s.LocalRefused()
}

// Rejected means that clients were refused at an address that was listened on all the time: something in between
// does that, since a listener refuses nobody however full it is.
func (s *Symptoms) Rejected() bool { return s.rejected() && s.Now.Recent == nil || s.MostlyRejected() }

// MostlyRejected means that this became of most clients that failed, whatever became of the others: they are far more than the
// packets that the listener dropped, each of which was one client's.
func (s *Symptoms) MostlyRejected() bool {
	n := s.Refused()
	others := s.GaveUp() + s.StillTry() + s.stalledClients() + s.ResetByServer()
	return s.rejected() && n >= leftLeast && n > 2*(s.Losses().DroppedPackets+s.Losses().Unattributed) && n >= others
}

// RefusedBy says whether TCP itself has sent the resets that refused them (OutRsts), which it has not of those of a firewall's
// rule. Neither is known where it has sent many others.
func (s *Symptoms) RefusedBy() (tcp, rule bool) {
	n, known := s.Delta["OutRsts"]
	for _, other := range []uint64{s.Delta["TCPAbortOnClose"], s.Delta["TCPAbortOnData"], s.ResetByServer()} {
		n -= min(n, other)
	}
	refused := s.Refused()
	return known && 2*n >= refused && n <= 2*refused, known && 2*n < refused
}

func (s *Symptoms) rejected() bool {
	c := s.Clients()
	return s.Refused() > 0 && (c == nil || !c.RefusedBefore) && s.Closed == nil && s.Before != nil && Covers(s.Now, c) && !s.ByOtherDevice()
}

// ByOtherDevice means that clients come in by another device than the one that the listener is bound to (SO_BINDTODEVICE): it has
// the address that they ask, and TCP itself refuses them (inet_sk_bound_dev_eq).
func (s *Symptoms) ByOtherDevice() bool {
	tcp, _ := s.RefusedBy()
	return s.Now.ID.Device != "" && s.Refused() > 0 && tcp && Covers(s.Now, s.Clients())
}

// RefusedEarlier means that nine tenths of those who were turned away were refused before it listened: as one server ends and another
// begins, a few are let in, and reset.
func (s *Symptoms) RefusedEarlier() bool {
	c := s.Clients()
	return c != nil && c.RefusedBefore && s.Refused() > 0 && 10*s.Refused() >= 9*c.TurnedAway() && s.Losses().DroppedPackets == 0
}

// LostInFront means that the youngest clients that nothing has answered began when the listener had dropped its last packet,
// and that those that still try, or those that began lately, are more than twice the packets that it dropped lately, each
// of which was one client's: most are lost in front of it. Who gave up lately may have begun, and repeated its last SYN, before that.
func (s *Symptoms) LostInFront() bool {
	c, n := s.Clients(), s.Losses().DroppedPackets
	return c != nil && n > 0 && c.AfterDrops && s.Now.Listening() && !reading.QueueFull(s.Now) &&
		max(s.unansweredOfBegun(), uint64(max(c.Waiting, 0))) > 2*max(n, s.latelyDropped())
}

// unansweredOfBegun is how many of the clients that began lately at the listener nothing has answered, at least.
func (s *Symptoms) unansweredOfBegun() uint64 {
	c := s.Clients()
	answered := uint64(max(0, c.Settling+c.Stalling)) + c.Withdrawn
	for o, n := range c.Outcomes {
		if o := model.ClientOutcome(o); o != model.ClientGaveUp && o != model.ClientRefused { // the refused did not begin there
			answered += n
		}
	}
	return c.Begun - min(c.Begun, answered)
}

// latelyDropped are all packets that listeners of the network namespace dropped lately: of what is dropped after a trouble
// some is taken for what its clients repeat, but may be others'.
func (s *Symptoms) latelyDropped() uint64 {
	if s.Now.Lately == nil {
		return 0
	}
	return s.Now.Lately.Delta["ListenDrops"]
}

// InFront are the clients that may be lost in front of the listener.
func (s *Symptoms) InFront() uint64 {
	if s.LostInFront() {
		return s.GaveUp() + uint64(max(s.Clients().Waiting, 0))
	}
	return s.GaveUp() + s.StillTry()
}

// DroppedLately reports whether packets were dropped, now or before: a client that gave up may
// have lost its packets a minute ago. One that began
// after the last packet was dropped has not.
func (s *Symptoms) DroppedLately() bool {
	lost := s.Now.Losses
	return lost == nil || lost.DroppedPackets+lost.Unattributed > 0 || s.Losses().DroppedPackets+s.Losses().Unattributed > 0 ||
		s.Now.Recent != nil && (lost.Clients == nil || !lost.Clients.AfterDrops)
}

// InVain is how many clients began lately that nothing has answered, while the listener dropped nothing: whatever
// it dropped before, they are lost in front of it. In a snapshot that is all clients, see DroppedLately. What is
// dropped after a trouble is taken for packets that its clients repeat, but may be theirs, unless they are more than twice
// as many.
func (s *Symptoms) InVain() uint64 {
	c := s.Clients()
	if c == nil || s.Now.Lately == nil || !s.Now.Listening() || !c.AfterDrops || s.Losses().DroppedPackets+s.Losses().Unattributed > 0 {
		return 0
	}
	if was := s.clientsBefore(); was == nil || was.Waiting == 0 {
		return 0 // what was dropped a moment ago may not be counted yet
	}
	n := s.unansweredOfBegun()
	if n < leftLeast || n <= 2*s.latelyDropped() {
		return 0
	}
	return n
}

// AddressMissing means that no packet is delivered to the listener's address, and that nobody was let in meanwhile, as
// where packets are marked and delivered all the same: in its network namespace, where clients are not followed.
func (s *Symptoms) AddressMissing() bool {
	letIn := s.Delta["PassiveOpens"]
	if c := s.Clients(); c != nil {
		letIn = c.LetIn
	}
	return s.Now.AddressMissing != nil && letIn == 0
}

// CutOff means that this is known to concern clients: those of connections that it holds, or that it held when it had
// its address. Of a standby the latter are another machine's by now.
func (s *Symptoms) CutOff() bool {
	if !s.AddressMissing() {
		return false
	}
	m := s.Now.AddressMissing
	return s.Open() > 0 || m.HadClients && !m.Standby
}

// Open are its connections, accepted or not.
func (s *Symptoms) Open() int {
	n, _ := reading.SlotsInUse(s.Now)
	return n + reading.Queued(s.Now)
}

// LetInLately are the clients that the listener has answered lately.
func (s *Symptoms) LetInLately() uint64 {
	c := s.Clients()
	if c == nil {
		return 0
	}
	o := &c.Outcomes
	return max(c.LetIn, o[model.ClientConnected]+o[model.ClientDelayed]+o[model.ClientStalled]+o[model.ClientReset])
}

// OthersGetIn means that clients are connected, or were let in since they are followed.
func (s *Symptoms) OthersGetIn() bool {
	if all := s.Now.Totals.Clients; all != nil && all.LetIn > 0 {
		return true
	}
	was, _ := reading.SlotsInUse(s.Before)
	return s.Open()+was > 0 || s.LetInLately() > 0
}

// Covers reports whether a listener takes connections to the address at which the latest
// client was refused; true where that is not known.
func Covers(l *model.Listener, c *model.Clients) bool {
	return c == nil || !c.RefusedAt.IsValid() || covers(l, c.RefusedAt.Addr().Unmap())
}

func covers(l *model.Listener, asked netip.Addr) bool {
	has := l.ID.Address.Addr()
	switch {
	case !has.IsUnspecified():
		return asked == has
	case has.Is4():
		return asked.Is4()
	}
	return true // [::] takes IPv4 too, unless IPV6_V6ONLY is set, which is not seen
}

// ResetMayHaveFilled means that clients reset as many connections meanwhile as seem to be free: the server holds each
// of these until it notices, and no walk of the sockets finds it.
func (s *Symptoms) ResetMayHaveFilled() bool {
	n := s.Delta["EstabResets"]
	slots, known := reading.SlotsInUse(s.Now)
	return n >= leftLeast && known && reading.ConnectionLimit(s.Now) == reading.LimitKnown && n+uint64(slots) >= uint64(s.Now.Connector.MaxConnections.Value)
}

// UnreadCloses are connections that were closed with bytes that nobody had read, but for those of clients on this machine that
// ended their TLS handshake: they may leave the rest of the server's answer.
func (s *Symptoms) UnreadCloses() uint64 {
	n := s.Delta["TCPAbortOnClose"]
	ended, _ := s.TLSEnded()
	return n - min(n, ended)
}

// ClosedUnread means that a fifth of the connections that came were closed with bytes that nobody had
// read, by one end or the other (tcp_close, LINUX_MIB_TCPABORTONCLOSE), and that they were this listener's.
func (s *Symptoms) ClosedUnread() bool {
	n := s.UnreadHere()
	return s.Now.Listening() && !s.unused() && n >= closedUnreadLeast && 5*n >= s.Delta["PassiveOpens"]
}

// UnreadHere are those of the network namespace's UnreadCloses that were the listener's: as many as RSTs of the server's own were seen to
// leave its port; all, where nobody has looked, and its process is known to have no connections of its own, which it may close like that.
func (s *Symptoms) UnreadHere() uint64 {
	if c := s.Clients(); c != nil {
		return min(s.UnreadCloses(), c.Aborted)
	}
	if p := s.Now.Process; p != nil && p.Downstream != nil && !p.Downstream.Partial && len(p.Downstream.Peers) == 0 && p.Downstream.Others == nil {
		return s.UnreadCloses()
	}
	return 0
}

// unused means that nobody is connected, and that nobody came while handshakes were followed: what the network namespace
// counts is of others then.
func (s *Symptoms) unused() bool { return s.NobodyIn() && s.NobodyCame() > 0 }

// ClosedByEither means that half of those connections at least had their other end on this machine, where it was
// reset in turn (EstabResets): which end has closed is not known then.
func (s *Symptoms) ClosedByEither() bool {
	return 2*s.Delta["EstabResets"] >= s.Delta["TCPAbortOnClose"]
}

// ClosedEarly are RSTs that were seen to leave the listener's port, and answered segments of connections which it had closed: a fifth of
// the connections that came at least; 0 where they are fewer, or not seen.
func (s *Symptoms) ClosedEarly() uint64 {
	c := s.Clients()
	if c == nil {
		return 0
	}
	n := min(s.lateSegments(), c.Late)
	if n < closedUnreadLeast || 5*n < s.Delta["PassiveOpens"] {
		return 0
	}
	return n
}

// LateUnknown are such RSTs where nobody has seen which port they left: the whole network namespace's.
func (s *Symptoms) LateUnknown() uint64 {
	if s.Clients() != nil {
		return 0
	}
	return s.lateSegments()
}

// lateSegments are RSTs of the network namespace that may have answered segments of connections which this listener had closed: a fifth of
// the connections that came at least, while others of those that were closed are still in the kernel's
// table, from which such a RST removes one (TCP_TW_RST). What has a RST of its own reason is not counted: a refused client, a port without a listener, a
// close with unread bytes or without lingering, an answer to a client that has left (its own kernel resets
// that, and counts it here where it is on this machine).
func (s *Symptoms) lateSegments() uint64 {
	n, known := s.Delta["OutRsts"]
	c := s.Now.Connections
	if !known || c == nil || !s.Now.Listening() {
		return 0
	}
	for _, other := range []uint64{s.Delta["TCPAbortOnClose"], s.Delta["TCPAbortOnData"], s.Delta["AttemptFails"], s.Refused(), s.ResetByServer(), s.leftBefore()} {
		n -= min(n, other)
	}
	if n < closedUnreadLeast || 5*n < s.Delta["PassiveOpens"] || s.Delta["PassiveOpens"] == 0 || 10*uint64(c.States["TIME_WAIT"]+c.States["FIN_WAIT2"]) < n {
		return 0
	}
	return n
}

// leftBefore is how many clients may have left before their answer: those of connections that are still
// there, and of others that have gone.
func (s *Symptoms) leftBefore() uint64 {
	n := reading.Phase(s.Now, model.ClientClosed)
	if s.Before != nil {
		n = max(n, reading.Phase(s.Before, model.ClientClosed))
	}
	return uint64(max(n, 0)) + s.Losses().AbandonedRequests
}

// closedUnreadLeast is of how many of them that is said.
const closedUnreadLeast = 5

// ResetInAnswer is how many clients the server has reset while part of its answer was on its way to them, where they are a
// twentieth of those that came; 0 where they are not.
func (s *Symptoms) ResetInAnswer() uint64 {
	c := s.Clients()
	if c == nil || !s.Now.Listening() || c.ResetInAnswer < leftLeast || unansweredPart*c.ResetInAnswer < c.LetIn {
		return 0
	}
	return c.ResetInAnswer
}

// Alerted is how many clients' TLS handshakes have failed, and of how many that sent something, where they are a fifth of
// these: the server's whole answer was as long as an alert.
func (s *Symptoms) Alerted() (n, of uint64) {
	c, k := s.Clients(), s.Now.Connector
	if c == nil || k == nil || !k.TLS || !s.Now.Listening() {
		return 0, 0
	}
	return ofTalking(c, c.Alerted)
}

// AsByAlert is the same of a server of which it is not known whether it speaks TLS.
func (s *Symptoms) AsByAlert() (n, of uint64) {
	c, k := s.Clients(), s.Now.Connector
	if c == nil || k != nil && k.TLS || reading.IsTomcat(s.Now) || !s.Now.Listening() {
		return 0, 0
	}
	return ofTalking(c, c.Alerted)
}

// TLSEnded is how many clients ended their TLS handshake when they had the server's answer, and of how many that sent something,
// where they are a fifth of these.
func (s *Symptoms) TLSEnded() (n, of uint64) {
	c := s.Clients()
	if c == nil || !s.Now.Listening() {
		return 0, 0
	}
	return ofTalking(c, c.TLSEnded)
}

// ofTalking is n, and of how many clients that sent something, where they are a fifth of these.
func ofTalking(c *model.Clients, n uint64) (part, of uint64) {
	of = max(c.LetIn-min(c.LetIn, c.Answers.Checks), n)
	if n < leftLeast || alertedPart*n < of {
		return 0, 0
	}
	return n, of
}

// TLSFails means that they are enough to be said.
func (s *Symptoms) TLSFails() bool {
	n, _ := s.TLSEnded()
	return n > 0
}

// OnPlainPort means that these clients ask for TLS where, by the settings, the server speaks none.
func (s *Symptoms) OnPlainPort() bool { return reading.IsTomcat(s.Now) && !s.Now.Connector.TLS }

// alertedPart: one of as many clients whose handshake fails is too many. Scanners of ports are fewer.
const alertedPart = 5

// OnlyAlerted means that this is what is seen, and no reset or end of a connection for another reason.
func (s *Symptoms) OnlyAlerted() bool {
	n, _ := s.Alerted()
	return n > 0 && s.ResetMany()+s.ClosedUnanswered() == 0 && !s.ClosedUnread() && s.ResetInAnswer() == 0
}

// Unheard is how many connected clients something in front of their sockets drops or rejects.
func (s *Symptoms) Unheard() uint64 {
	c := s.Clients()
	if c == nil || !s.Now.Listening() || c.Unheard < leftLeast {
		return 0
	}
	return c.Unheard
}

// OnlyInAnswer means that this is what is seen, and that no request bytes were left unread, which resets clients, too.
func (s *Symptoms) OnlyInAnswer() bool {
	return s.ResetMany()+s.ClosedUnanswered() == 0 && !s.ClosedUnread() && s.ResetInAnswer() > 0
}

// OnlyClosedEarly means that what is seen are requests that come too late, and nothing else.
func (s *Symptoms) OnlyClosedEarly() bool {
	return s.ResetMany()+s.ClosedUnanswered() == 0 && !s.ClosedUnread() && s.ResetInAnswer() == 0 && !s.OnlyAlerted() && s.ClosedEarly() > 0
}

// ResetMany is how many clients the server has reset, where they are not only a few strangers, as one that speaks another protocol, or
// whom a rule of the server's own rejects; 0 where they are. Those that a listener's close resets are no strangers.
func (s *Symptoms) ResetMany() uint64 {
	n, c := s.ResetByServer(), s.Clients()
	if n == 0 {
		return 0
	}
	was, _ := reading.SlotsInUse(s.Before)
	others, connected := s.LetInLately()-n, s.Open()+was > 0
	if !s.Now.Connector.KnownHTTP() { // of other protocols connections are kept, and few come
		others = max(others, uint64(s.Open()))
	}
	if !c.RefusedBefore && s.Closed == nil && !s.ResetByOverflow() && !s.tooMany(n, others, connected) {
		return 0
	}
	return n
}

// ResetByOverflow means that a full accept queue resets clients.
func (s *Symptoms) ResetByOverflow() bool {
	return s.Sysctl["tcp_abort_on_overflow"] == 1 && s.DroppedLately()
}

// tooMany: one of twenty that came, who are with the others, and three at least, unless others are connected and a stranger alone comes.
func (s *Symptoms) tooMany(n, others uint64, connected bool) bool {
	if s.Clients() == nil { // by the sockets of local clients, of which none is a stranger's
		return true
	}
	if n < leftLeast || n < strangersMost && connected && others == 0 && s.ofOneStranger() {
		return false
	}
	return unansweredPart*n >= n+others
}

// strangersMost is how often a stranger tries at most: who tries more often within a minute or two is a client that wants to get in.
const strangersMost = 10

// ofOneStranger means that all that were turned away lately are of one address, which is none of this machine's, and none from
// which most clients come, and are few there, too.
func (s *Symptoms) ofOneStranger() bool {
	c := s.Clients()
	if len(c.Losers) != 1 || c.Losers[0].Clients >= strangersMost {
		return false
	}
	a := c.Losers[0].Addr.Unmap()
	known := func(p model.ClientSource) bool { return p.Addr.Unmap() == a }
	return !a.IsLoopback() && a != c.RefusedAt.Addr().Unmap() && a != s.Now.ID.Address.Addr().Unmap() &&
		(c.Balancer == nil || !known(*c.Balancer)) && !slices.ContainsFunc(c.Proxies, known)
}

// ResetByServer is how many clients the server has reset.
func (s *Symptoms) ResetByServer() uint64 {
	if c := s.Clients(); c != nil && s.Now.Listening() {
		return c.Outcomes[model.ClientReset]
	}
	return 0
}
