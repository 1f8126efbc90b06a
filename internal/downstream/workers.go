package downstream

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Worker is what one worker thread was doing.
type Worker uint8

// The states.
const (
	Elsewhere Worker = iota // in another call than those below
	Running
	Parked  // in a futex, until it is woken
	Timed   // in a futex with a timeout, or asleep
	Reading // it waits for a socket
	// What follows is in a call on what is no socket.
	Opening
	ReadingFile
	Writing
	Locking
	Syncing
	Stating
)

// Work counts the worker threads of a process by what they wait for.
type Work struct {
	workers model.Workers
	peers   map[uint32]netip.AddrPort // of the process's outgoing connections, by inode
	waiting map[netip.AddrPort]int
	sockets map[uint32]struct{} // that a thread waits for
	unnamed map[uint32]int      // threads by a socket that is none of these connections
	udp     map[netip.AddrPort]int
}

// NewWork counts towards the peers of a process's connections.
func NewWork(list []Connection) *Work {
	w := &Work{peers: make(map[uint32]netip.AddrPort, len(list)), waiting: make(map[netip.AddrPort]int), sockets: make(map[uint32]struct{}), unnamed: make(map[uint32]int), udp: make(map[netip.AddrPort]int)}
	for i := range list {
		w.peers[list[i].Inode] = list[i].Remote
	}
	return w
}

// PollerBlocked takes in that the thread that hands requests to the others waits for something else; away: at no safepoint.
func (w *Work) PollerBlocked(away bool) {
	w.workers.PollerBlocked, w.workers.PollerAway = true, away
}

// Add takes a thread; socket is the inode of the socket that one that is Reading
// waits for. Its own client's, whose request's body it reads, is no peer.
func (w *Work) Add(state Worker, socket uint32) {
	w.workers.Threads++
	peer, outgoing := w.peers[socket]
	switch {
	case state == Running:
		w.workers.Running++
	case state == Parked:
		w.workers.Parked++
	case state == Timed:
		w.workers.Parked++
		w.workers.Timed++
	case state == Reading && outgoing:
		w.waiting[peer]++
		w.sockets[socket] = struct{}{}
	case state >= Opening:
		w.workers.AddBlocked(model.BlockingCall(state-Opening), 1)
	default:
		w.workers.Other++
		if state == Reading && socket != 0 {
			w.unnamed[socket]++
		}
	}
}

// Unnamed are the sockets that threads wait for and that are none of the process's outgoing
// connections: a client's own, or one that is not TCP's. The map is the caller's to read until
// the next call of any method.
func (w *Work) Unnamed() map[uint32]int { return w.unnamed }

// Name says of one of these that it is not TCP's, and where it leads if that is known.
func (w *Work) Name(socket uint32, call model.BlockingCall, peer netip.AddrPort) {
	n := w.unnamed[socket]
	delete(w.unnamed, socket)
	w.workers.Other -= n
	w.workers.AddBlocked(call, n)
	if call == model.UDPReceive && peer.IsValid() {
		w.udp[peer] += n
		if n, most := w.udp[peer], w.udp[w.workers.UDPPeer]; n > most || n == most && peer.Compare(w.workers.UDPPeer) < 0 {
			w.workers.UDPPeer = peer
		}
	}
}

// WaitsAt is how many threads wait for a peer.
func (w *Work) WaitsAt(peer netip.AddrPort) int {
	if w == nil {
		return 0
	}
	return w.waiting[peer]
}

// Mark says of the connections that a thread waits for that a request is in flight
// there: what the ages leave open, and what they cannot show of a response of which
// a part has come.
func (w *Work) Mark(list []Connection) {
	if w == nil {
		return
	}
	for i := range list {
		if _, ok := w.sockets[list[i].Inode]; ok && list[i].Flight != Connecting {
			list[i].Flight = InFlight
		}
	}
}

// Fill gives a reading of the connections the threads that wait for each peer.
// Nothing is known of a nil Work.
func (w *Work) Fill(d *model.Downstream) {
	if w == nil {
		return
	}
	d.Workers = new(w.workers)
	for i := range d.Peers {
		d.Peers[i].Workers = new(w.waiting[d.Peers[i].Address])
	}
}
