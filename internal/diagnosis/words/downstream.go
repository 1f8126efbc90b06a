package words

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Wait is what the busy threads wait for.
func Wait(s *symptoms.Symptoms) string {
	w := &s.Waits
	if w.Shared() {
		return phrase.Sprintf("requests that share %s to %s are in flight, the oldest for %s; how many threads wait for them cannot be seen",
			phrase.Count(w.Peer.Connections, "connection"), WaitPeer(s), phrase.Seconds(w.Peer.Oldest))
	}
	if w.Virtual {
		return Pool(s)
	}
	var parts []string
	if n := min(w.Peer.Connecting, w.There); n > 0 {
		parts = append(parts, phrase.Sprintf("%d %s for a connection to %s, the longest for at least %s",
			n, phrase.Verb(n, "waits", "wait"), WaitPeer(s), phrase.Seconds(w.Peer.OldestConnect)))
	}
	if n := w.There - min(w.Peer.Connecting, w.There); n > 0 {
		parts = append(parts, phrase.Sprintf("%d %s for %s, the oldest for %s",
			n, phrase.Verb(n, "waits", "wait"), WaitPeer(s), phrase.Seconds(w.Peer.Oldest)))
	}
	if n := w.Without(); n > 0 && w.Cause == model.CauseConnectionPool {
		parts = append(parts, phrase.Sprintf("%d %s for one of %s %s", n, phrase.Verb(n, "waits", "wait"), its(s), phrase.Count(w.Peer.Connections, "connection")))
	}
	if w.Running > 0 {
		parts = append(parts, phrase.Sprintf("%d %s", w.Running, phrase.Verb(w.Running, "runs", "run")))
	}
	return strings.Join(parts, ", ")
}

// WaitOf is the same, with how many threads are busy where they are counted.
func WaitOf(s *symptoms.Symptoms) string {
	if w := &s.Waits; !w.Virtual && !w.Shared() {
		return phrase.Sprintf("of %s %s", phrase.Count(w.Busy, "busy thread"), Wait(s))
	}
	return Wait(s)
}

// Pool is what requests on virtual threads wait for.
func Pool(s *symptoms.Symptoms) string {
	w, most, least, oldest := &s.Waits, "", "", ""
	if w.Peer.Unknown > 0 {
		most, least = "at most ", "at least "
	}
	if w.Peer.Oldest > 0 {
		oldest = ", the oldest for " + phrase.Seconds(w.Peer.Oldest)
	}
	return phrase.Sprintf("%s%d %s for %s%s, %s%d for one of %s %s",
		most, w.There, phrase.Verb(w.There, "waits", "wait"), WaitPeer(s), oldest, least, w.Without(), its(s), phrase.Count(w.Peer.Connections, "connection"))
}

// WaitNumbers are the threads', peerNumbers the peer's.
func WaitNumbers(s *symptoms.Symptoms) string {
	w := &s.Waits
	if w.Shared() {
		return Wait(s)
	}
	if w.Virtual {
		return phrase.Sprintf("%s %s in service on virtual threads", phrase.Count(w.Busy, "request"), phrase.Verb(w.Busy, "is", "are"))
	}
	text := phrase.Sprintf("of %s %d have a request in flight to %s", phrase.Count(w.Busy, "busy thread"), w.There, WaitPeer(s))
	if w.Others > 0 {
		text += phrase.Sprintf(", %d to others", w.Others)
	}
	if w.Running > 0 {
		text += phrase.Sprintf(", %d %s", w.Running, phrase.Verb(w.Running, "runs", "run"))
	}
	switch n := w.Without(); {
	case n > 0 && reading.DownstreamOf(s.Now).Workers != nil:
		text += phrase.Sprintf(", %d %s for a lock, a pool or a timer", n, phrase.Verb(n, "waits", "wait"))
	case n > 0:
		text += phrase.Sprintf(", %d have none", n)
	}
	return text
}

// Inside is what threads wait for in the process itself: what a client has yet to send looks like a timer.
func Inside(l *model.Listener) string {
	if d := reading.DownstreamOf(l); d != nil && d.Workers != nil && 2*d.Workers.Timed >= d.Workers.Parked {
		return "a lock, a pool, a timer or the rest of a request"
	}
	return "a lock, a pool or a timer"
}

// ForClients says that n threads wait for their clients.
func ForClients(n int, sends bool) string {
	what := "send the rest of their requests"
	if sends {
		what = "take their responses"
	}
	return phrase.Sprintf("%s for clients that do not %s", phrase.Verb(n, "waits", "wait"), what)
}

// workerNumbers are what busy threads do that wait for no peer, where that was read.
func workerNumbers(s *symptoms.Symptoms) string {
	d := reading.DownstreamOf(s.Now)
	if !s.ThreadsFull || d == nil || d.Workers == nil {
		return ""
	}
	text := ""
	if n := d.Locked(s.Now); n > 0 {
		text += phrase.Sprintf(", %d of them %s for %s", n, phrase.Verb(n, "waits", "wait"), Inside(s.Now))
	}
	if n := d.ForClients(s.Now); n > 0 {
		text += phrase.Sprintf(", %d %s", n, ForClients(n, true))
	}
	if n := d.Workers.Running; n > 0 {
		text += phrase.Sprintf(", %d %s", n, phrase.Verb(n, "runs", "run"))
	}
	return text
}

