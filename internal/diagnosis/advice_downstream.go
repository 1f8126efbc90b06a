package diagnosis

import (
	"strings"

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

// waitPhrase is what the busy threads wait for.
func (j *judge) waitPhrase() string {
	w := &j.waits
	if w.shared() {
		return phrase.Sprintf("requests that share %s to %s are in flight, the oldest for %s; how many threads wait for them cannot be seen",
			phrase.Count(w.peer.Connections, "connection"), peerName(w.peer), phrase.Seconds(w.peer.Oldest))
	}
	var parts []string
	if n := min(w.peer.Connecting, w.there); n > 0 {
		parts = append(parts, phrase.Sprintf("%d %s for a connection to %s, the longest for at least %s",
			n, phrase.Verb(n, "waits", "wait"), peerName(w.peer), phrase.Seconds(w.peer.OldestConnect)))
	}
	if n := w.there - min(w.peer.Connecting, w.there); n > 0 {
		parts = append(parts, phrase.Sprintf("%d %s for %s, the oldest for %s",
			n, phrase.Verb(n, "waits", "wait"), peerName(w.peer), phrase.Seconds(w.peer.Oldest)))
	}
	if n := w.without(); n > 0 && w.cause == model.CauseConnectionPool {
		parts = append(parts, phrase.Sprintf("%d %s for one of its %s", n, phrase.Verb(n, "waits", "wait"), phrase.Count(w.peer.Connections, "connection")))
	}
	if w.running > 0 {
		parts = append(parts, phrase.Sprintf("%d %s", w.running, phrase.Verb(w.running, "runs", "run")))
	}
	return strings.Join(parts, ", ")
}

// waitNumbers are the threads', peerNumbers the peer's.
func (j *judge) waitNumbers() string {
	w := &j.waits
	s := phrase.Sprintf("of %s %d have a request in flight to %s", phrase.Count(w.busy, "busy thread"), w.there, peerName(w.peer))
	if w.others > 0 {
		s += phrase.Sprintf(", %d to others", w.others)
	}
	if w.running > 0 {
		s += phrase.Sprintf(", %d %s", w.running, phrase.Verb(w.running, "runs", "run"))
	}
	switch n := w.without(); {
	case n > 0 && downstreamOf(j.Now).Workers != nil:
		s += phrase.Sprintf(", %d %s for a lock, a pool or a timer", n, phrase.Verb(n, "waits", "wait"))
	case n > 0:
		s += phrase.Sprintf(", %d have none", n)
	}
	return s
}

// workerNumbers are what busy threads do that wait for no peer, where that was read.
func (j *judge) workerNumbers() string {
	d := downstreamOf(j.Now)
	if !j.threadsFull || d == nil || d.Workers == nil {
		return ""
	}
	s := ""
	if n := d.Locked(j.Now); n > 0 {
		s += phrase.Sprintf(", %d of them %s for a lock, a pool or a timer", n, phrase.Verb(n, "waits", "wait"))
	}
	if n := d.Workers.Running; n > 0 {
		s += phrase.Sprintf(", %d %s", n, phrase.Verb(n, "runs", "run"))
	}
	return s
}

func (j *judge) peerNumbers() string {
	p := j.waits.peer
	s := phrase.Sprintf("%d of %s in flight", p.InFlight, phrase.Count(p.Connections, "connection"))
	if p.Unknown > 0 {
		s += phrase.Sprintf(", %d may be", p.Unknown)
	}
	if p.Connecting > 0 {
		s += phrase.Sprintf(", %d without an answer to their SYN", p.Connecting)
	}
	if p.AllInFlight != nil {
		s += phrase.Sprintf(", all of them in %s of the readings of the last minute", phrase.Percent(*p.AllInFlight))
	}
	if t, ok := j.waits.answerTime(); ok {
		s += phrase.Sprintf("; about %s an answer", phrase.Seconds(t))
	}
	if p.Background != nil && *p.Background > 0 {
		s += phrase.Sprintf("; %d are in flight at rest, too, and not counted", *p.Background)
	}
	if p.Pool != nil {
		s += phrase.Sprintf("; %s is %d (%s)", p.Pool.Setting, p.Pool.Size.Value, p.Pool.Size.Origin())
	}
	return s
}
