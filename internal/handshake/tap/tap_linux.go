package tap

import (
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/hello"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/unheard"
)

// Tap follows the handshakes of a network namespace. Its methods may be called
// from any goroutine.
type Tap struct {
	o     Options
	start time.Time
	done  chan struct{}

	mu       sync.Mutex // of all below, and of the ring's memory
	ring     *ring
	fit      fit
	tracker  *handshake.Tracker
	unheard  unheard.Clients
	hellos   hello.Clients
	helloAt  time.Duration // when the latest ClientHello came, 0 for never
	ports    []uint16
	listened []netip.AddrPort
	ignored  uint64
	closed   bool
	filtered error // of the latest change of the filter that the tap made by itself

	reading    packet.Reading
	wideUntil  time.Duration
	oneWay     oneWay
	pace       pace
	dropped    map[uint16]uint64 // by port, as last read; nil if it was not
	opened     uint64            // PassiveOpens when it was opened
	trouble    Trouble
	troubleAt  time.Duration
	foreign    uint64
	localAt    time.Duration
	followsFn  func(uint16) bool                        // whether a port is followed, the same
	observedFn func(time.Duration, []byte, packet.Link) // observe, made once, to allocate nothing a block
	offset     time.Duration                            // from a packet's time to the tap's
}

const (
	// wideFor is how long the clients' other segments are observed after a SYN
	// cookie, or a drop.
	wideFor = 5 * time.Second
	// cookieEvery and retireAfter together stay below Lag: what is decided up to then
	// is decided with the cookies known.
	cookieEvery  = 200 * time.Millisecond
	addressEvery = time.Second
)

// Open taps the network namespace of the calling thread. It needs CAP_NET_RAW
// there; without it the error is fs.ErrPermission.
func Open(o Options) (*Tap, error) {
	t := &Tap{o: o, start: time.Now(), done: make(chan struct{})}
	t.observedFn = t.observe
	t.o.Clock = func() time.Duration { return time.Since(t.start) }
	t.tracker = handshake.NewTracker(t.o.Options)
	t.unheard.Clock, t.unheard.Socket = t.o.Clock, o.Socket
	t.followsFn = func(port uint16) bool { return slices.Contains(t.ports, port) } // under the lock
	t.ports = slices.Clone(o.Ports)
	t.tracker.SetPorts(t.ports)
	if err := t.readAddresses(); err != nil {
		return nil, err
	}
	if o.Trouble != nil {
		t.trouble, _ = o.Trouble()
	}
	if o.Dropped != nil {
		t.dropped, _ = o.Dropped()
	}
	if o.Counters != nil {
		c, err := o.Counters()
		if err != nil {
			return nil, err
		}
		t.opened = c.Opened
	}
	var err error
	if t.ring, err = openRing(packet.Filter(t.ports, packet.Reading{}), t.firstSize()); err != nil {
		return nil, err
	}
	if t.countsSockets() {
		t.checkTrouble(max(time.Since(t.start), 1))
	}
	if o.Calm {
		t.stopOutgoing(t.oneWay.at)
	}
	go t.run()
	return t, nil
}

// run drains the ring as blocks become ready, and after each rest, until the tap is closed.
func (t *Tap) run() {
	defer close(t.done)
	for rest := time.Duration(0); ; {
		ring, open := t.current()
		if !open {
			return
		}
		var timed bool
		var err error
		if rest > 0 {
			timed, err = true, ring.ready.rest(rest)
		} else {
			timed, err = ring.ready.wait()
		}
		if err != nil { // it was closed or replaced
			time.Sleep(shortRest)
		}
		rest = t.drain(timed)
	}
}

func (t *Tap) current() (r *ring, open bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ring, !t.closed
}

// drain says how long the ring is to be left alone then. timed: there may be nothing in it.
func (t *Tap) drain(timed bool) (rest time.Duration) {
	defer t.readAddresses() //nolint:errcheck // those that were known stay
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return 0
	}
	if any := t.drainLocked(); any || !timed {
		rest = t.restAfter(any)
	}
	rested := t.pace.resting
	if t.pace.resting = rest > 0; rested && rest == 0 {
		t.setTimer()
	}
	return rest
}

