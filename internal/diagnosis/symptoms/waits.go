package symptoms

import (
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// mostOf is the share of the busy threads that must be waiting for one peer.
	mostOf = 0.5
	// poolShort is the share of them that must be without a connection for a
	// configured pool to be what is short.
	poolShort = 0.1
	// longWait is the mean age of the requests in flight with which a single
	// reading shows that every connection has been in use: half of it where the oldest is
	// as old, since requests that take 2 s each are 1 s old on average, give or take.
	longWait = time.Second
)

// waits is what the busy threads wait for, where the outgoing connections
// show it. It is zero where they do not.
type waits struct {
	Cause    model.Cause // downstream or connection_pool, none where it is only possible
	Possible model.Cause // what it may be
	Peer     *model.Peer
	Also     []netip.AddrPort // other hosts of the same cluster, it seems: Peer has the sums of all
	Busy     int              // threads
	There    int              // of them, with a request in flight to the peer
	Others   int              // of them, with one in flight to another peer
	Running  int              // of them, on a CPU or waiting for one, where that was read
	Virtual  bool             // busy are requests in service, each on a virtual thread
	Shown    model.Cause      // what the numbers show for certain, which Against may exclude
	Against  Against          // what speaks against connection_pool
	IdlePool *model.Peer      // whose connections may be kept meanwhile, where that is Against
}

// Against is what speaks against connection_pool where its numbers are there.
type Against int

// The reasons.
const (
	Nothing       Against = iota
	AtMonitors            // most threads wait to enter a monitor, by the JVM's own account
	OthersUsedUp          // threads wait for another peer as well, all of whose connections are in use
	OneConnection         // no pool is configured, and one connection is what a lock around a call has, too
	PoolHasRoom           // the configured pool may have more connections than it has
	OthersIdle            // another pool's connections are all open, and idle
	OneMoment             // the configured pool was used up at one moment, or nearly
	Untimed               // the waiters have no timeout, and no thread is at the peer
)

// Without is how many of the busy threads have no request in flight anywhere, and
// do not run: they wait for a lock, a pool or a timer.
func (w *waits) Without() int { return max(0, w.Busy-w.There-w.Others-w.Running) }

// waitsFor finds what used up threads wait for. Long polls and subscriptions are in
// flight, too: what was so while nobody was served is left out. Where that was
// never seen, a peer is only possibly the cause, unless the configuration names
// its pool or the threads themselves are seen to wait there.
func (s *Symptoms) waitsFor() waits {
	if reading.VirtualThreads(s.Now) {
		return s.behindPool()
	}
	d := reading.DownstreamOf(s.Now)
	if !s.ThreadsFull || d == nil || len(d.Peers) == 0 {
		return waits{}
	}
	w := waits{Busy: s.busyOrAll()}
	all := 0
	for i := range d.Peers {
		n := threadsAt(&d.Peers[i])
		all += n
		if w.Peer == nil || n > w.There {
			w.Peer, w.There = &d.Peers[i], n
		}
	}
	if w.There == 0 {
		return waits{}
	}
	w.share(all, d)
	c := w.which()
	if c == model.CauseNone || c == model.CauseConnectionPool && !w.poolUsedUp() {
		w.join(all, d)
		c = w.which()
	}
	if c == model.CauseNone {
		return waits{}
	}
	w.Possible = c
	if w.certain(d) {
		w.Shown = c
	}
	if c != model.CauseConnectionPool {
		w.Cause, w.Against = w.Shown, Nothing
		return w
	}
	w.doubt(s, d)
	switch w.Against {
	case Nothing:
		w.Cause = w.Shown
	case AtMonitors: // then it is no pool of connections
		return waits{Shown: w.Shown, Against: w.Against}
	}
	return w
}

// doubt finds what speaks against a pool that is short.
func (w *waits) doubt(s *Symptoms, d *model.Downstream) {
	p := w.Peer
	switch {
	case atMonitors(reading.StacksOf(s.Now)):
		w.Against = AtMonitors
	case w.Against != Nothing:
	case w.poolUsedUp() && !w.poolLasting():
		w.Against = OneMoment
	case w.poolUsedUp() && p.Pool.GivesUp() && d.Workers != nil && p.Workers != nil && *p.Workers == 0 && !w.waitTimed(d):
		w.Against = Untimed
	case w.poolUsedUp():
	case p.Pool != nil:
		w.Against = PoolHasRoom
	case p.Connections < 2:
		w.Against = OneConnection
	default:
		if w.IdlePool = w.idleMeanwhile(d); w.IdlePool != nil {
			w.Against = OthersIdle
		}
	}
}

