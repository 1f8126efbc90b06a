package findings

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// peerFinding names the one address that most connections come from, where the
// connections are what is used up: a reverse proxy's pool, or a single client, is
// then the one to size.
func peerFinding(s *symptoms.Symptoms, v model.Verdict, add adder) {
	peer := topPeer(s.Now)
	if peer == nil || v.Cause != model.CauseMaxConnections && v.Cause != model.CauseKeepAliveIdle {
		return
	}
	accepted := s.Now.Connections.Accepted
	text := phrase.Sprintf("%d of the %d connections come from %s (%s)", peer.Connections, accepted, peer.Address,
		phrase.Percent(float64(peer.Connections)/float64(accepted)))
	if peer.Connections == accepted {
		text = phrase.Sprintf("All %d connections come from %s", accepted, peer.Address)
	}
	add("one_peer", model.SeverityInfo, text+": one client, or a proxy in front of them.",
		"If it is a reverse proxy or load balancer, look at the connections it keeps open to this server (nginx: keepalive and its workers, HAProxy: maxconn and pool-max-conn): this server's limit has to be above their sum.")
}

// topPeer leaves out handfuls, of which one address is bound to have the most.
func topPeer(l *model.Listener) *model.PeerShare {
	if l.Connections == nil || l.Connections.Partial || l.Connections.Accepted < 8 {
		return nil
	}
	return l.Connections.TopPeer
}
