package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// peerFinding names the one address that most connections come from, where the
// connections are what is used up: a reverse proxy's pool, or a single client, is
// then the one to size.
func (j *judge) peerFinding(v model.Verdict, add adder) {
	peer := topPeer(j.Now)
	if peer == nil || v.Cause != model.CauseMaxConnections && v.Cause != model.CauseKeepAliveIdle {
		return
	}
	accepted := j.Now.Connections.Accepted
	s := phrase.Sprintf("%d of the %d connections come from %s (%s)", peer.Connections, accepted, peer.Address,
		phrase.Percent(float64(peer.Connections)/float64(accepted)))
	if peer.Connections == accepted {
		s = phrase.Sprintf("All %d connections come from %s", accepted, peer.Address)
	}
	add("one_peer", model.SeverityInfo, s+": one client, or a proxy in front of them.",
		"If it is a reverse proxy or load balancer, look at the connections it keeps open to this server (nginx: keepalive and its workers, HAProxy: maxconn and pool-max-conn): this server's limit has to be above their sum.")
}

// topPeer leaves out handfuls, of which one address is bound to have the most.
func topPeer(l *model.Listener) *model.PeerShare {
	if l.Connections == nil || l.Connections.Partial || l.Connections.Accepted < 8 {
		return nil
	}
	return l.Connections.TopPeer
}