// atMonitors means that most of the threads at work wait at one place to enter a monitor. Those
// that wait for a pool's connection do not: it has conditions, or waits for a notification.
func atMonitors(stacks *model.Stacks) bool {
	g := stacks.BusyGroup()
	return g != nil && g.State == "BLOCKED" && float64(g.Threads) >= mostOf*float64(stacks.Busy())
}

// idleMeanwhile is another peer whose configured pool has all its connections open, and hardly a
// request in flight: as where handlers keep a connection of that pool while they call this peer, so
// that the others wait for it, nil where there is none. A full pool at rest looks the same, but
// who waits for it does so with a timeout, if it is one of those that always have one.
func (w *waits) idleMeanwhile(d *model.Downstream) *model.Peer {
	for i := range d.Peers {
		p := &d.Peers[i]
		if p.Address == w.Peer.Address || p.Pool == nil || p.Connections < p.Pool.Size.Value || 5*(p.InFlight+p.Connecting) > p.Connections {
			continue
		}
		if d.Workers == nil || !p.Pool.GivesUp() || w.waitTimed(d) {
			return p
		}
	}
	return nil
}

// waitTimed means that half of those without a connection may wait with a timeout.
func (w *waits) waitTimed(d *model.Downstream) bool { return 2*d.Workers.Timed >= w.Without() }

// share divides the busy threads, of which all have a request in flight somewhere.
func (w *waits) share(all int, d *model.Downstream) {
	w.There = min(w.There, w.Busy)
	w.Others = min(all-w.There, w.Busy-w.There)
	if d.Workers != nil {
		w.Running = min(d.Workers.Running, w.Busy-w.There-w.Others)
	}
}

// join takes peers with the same port, all of whose connections are in use as well, for the hosts of one cluster: a pool
// may be of all of them, and which of them is slow is not known. Where half as many threads or more wait for a
// peer with another port, all of whose connections are in use, it is in doubt whose pool is short.
func (w *waits) join(all int, d *model.Downstream) {
	first := w.Peer
	for i := range d.Peers {
		p := &d.Peers[i]
		n := threadsAt(p)
		switch {
		case p == first || n == 0 || p.InFlight+p.Connecting+p.Unknown < p.Connections:
		case p.Address.Port() == first.Address.Port():
			if len(w.Also) == 0 {
				w.Peer = new(*first)
			}
			addPeer(w.Peer, p)
			w.Also = append(w.Also, p.Address)
			w.There += n
		case 2*n >= threadsAt(first):
			w.Against = OthersUsedUp
		}
	}
	w.share(all, d)
}

// addPeer adds the numbers of another peer. What is known of one alone is not of both.
func addPeer(to, p *model.Peer) {
	if n := to.InFlight + p.InFlight; n > 0 {
		to.Mean = (to.Mean*time.Duration(to.InFlight) + p.Mean*time.Duration(p.InFlight)) / time.Duration(n)
	}
	to.Connections, to.InFlight = to.Connections+p.Connections, to.InFlight+p.InFlight
	to.Unknown, to.Connecting = to.Unknown+p.Unknown, to.Connecting+p.Connecting
	to.Oldest, to.OldestConnect = max(to.Oldest, p.Oldest), max(to.OldestConnect, p.OldestConnect)
	to.AllInFlight = nil
	to.PerSecond, to.Background, to.Workers = both(to.PerSecond, p.PerSecond), both(to.Background, p.Background), both(to.Workers, p.Workers)
	if to.Pool != nil && (p.Pool == nil || p.Pool.Setting != to.Pool.Setting) {
		to.Pool = nil
	}
}

