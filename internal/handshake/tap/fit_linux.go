package tap

import (
	"errors"
	"time"

	"golang.org/x/net/bpf"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// fit is what it takes to have a ring as large as it needs to be. The pages of a
// ring are resident whether packets come or not, and an agent has one for each
// network namespace.
type fit struct {
	retiring *ring         // the ring before, until its last block has been handed over
	until    time.Duration // then
	busyAt   time.Duration // when the ring was last busy
	lost     uint64        // by rings that are closed
}

const (
	// handedOver is when the last block of a ring surely has been: retireAfter
	// twice, and a timer that is late.
	handedOver = 120 * time.Millisecond
	// calmAfter is when a large ring gives way to a small one.
	calmAfter = time.Minute
)

func (t *Tap) firstSize() size {
	if t.o.Inside == nil {
		return large()
	}
	return small()
}

// readRings reads the ring. One that is to be given up comes first, to its end:
// a handshake is understood in its order only.
func (t *Tap) readRings(at time.Duration) (any bool) {
	if t.fit.retiring == nil {
		return t.ring.read(t.observedFn)
	}
	any = t.fit.retiring.read(t.observedFn)
	if at < t.fit.until {
		return any
	}
	t.endRetiring()
	return t.ring.read(t.observedFn) || any
}

func (t *Tap) endRetiring() {
	lost, _ := t.fit.retiring.losses()
	t.fit.lost += lost
	_ = t.fit.retiring.close()
	t.fit.retiring = nil
}

// losses are those of all rings so far.
func (t *Tap) losses() (uint64, error) {
	lost, err := t.ring.losses()
	if t.fit.retiring != nil {
		before, failed := t.fit.retiring.losses()
		lost, err = lost+before, errors.Join(err, failed)
	}
	return t.fit.lost + lost, err
}

// resize gives the tap another ring if its own is too small, or large for
// nothing.
func (t *Tap) resize(at time.Duration) {
	busy := t.ring.busy
	if t.ring.busy = false; busy {
		t.fit.busyAt = at
	}
	switch isLarge := t.ring.size == large(); {
	case t.o.Inside == nil, t.fit.retiring != nil:
	case busy && !isLarge:
		t.replace(at, large())
	case isLarge && at-t.fit.busyAt >= calmAfter:
		t.replace(at, small())
	}
}

// replace opens another ring before it closes the one that there is: a packet
// in between is shown by both.
func (t *Tap) replace(at time.Duration, s size) {
	var next *ring
	err := t.o.Inside(func() (err error) {
		next, err = openRing(packet.Filter(t.ports, t.reading), s)
		if err == nil && t.oneWay.on {
			err = next.ignoreOutgoing(true)
		}
		return err
	})
	if err != nil {
		return // the ring that there is does, as well as it can
	}
	next.mark = t.ring.mark ^ packet.Successor
	nothing := []bpf.Instruction{bpf.RetConstant{Val: 0}}
	if err := t.ring.refilter(nothing); err != nil {
		_ = next.close()
		return
	}
	t.fit.retiring, t.fit.until, t.fit.busyAt = t.ring, at+handedOver, at
	t.ring, t.pace.wakeAt = next, time.Time{}
	t.fit.retiring.ready.close() // run waits for the other from now on
}
