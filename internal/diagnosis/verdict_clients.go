package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// clients are those whose handshakes were followed lately, nil where they were not, or where
// nobody is behind them.
func (j *judge) clients() *model.Clients {
	c := j.losses().Clients
	if c == nil || c.Flood != nil || c.PacketsLost > 0 {
		return nil
	}
	return c
}

// gaveUp are the clients whose SYNs nothing answered.
func (j *judge) gaveUp() uint64 {
	if c := j.clients(); c != nil && j.Now.Listening() {
		return c.Outcomes[model.ClientGaveUp]
	}
	return 0
}

// stillTry are the clients whose SYNs nothing has answered so far, in two snapshots: a listener with room
// answers at once, and one without counts what it drops.
func (j *judge) stillTry() uint64 {
	c := j.clients()
	if c == nil || !j.Now.Listening() || c.Waiting == 0 || j.Before == nil || j.droppedLately() || j.wasFull() {
		return 0
	}
	if was := j.Before.Losses; was == nil || was.Clients == nil || was.Clients.Waiting == 0 {
		return 0
	}
	return uint64(c.Waiting)
}

func (j *judge) wasFull() bool {
	q := j.Now.AcceptQueue
	return q == nil || q.Full() || q.Peak != nil && *q.Peak >= q.Capacity()
}

// nobodyTried is for how long no client has tried to connect, while handshakes were followed;
// 0 where one has, or that is not known.
func (j *judge) nobodyTried() time.Duration {
	if j.Now.Losses == nil || j.clients() == nil || !j.Now.Listening() {
		return 0
	}
	c := j.Now.Losses.Clients
	if c == nil || c.Begun > 0 || c.Untracked > 0 || c.Waiting+c.Settling+c.Stalling > 0 || c.Outcomes != [model.NumClientOutcomes]uint64{} {
		return 0
	}
	return c.Observed
}

// nobodyIn: no connection is held, and none waits.
func (j *judge) nobodyIn() bool {
	n, known := reading.Held(j.Now)
	return known && n == 0 && reading.Queued(j.Now) == 0
}

// ofBefore: all clients that ended lately are those of a trouble before. It may take minutes until that is
// known of one: its kernel repeats its packets when it has left.
func (j *judge) ofBefore(c *model.Clients) bool {
	others := c.Answers.Answered
	for o, n := range c.Outcomes {
		if model.ClientOutcome(o) != model.ClientStalled {
			others += n
		}
	}
	return j.Now.Recent != nil && others == 0
}

// stalledClients are those that believed to be connected and left without having been let in.
func (j *judge) stalledClients() uint64 {
	if c := j.clients(); c != nil && j.Now.Listening() && !j.ofBefore(c) {
		return c.Outcomes[model.ClientStalled]
	}
	return 0
}

// unanswered are the clients that were let in and had no answer, of those that ended; 0 of 0 where
// that is not known.
func (j *judge) unanswered() (n, ended uint64) {
	if c := j.clients(); c != nil && c.Answers.Known && j.Now.Listening() && !j.ofBefore(c) {
		return c.Answers.Unanswered, c.Answers.Unanswered + c.Answers.Answered
	}
	return 0, 0
}

// refused are those that were refused on the listener's port.
func (j *judge) refused() uint64 {
	if c := j.clients(); c != nil && j.Now.Listening() {
		return c.Outcomes[model.ClientRefused]
	}
	return 0
}

// rejected: clients were refused at an address that was listened on all the time.
func (j *judge) rejected() bool {
	return j.refused() > 0 && j.Closed == nil && j.Before != nil && j.Before.Inode == j.Now.Inode &&
		j.Now.Recent == nil && covers(j.Now, j.clients())
}

// lostInFront: more clients have no answer than twice the packets that the listener dropped, each
// of which was one client's, and the youngest of them began when it had dropped the last: most are
// lost in front of it.
func (j *judge) lostInFront() bool {
	c, n := j.clients(), j.losses().DroppedPackets
	return c != nil && n > 0 && c.AfterDrops && j.Now.Listening() && !reading.QueueFull(j.Now) &&
		c.Outcomes[model.ClientGaveUp]+uint64(max(c.Waiting, 0)) > 2*n
}

// droppedLately: a client that gave up may have lost its packets a minute ago. One that began
// after the last packet was dropped has not.
func (j *judge) droppedLately() bool {
	lost := j.Now.Losses
	return lost == nil || lost.DroppedPackets+lost.Unattributed > 0 || j.losses().DroppedPackets+j.losses().Unattributed > 0 ||
		j.Now.Recent != nil && (lost.Clients == nil || !lost.Clients.AfterDrops)
}

// covers reports whether a listener takes connections to the address at which the latest
// client was refused; true where that is not known.
func covers(l *model.Listener, c *model.Clients) bool {
	if c == nil || !c.RefusedAt.IsValid() {
		return true
	}
	asked, has := c.RefusedAt.Addr().Unmap(), l.ID.Address.Addr()
	switch {
	case !has.IsUnspecified():
		return asked == has
	case has.Is4():
		return asked.Is4()
	}
	return true // [::] takes IPv4 too, unless IPV6_V6ONLY is set, which is not seen
}

// closedUnread: a fifth of the connections that came were closed with bytes that nobody had
// read, by one end or the other (tcp_close, LINUX_MIB_TCPABORTONCLOSE).
func (j *judge) closedUnread() bool {
	n := j.Delta["TCPAbortOnClose"]
	return j.Now.Listening() && n >= closedUnreadLeast && 5*n >= j.Delta["PassiveOpens"]
}

// closedUnreadLeast is of how many of them that is said.
const closedUnreadLeast = 5

func (j *judge) resetByServer() uint64 {
	if c := j.clients(); c != nil && j.Now.Listening() {
		return c.Outcomes[model.ClientReset]
	}
	return 0
}
