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

// adviseDownstream: no limit of Tomcat's makes the peer answer sooner.
func (j *judge) adviseDownstream() string {
	w := &j.waits
	if w.peer.Connecting > w.peer.InFlight {
		return phrase.Sentences(
			phrase.Sprintf("Find out why %s does not answer a connection: it is down, its own accept queue is full, or a firewall drops the packets.", peerName(w.peer)),
			"Set a connect timeout on the client, so that a thread is not held for longer than its own caller waits.",
			j.threadsInVain())
	}
	return phrase.Sentences(
		phrase.Sprintf("Look at %s: what it is asked, and what it waits for. A timeout on the client, below that of the callers here, frees the threads of those that have given up.", peerName(w.peer)),
		j.threadsInVain())
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

// advisePool: as many connections as threads use it. Whether the peer can handle that
// is not known.
func (j *judge) advisePool() string {
	w := &j.waits
	to := w.there + w.without()
	name, from := "the pool of connections to "+peerName(w.peer), w.peer.Connections
	if p := w.peer.Pool; p != nil {
		name, from = p.Setting, p.Size.Value
	}
	if w.virtual {
		return phrase.Sprintf("Raise %s from %d if %s answers more at a time as fast: %s. Or shorten what is asked there: the other requests wait for one of its connections.",
			name, from, peerName(w.peer), j.carries(from))
	}
	return phrase.Sentences(
		phrase.Sprintf("Raise %s from %d to %d, one connection for each of the threads that want one: %s, %d carry up to %s times as many if %s answers %d at a time as fast as %d. Or shorten what is asked there.",
			name, from, to, j.carries(from), to, phrase.Decimal(float64(to)/float64(max(from, 1))), peerName(w.peer), to, from),
		j.threadsInVain())
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