func both[N int | float64](a, b *N) *N {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// behindPool are requests on virtual threads that wait for a configured pool all of
// whose connections are in use, and have been, while most of them have none: no limit
// of Tomcat's is reached, and no thread can be read. A connection on which nothing is
// known is taken to be in use, of which there may be fewer. It is zero where there is
// none such.
func (s *Symptoms) behindPool() waits {
	d := reading.DownstreamOf(s.Now)
	if d == nil || d.ByUser {
		return waits{}
	}
	for i := range d.Peers {
		w := waits{Peer: &d.Peers[i], Busy: reading.Phase(s.Now, model.InService), There: d.Peers[i].Waiting() + d.Peers[i].Unknown, Virtual: true}
		crowded := func(l *model.Listener) bool { return reading.Phase(l, model.InService) >= 2*w.There }
		if w.poolUsedUp() && w.lasting() && s.Both(crowded) {
			w.Cause, w.Possible, w.Shown = model.CauseConnectionPool, model.CauseConnectionPool, model.CauseConnectionPool
			return w
		}
	}
	return waits{}
}

// SilentPeer is a peer that answers no connect, where it is not the cause that all threads are busy; nil without one.
func (s *Symptoms) SilentPeer() *model.Peer {
	if s.Waits.Cause != model.CauseNone || s.First {
		return nil
	}
	return reading.SilentPeer(s.Now)
}

// threadsAt is how many threads wait for a peer: those that were seen in a call that
// does, else as many as have a request in flight there. A thread that waits for the
// answer of an asynchronous client is in no such call.
func threadsAt(p *model.Peer) int {
	if p.Workers != nil && *p.Workers > 0 {
		return *p.Workers
	}
	return p.Waiting()
}

// which cause the numbers fit.
func (w *waits) which() model.Cause {
	busy, without := float64(w.Busy), float64(w.Without())
	switch {
	case w.poolUsedUp() && without >= max(1, poolShort*busy):
		return model.CauseConnectionPool
	case float64(w.There) >= mostOf*busy:
		return model.CauseDownstream
	case w.allInUse() && without >= mostOf*busy && w.Shared():
		return model.CauseDownstream
	case w.allInUse() && without >= mostOf*busy:
		return model.CauseConnectionPool
	}
	return model.CauseNone
}

// allInUse reports whether every connection to the peer has been in flight in two
// readings, or in one for long. One on which nothing is known may be in flight. A subscription is so,
// too: where the threads were read, some must wait there, or its rest be known, or
// the configuration must name it as a server that is asked, or it was asked meanwhile.
func (w *waits) allInUse() bool {
	p := w.Peer
	asked := p.PerSecond != nil && *p.PerSecond > 0
	unseen := p.Workers != nil && *p.Workers == 0 && p.Background == nil && p.Name == "" && !asked
	return w.lasting() && p.Connecting == 0 && !unseen
}

// lasting: in two readings, or in one for long, every connection was in flight, or may
// have been.
func (w *waits) lasting() bool {
	p := w.Peer
	return p.AllInRow > 1 || p.AllInRow == 1 && (p.Mean >= longWait || p.Mean >= longWait/2 && p.Oldest >= longWait)
}

// Shared reports whether the threads wait for answers that another thread receives:
// of a client that has many requests on one connection (HTTP/2, Lettuce), so that
// their number cannot be seen.
func (w *waits) Shared() bool {
	p := w.Peer
	return p.Pool == nil && p.Workers != nil && *p.Workers == 0 && w.There < w.Without()
}

// poolUsedUp reports whether as many connections as the configuration allows are in
// use now: of a full pool one is always on its way from one thread to the next.
func (w *waits) poolUsedUp() bool {
	p := w.Peer
	if p.Pool == nil || p.Connections < p.Pool.Size.Value {
		return false
	}
	return float64(p.InFlight+p.Unknown) >= 0.8*float64(p.Pool.Size.Value)
}

// poolLasting: the configured pool has been used up for longer than a moment: every connection was in
// flight in two readings, or hardly one was not and in another of the last minute every one was; or
// as many as it may have are, for long. Where one is idle all the time the threads wait for something else.
func (w *waits) poolLasting() bool {
	p := w.Peer
	idle := p.Pool.Size.Value - p.InFlight - p.Unknown
	long := p.Mean >= longWait || p.Mean >= longWait/2 && p.Oldest >= longWait
	return w.lasting() || idle <= 0 && long || idle <= max(1, p.Pool.Size.Value/20) && p.AllInFlight != nil && *p.AllInFlight > 0
}

// certain reports whether what is in flight is known to be what threads wait for.
func (w *waits) certain(d *model.Downstream) bool {
	p := w.Peer
	switch {
	case d.ByUser:
		return false // they may be another process's
	case p.Workers != nil && *p.Workers > 0: // they were seen to wait there
		return true
	}
	return p.Background != nil || w.poolUsedUp()
}

// busyOrAll is the number of busy threads; where they cannot be counted and the
// pool is used up, all of them.
func (s *Symptoms) busyOrAll() int {
	most, _ := reading.MaxThreads(s.Now)
	if busy, seen := reading.BusyThreads(s.Now); seen {
		return min(busy, most)
	}
	return most
}

// AnswerTime is how long the peer takes for a request, where that was
// measured: by Little's law from those in flight and those begun in a second,
// where a reading does not miss any; else twice the mean age in flight.
func (w *waits) AnswerTime() (time.Duration, bool) {
	p := w.Peer
	if p.PerSecond != nil && *p.PerSecond > 0 && p.InFlight > 0 {
		if r := float64(p.InFlight) / *p.PerSecond; r >= 1.5 {
			return time.Duration(r * float64(time.Second)), true
		}
	}
	return 2 * p.Mean, p.Mean > 0
}