// PeerNumbers are those of the peer that the threads wait for.
func PeerNumbers(s *symptoms.Symptoms) string {
	p := s.Waits.Peer
	text := phrase.Sprintf("%d of %s in flight", p.InFlight, phrase.Count(p.Connections, "connection"))
	if p.Unknown > 0 {
		text += phrase.Sprintf(", %d may be", p.Unknown)
	}
	if p.Connecting > 0 {
		text += phrase.Sprintf(", %d without an answer to their SYN", p.Connecting)
	}
	if p.AllInFlight != nil {
		text += phrase.Sprintf(", all of them in %s of the readings of the last minute", phrase.Percent(*p.AllInFlight))
	}
	if t, ok := s.Waits.AnswerTime(); ok && !s.Waits.Shared() {
		text += phrase.Sprintf("; about %s an answer", phrase.Seconds(t))
	}
	if p.Background != nil && *p.Background > 0 {
		text += phrase.Sprintf("; %d are in flight at rest, too, and not counted", *p.Background)
	}
	if p.Pool != nil {
		text += phrase.Sprintf("; %s is %d (%s)", p.Pool.Setting, p.Pool.Size.Value, p.Pool.Size.Origin())
	}
	return text
}

// AgainstPool is what speaks against a pool that is short, "" where nothing does.
func AgainstPool(s *symptoms.Symptoms) string {
	w := &s.Waits
	switch w.Against {
	case symptoms.OthersUsedUp:
		return "threads wait for another peer as well, all of whose connections are in use, and which of the two has too few cannot be seen"
	case symptoms.OneConnection:
		return "whether the others wait for that connection, or for a lock that is held over the call, cannot be seen"
	case symptoms.PoolHasRoom:
		return phrase.Sprintf("the pool may have %d, so that the others wait for something else, or no connection is added", w.Peer.Pool.Size.Value)
	case symptoms.OthersIdle:
		return phrase.Sprintf("meanwhile the %s of another pool, to %s, are all open and hardly used, as where handlers keep one while they wait for %s: the others may wait for these (%s is %d)",
			phrase.Count(w.IdlePool.Connections, "connection"), PeerName(w.IdlePool), WaitPeer(s), w.IdlePool.Pool.Setting, w.IdlePool.Pool.Size.Value)
	case symptoms.OneMoment:
		return "whether they stay in use, or one of them is idle all the time, has not been seen"
	case symptoms.Untimed:
		return phrase.Sprintf("no thread that serves requests is at it, and most wait without a timeout, as nobody does for a connection of %s: other threads use these", w.Peer.Pool.Library)
	}
	return ""
}

// Unconnected names the servers of the configuration to which no connection is open.
func Unconnected(l *model.Listener) string {
	d := reading.DownstreamOf(l)
	if d == nil {
		return ""
	}
	names := make([]string, 0, len(d.Unconnected))
	for _, b := range d.Unconnected {
		switch {
		case len(b.At) > 0:
			names = append(names, phrase.Sprintf("%s (%s)", b.At[0], b.Name))
		case len(b.Ports) > 0:
			names = append(names, phrase.Sprintf("%s (port %v)", b.Name, b.Ports[0]))
		}
	}
	return strings.Join(names, " or ")
}

// SilentPeer says how many connects a peer has not answered.
func SilentPeer(s *symptoms.Symptoms) string {
	p := s.SilentPeer()
	return phrase.Sprintf("%s has not answered %s, the first for at least %s", PeerName(p), phrase.Count(p.Connecting, "connect"), phrase.Seconds(p.OldestConnect))
}

// WaitPeer names the peer that the threads wait for; where it is a cluster, its hosts.
func WaitPeer(s *symptoms.Symptoms) string {
	w := &s.Waits
	if len(w.Also) == 0 {
		return PeerName(w.Peer)
	}
	names := []string{PeerName(w.Peer)}
	for _, at := range w.Also[:min(len(w.Also), mostHosts)] {
		names = append(names, at.String())
	}
	if n := len(w.Also) - mostHosts; n > 0 {
		names = append(names, phrase.Count(n, "other host"))
	}
	n := len(names) - 1
	return strings.Join(names[:n], ", ") + " and " + names[n]
}

// Answers is the same with its verb.
func Answers(s *symptoms.Symptoms) string {
	return WaitPeer(s) + " " + phrase.Verb(1+len(s.Waits.Also), "answers", "answer")
}

func its(s *symptoms.Symptoms) string { return phrase.Verb(1+len(s.Waits.Also), "its", "their") }

// mostHosts is how many of a cluster are named beside the first.
const mostHosts = 3

// PeerName is a peer's address, and what it is called.
func PeerName(p *model.Peer) string {
	if p.Name == "" {
		return p.Address.String()
	}
	if p.ByPort {
		return p.Address.String() + " (" + p.Name + ", by its port)"
	}
	return p.Address.String() + " (" + p.Name + ")"
}

// DNSPort is where name servers answer.
const DNSPort = 53

// BlockedIn says where n threads are, with its verb: "wait for an answer over UDP from 10.0.0.2:53, a name server".
func BlockedIn(w *model.Workers, n int) string {
	call := w.Call()
	if !call.OnSocket() {
		return phrase.Sprintf("%s in %s on a file or a pipe", phrase.Verb(n, "is", "are"), call)
	}
	text := phrase.Sprintf("%s for an answer %s", phrase.Verb(n, "waits", "wait"), call)
	if call != model.UDPReceive || !w.UDPPeer.IsValid() {
		return text
	}
	text += " from " + w.UDPPeer.String()
	if w.UDPPeer.Port() == DNSPort {
		text += ", a name server"
	}
	return text
}
