package connections

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// ClosedByClient remembers which of a listener's connections the client had
// closed at the last scan (CLOSE_WAIT) while a request was waiting or in
// service, by its peer.
//
// A FIN alone does not distinguish a client that gave up from one that only
// half-closed and still reads its answer. What happens next does: a response
// to a client that has closed is answered with RST, and the kernel counts
// EstabResets; a half-closed connection ends in LAST_ACK. So those that
// disappeared count as abandoned only up to the increase of EstabResets. It is the
// namespace's counter: a reset of any other connection moves it, too.
type ClosedByClient struct{ peers map[netip.AddrPort]struct{} }

// Next takes the peers of this scan and returns how many of the last one's
// are no longer there.
func (c *ClosedByClient) Next(peers []netip.AddrPort) (closed uint64) {
	if len(peers) == 0 && len(c.peers) == 0 {
		return 0
	}
	now := make(map[netip.AddrPort]struct{}, len(peers))
	for _, peer := range peers {
		now[peer] = struct{}{}
	}
	for peer := range c.peers {
		if _, still := now[peer]; !still {
			closed++
		}
	}
	c.peers = now
	return closed
}

// unanswered reports whether the client of a CLOSE_WAIT socket left a request
// behind. A keep-alive connection that was idle, or a probe that never sent
// anything, gave up nothing.
func unanswered(s *sockdiag.Socket) bool {
	switch {
	case s.RecvQ > 1: // the FIN itself counts as one byte
		return true
	case s.Inode == 0:
		return false
	case s.SendQ > 0 || !s.HasInfo:
		return true
	}
	// The FIN is an ACK, and a byte received, but no data (tcp_data_queue).
	i := s.Info
	i.BytesReceived -= min(i.BytesReceived, 1)
	i.LastAckRecv = i.LastDataRecv
	return byAges(&i) == model.InService
}

// closeNotify is the longest record in which a client of TLS 1.2 or 1.3 says that it closes
// (RFC 8446, 6.1; 31 bytes with AES-GCM of TLS 1.2). No request is that short when it is encrypted.
const closeNotify = 31

// closesWithin is how soon behind it the FIN comes of a client that has sent nothing else: it closes in one go.
const closesWithin = 200 * time.Millisecond

// farewell reports whether all that is left of a connection that was used, or all that was read of it last, may be a close_notify.
func farewell(s *sockdiag.Socket) bool {
	switch i := &s.Info; {
	case s.State != sockdiag.CloseWait || s.Inode == 0 || !s.HasInfo || nothingSent(i):
		return false
	case s.RecvQ > 1:
		return s.RecvQ <= 1+closeNotify
	default: // the FIN is an ACK, and no data (tcp_data_queue)
		return s.SendQ == 0 && i.LastDataRecv-i.LastAckRecv < closesWithin
	}
}

// leftFor is for how long a connection is in CLOSE_WAIT at least until the server is said to have its request still.
const leftFor = 500 * time.Millisecond

// left: the client has closed an accepted connection some time ago, at its side at least, and the server does not (see
// model.Connections.Left). The FIN is an ACK; whatever comes behind it makes the time too short.
func left(s *sockdiag.Socket) bool {
	i := &s.Info
	return s.State == sockdiag.CloseWait && s.Inode != 0 && s.HasInfo && i.LastAckRecv >= leftFor && !leftStream(i)
}

// leftStream: several small pieces were sent for longer than a second after the request, or before data that came with the end,
// as a close_notify does.
func leftStream(i *sockdiag.TCPInfo) bool {
	return manyPieces(i) && (i.LastDataRecv-i.LastDataSent >= streamFor || i.LastDataRecv-i.LastAckRecv < closesWithin)
}

// Unanswered are the peers that closed before they had an answer, by what the protocol shows.
func (f *Found) Unanswered(connector *model.Connector) []netip.AddrPort {
	if connector == nil || !connector.TLS || len(f.farewells) == 0 {
		return f.Closed
	}
	return slices.DeleteFunc(slices.Clone(f.Closed), func(peer netip.AddrPort) bool { return slices.Contains(f.farewells, peer) })
}

// closedLately is for how long requests whose clients have closed are followed: whether these had given up shows when the server
// answers. Connections that a server forgot to close stay for days.
const closedLately = 30 * time.Second

// givesUpLeast is how many of them it takes, and one of givesUpPart connections that are not idle must be, of the first givesUpOf
// of these: fewer are people who click again, whom a busy server has at any moment.
const givesUpLeast, givesUpPart, givesUpOf = 3, 5, 500

// GivesUp reports whether many clients have closed lately before they had an answer.
func (f *Found) GivesUp(connector *model.Connector) bool {
	n := f.lately
	if connector != nil && connector.TLS {
		n -= f.bid
	}
	return n >= givesUpLeast && givesUpPart*n >= min(f.Counts.Accepted-f.Counts.Phases[model.Idle], givesUpOf)
}

// Resets follows the namespace's EstabResets from walk to walk: as many requests
// at most were abandoned by clients that did not wait for the answer.
type Resets struct {
	started bool
	at      uint64 // EstabResets after the latest walk
	during  uint64 // of those, while it lasted and not yet used
	queued  uint64 // clients reset in the queues of listeners that closed, so far
}

// Next takes EstabResets as it was before and after a walk, and how many clients
// have been reset in the accept queues so far (EstabResets has those, too). It
// returns how many abandoned requests the resets since the walk before account
// for. A socket that was reset during the walk before may still have been
// in it: what was not used of those resets counts again.
func (r *Resets) Next(before, after, queued uint64) (most uint64) {
	if r.started {
		moved := after - min(after, r.at)
		ours := queued - min(queued, r.queued)
		most = moved - min(moved, ours) + r.during
	}
	*r = Resets{started: true, at: after, during: after - min(after, max(before, r.at)), queued: queued}
	return most
}

// Use says how many were used of the latest answer: first of those that can not
// count again.
func (r *Resets) Use(most, used uint64) {
	r.during = min(r.during, most-min(most, used))
}

// SlotsMissing says that clients wait although Tomcat seems to have room. Where
// not all connections were counted it may not.
func SlotsMissing(l *model.Listener) bool {
	c := l.Connector
	return l.AcceptQueue != nil && l.AcceptQueue.Length > 0 &&
		l.Connections != nil && !l.Connections.Partial && c != nil && c.MaxConnections != nil &&
		c.MaxConnections.Value > 0 && l.Connections.Accepted < c.MaxConnections.Value
}

// freeSlots is how many connections a Tomcat can hold that are not seen: what
// its limit leaves, or its own count where Actuator reports it.
func freeSlots(l *model.Listener) int {
	c := l.Connector
	limit := c.MaxConnections.Value
	if n := c.CurrentConnections; n != nil && *n < limit && *n > l.Connections.Accepted {
		limit = *n - 1 // below the limit it reads one too many
	}
	return limit - l.Connections.Accepted
}

// ShareReset divides the descriptors of a process whose socket the kernel has
// forgotten over those of its listeners that they may explain, each at most as many as it
// has room for. A descriptor does not show which port its socket had; connections of
// the process's other ports and outgoing ones that the peer reset may still be
// among them. The answer is by the index of the listeners.
func ShareReset(count int, listeners []*model.Listener) []int {
	rooms := make([]uint64, len(listeners))
	for i, l := range listeners {
		rooms[i] = uint64(freeSlots(l))
	}
	out := make([]int, len(listeners))
	for i, n := range losses.Allot(uint64(count), rooms, cmp.Compare) {
		out[i] = int(n)
	}
	return out
}
