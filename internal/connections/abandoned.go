package connections

import (
	"net/netip"
	"slices"

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
func (c *ClosedByClient) Next(peers []netip.AddrPort) (vanished uint64) {
	if len(peers) == 0 && len(c.peers) == 0 {
		return 0
	}
	now := make(map[netip.AddrPort]struct{}, len(peers))
	for _, peer := range peers {
		now[peer] = struct{}{}
	}
	for peer := range c.peers {
		if _, still := now[peer]; !still {
			vanished++
		}
	}
	c.peers = now
	return vanished
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

// farewell: of a connection that was used nothing but that may be left.
func farewell(s *sockdiag.Socket) bool {
	return s.State == sockdiag.CloseWait && s.Inode != 0 && s.HasInfo && !nothingSent(&s.Info) && s.RecvQ > 1 && s.RecvQ <= 1+closeNotify
}

// Unanswered are the peers that closed before they had an answer, by what the protocol shows.
func (f *Found) Unanswered(connector *model.Connector) []netip.AddrPort {
	if connector == nil || !connector.TLS || len(f.farewells) == 0 {
		return f.Closed
	}
	return slices.DeleteFunc(slices.Clone(f.Closed), func(peer netip.AddrPort) bool { return slices.Contains(f.farewells, peer) })
}
