package diagnosis

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// waitPhrase is what the busy threads wait for.
func (j *judge) waitPhrase() string {
	w := &j.waits
	if w.shared() {
		return phrase.Sprintf("requests that share %s to %s are in flight, the oldest for %s; how many threads wait for them cannot be seen",
			phrase.Count(w.peer.Connections, "connection"), peerName(w.peer), phrase.Seconds(w.peer.Oldest))
	}
	if w.virtual {
		return j.poolPhrase()
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

// poolPhrase is what requests on virtual threads wait for.
func (j *judge) poolPhrase() string {
	w, most, least, oldest := &j.waits, "", "", ""
	if w.peer.Unknown > 0 {
		most, least = "at most ", "at least "
	}
	if w.peer.Oldest > 0 {
		oldest = ", the oldest for " + phrase.Seconds(w.peer.Oldest)
	}
	return phrase.Sprintf("%s%d %s for %s%s, %s%d for one of its %s",
		most, w.there, phrase.Verb(w.there, "waits", "wait"), peerName(w.peer), oldest, least, w.without(), phrase.Count(w.peer.Connections, "connection"))
}

// waitNumbers are the threads', peerNumbers the peer's.
func (j *judge) waitNumbers() string {
	w := &j.waits
	if w.shared() {
		return j.waitPhrase()
	}
	if w.virtual {
		return phrase.Sprintf("%s %s in service on virtual threads", phrase.Count(w.busy, "request"), phrase.Verb(w.busy, "is", "are"))
	}
	s := phrase.Sprintf("of %s %d have a request in flight to %s", phrase.Count(w.busy, "busy thread"), w.there, peerName(w.peer))
	if w.others > 0 {
		s += phrase.Sprintf(", %d to others", w.others)
	}
	if w.running > 0 {
		s += phrase.Sprintf(", %d %s", w.running, phrase.Verb(w.running, "runs", "run"))
	}
	switch n := w.without(); {
	case n > 0 && reading.DownstreamOf(j.Now).Workers != nil:
		s += phrase.Sprintf(", %d %s for a lock, a pool or a timer", n, phrase.Verb(n, "waits", "wait"))
	case n > 0:
		s += phrase.Sprintf(", %d have none", n)
	}
	return s
}

// workerNumbers are what busy threads do that wait for no peer, where that was read.
func (j *judge) workerNumbers() string {
	d := reading.DownstreamOf(j.Now)
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
	if t, ok := j.waits.answerTime(); ok && !j.waits.shared() {
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