func (t *Tap) drainLocked() (any bool) {
	now := time.Now()
	at := now.Sub(t.start)
	t.offset = at - time.Duration(now.UnixNano())
	any = t.readRings(at)
	t.checkTroubles(at)
	t.chooseDirections(at)
	t.tracker.Ask(at)
	t.unheard.Advance(at)
	t.tracker.Advance(max(at-handshake.Lag, 0))
	t.adjust(at)
	t.resize(at)
	t.wake(now)
	return any
}

func (t *Tap) observe(stamp time.Duration, b []byte, link packet.Link) {
	s, err := packet.Decode(b, link)
	if err != nil {
		t.ignored++
		return
	}
	at := max(stamp+t.offset, 0)
	t.tracker.Observe(at, &s)
	if s.Hello {
		t.helloAt = at
	}
	t.hellos.Observe(at, &s, t.followsFn)
	if t.o.Socket != nil {
		t.unheard.Observe(at, &s, t.followsFn)
	}
}

// adjust observes more of the clients while what they answer, or how they end, matters.
func (t *Tap) adjust(at time.Duration) {
	r := packet.Reading{OneWay: t.oneWay.on, More: at < t.wideUntil || t.tracker.Stalling(), NoHellos: t.oneWay.on && t.skipsHellos(at)}
	if r != t.reading {
		t.filtered = t.read(r)
	}
}

// readAddresses reads the namespace's addresses, and again when a SYN came to
// one that is not among them.
func (t *Tap) readAddresses() error {
	t.mu.Lock()
	at := time.Since(t.start)
	first := t.localAt == 0
	due := t.o.Addresses != nil && (first || t.tracker.Foreign() != t.foreign && at-t.localAt >= addressEvery)
	if due {
		t.foreign = t.tracker.Foreign()
	}
	t.mu.Unlock()
	if !due {
		return nil
	}
	addrs, err := t.o.Addresses()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.localAt = max(at, 1)
	if err == nil {
		t.tracker.SetLocal(addrs)
	}
	return err
}

// SetPorts changes the ports that are followed.
func (t *Tap) SetPorts(ports []uint16) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || slices.Equal(ports, t.ports) {
		return nil
	}
	if err := t.ring.refilter(packet.Filter(ports, t.reading)); err != nil {
		return err
	}
	t.ports = slices.Clone(ports)
	t.tracker.SetPorts(t.ports)
	return nil
}

// SetListened says at which addresses of the ports something listens (handshake.Tracker.SetListened).
func (t *Tap) SetListened(at []netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Equal(at, t.listened) {
		t.listened = slices.Clone(at)
		t.tracker.SetListened(at)
	}
}

// Follows reports whether the clients of a port are.
func (t *Tap) Follows(port uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.ports, port)
}

// Report is the state as of a quarter of a second ago.
func (t *Tap) Report() (Report, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return Report{}, ErrClosed
	}
	t.drainLocked()
	lost, err := t.losses()
	if err == nil {
		err = t.filtered
	}
	r := Report{Endpoints: t.tracker.Report(), Lost: lost, Ignored: t.ignored, OneWay: t.oneWay.on}
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		e.Unheard, e.TLSEnded = t.unheard.Of(e.Addr, e.Ended), t.hellos.Of(e.Addr, e.Ended)
		e.TLSBegun = t.hellos.Begun(e.Addr, e.Ended)
	}
	if t.o.Counters != nil {
		if c, failed := t.o.Counters(); failed == nil {
			r.Opened = new(c.Opened - t.opened)
		}
	}
	return r, err
}

// Close ends the tap. What is open is forgotten.
func (t *Tap) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return ErrClosed
	}
	t.closed = true
	rings := []*ring{t.ring}
	if t.fit.retiring != nil {
		rings = append(rings, t.fit.retiring)
	}
	t.mu.Unlock()
	var errs []error
	for _, r := range rings {
		errs = append(errs, r.stop()) // ends run, whichever it waits for
	}
	<-t.done
	t.tracker.Close()
	for _, r := range rings {
		errs = append(errs, r.unmap(nil))
	}
	return errors.Join(errs...)
}
