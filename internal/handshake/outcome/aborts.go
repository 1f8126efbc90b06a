package outcome

import (
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// aborts are connections that the server ended by a RST of its own (tcp_send_active_reset): it follows all
// that was sent. What the client acknowledges afterwards is answered by another, which follows what it had acknowledged
// (tcp_v4_send_reset): where that is less, part of the answer was on its way, and nothing of it is sent again. Where there are too many,
// the oldest goes of the client's address that has most, so that no client's connections take the room of another's.
type aborts struct {
	list []abort // nil before the first
}

type abort struct {
	client packet.Addr
	port   uint16
	sent   uint32 // the sequence number behind all that was sent; 0: none, or it is not looked for any more
	at     time.Duration
	ofHost int // how many of the list are of the same client's address
}

const (
	mostAborts = 64
	// abortedFor is how long a client's acknowledgements may be on their way.
	abortedFor = 2 * time.Second
)

func (l *aborts) add(at time.Duration, s *packet.Segment) (added bool) {
	if l.list == nil {
		l.list = make([]abort, 0, mostAborts)
	}
	if l.find(s.Dst, s.DstPort) != nil { // it is the same packet on another device
		return false
	}
	n := abort{client: s.Dst, port: s.DstPort, sent: s.Seq, at: at, ofHost: 1}
	host := n.client.Host()
	for i := range l.list {
		if a := &l.list[i]; a.client.Host() == host {
			a.ofHost++
			n.ofHost = a.ofHost
		}
	}
	if len(l.list) < mostAborts {
		l.list = append(l.list, n)
		return true
	}
	surplus := l.surplus(at)
	host = surplus.client.Host()
	*surplus = n
	for i := range l.list {
		if a := &l.list[i]; a.client.Host() == host {
			a.ofHost--
		}
	}
	return true
}

// surplus is the one that makes room: one that is not looked for any more, else the oldest of the address that has most.
func (l *aborts) surplus(at time.Duration) *abort {
	out := &l.list[0]
	for i := range l.list {
		a := &l.list[i]
		if a.sent == 0 || at-a.at >= abortedFor {
			return a
		}
		if a.ofHost > out.ofHost || a.ofHost == out.ofHost && a.at < out.at {
			out = a
		}
	}
	return out
}

func (l *aborts) find(client packet.Addr, port uint16) *abort {
	for i := range l.list {
		if a := &l.list[i]; a.sent != 0 && a.port == port && a.client == client {
			return a
		}
	}
	return nil
}

// lately reports whether a client's connection was ended by one lately, whatever else is known of that.
func (l *aborts) lately(at time.Duration, client packet.Addr, port uint16) bool {
	return slices.ContainsFunc(l.list, func(a abort) bool { return a.port == port && a.client == client && at-a.at < abortedFor })
}

// ServerReset takes in a RST that the server sent, and counts the client if it cuts an answer off.
func (a *Account) ServerReset(at time.Duration, s *packet.Segment) {
	met := a.aborts.find(s.Dst, s.DstPort)
	if met != nil && at-met.at >= abortedFor {
		met.sent, met = 0, nil
	}
	switch {
	case s.Seq == 0: // nobody listened
	case s.Flags&packet.FlagACK != 0:
		if a.aborts.add(at, s) {
			a.aborted++
		}
	case met != nil && met.sent-s.Seq > 1 && met.sent-s.Seq < 1<<30: // one is the server's FIN
		met.sent = 0
		a.inAnswer++
	case !a.aborts.lately(at, s.Dst, s.DstPort):
		a.behind++
	}
}

// ClientEnded takes in that a client has ended its side, or the connection, by itself.
func (a *Account) ClientEnded(client packet.Addr, port uint16) {
	if met := a.aborts.find(client, port); met != nil {
		met.sent = 0
	}
}
