package sampler

import "net/netip"

// closedByClient remembers which of a listener's connections the client had
// closed at the last scan (CLOSE_WAIT), by its peer.
//
// A FIN alone does not tell a client that gave up from one that only
// half-closed and still reads its answer. What happens next does: a response
// to a client that is gone is answered with RST, and the kernel counts
// EstabResets; a half-closed connection ends in LAST_ACK. So those that
// vanished count as abandoned only as far as EstabResets moved.
type closedByClient struct{ peers map[netip.AddrPort]struct{} }

// next takes the peers of this scan and returns how many of the last one's
// are no longer there.
func (c *closedByClient) next(peers []netip.AddrPort) (vanished uint64) {
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
