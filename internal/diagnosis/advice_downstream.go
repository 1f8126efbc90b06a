package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// peerName is a peer's address, and what it is called.
func peerName(p *model.Peer) string {
	if p.Name == "" {
		return p.Address.String()
	}
	if p.ByPort {
		return p.Address.String() + " (" + p.Name + ", by its port)"
	}
	return p.Address.String() + " (" + p.Name + ")"
}

// threadsInVain says what more threads would do.
func (j *judge) threadsInVain() string {
	w := &j.waits
	if w.cause == model.CauseConnectionPool {
		return phrase.Sprintf("More threads would not help: they would wait for one of the same %s, and %s.",
			phrase.Count(w.peer.Connections, "connection"), j.carries(w.peer.Connections))
	}
	s := phrase.Sprintf("More threads only move the wait to %s", peerName(w.peer))
	if t, ok := w.answerTime(); ok && !w.shared() && w.peer.Connecting <= w.peer.InFlight {
		return s + phrase.Sprintf(": at about %s an answer it takes %s at a time to serve %s a second, and it is served faster only if it answers more at a time just as fast.",
			phrase.Seconds(t), phrase.Count(w.there, "request"), phrase.Decimal(float64(w.there)/t.Seconds()))
	}
	return s + "."
}

// carries is what that many connections carry, by Little's law.
func (j *judge) carries(connections int) string {
	w := &j.waits
	t, ok := w.answerTime()
	if !ok {
		return phrase.Sprintf("%s carry what they carry now", phrase.Count(connections, "connection"))
	}
	return phrase.Sprintf("at about %s an answer %s carry %s requests a second",
		phrase.Seconds(t), phrase.Count(connections, "connection"), phrase.Decimal(float64(connections)/t.Seconds()))
}
