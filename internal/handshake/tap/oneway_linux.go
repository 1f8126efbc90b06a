package tap

import (
	"errors"
	"math"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// oneWay is whether outgoing packets are left out. They tell most, and cost most: the kernel
// clones each for a packet socket before any filter runs (dev_queue_xmit_nit). While the
// counters show that every SYN is answered by a SYN-ACK, once, it need not be seen.
type oneWay struct {
	on      bool
	never   bool            // this kernel cannot
	base    kernel.Count    // up to which all was calm
	at      time.Duration   // when the counters were read last
	reset   kernel.Count    // RSTs were sent since base, and to whom is looked for; Ended is 0 if not
	sent    kernel.Counters // as read when the segments that are sent were last counted
	sentAt  time.Duration
	notUpTo time.Duration // outgoing packets are read until then at least
}

const (
	// calmFor is how long the counters do not move before outgoing packets are ignored:
	// a client in trouble repeats its SYN, or is sent its SYN-ACK again, within that time.
	calmFor = 2 * time.Second
	// alertFor is how long they are read after any trouble.
	alertFor = 10 * time.Second
	// distrustFor is the same after one that the counters did not show.
	distrustFor = 10 * time.Minute
	// strayMost is the longest time for which it may not be known whom RSTs were sent to.
	strayMost = 3 * time.Second / 2
	// busySegments a second take more than a thousandth of a processor to clone.
	busySegments = 5000
	// helloFor is how long ClientHellos are read after one while outgoing packets are left out: checks come each minute at least. helloSearch
	// is how long in each helloEvery otherwise: to see that a segment is none takes a quarter of what the tap costs it. Clients that come
	// every few seconds would meet the same part of a period that divides theirs.
	helloFor                = 2 * time.Minute
	helloEvery, helloSearch = 4700 * time.Millisecond, 500 * time.Millisecond
)

// chooseDirections reads the counters when it is time, and decides by them.
func (t *Tap) chooseDirections(at time.Duration) {
	w := &t.oneWay
	switch {
	case !t.countsSockets() || w.never:
	case w.on && (t.tracker.Unread().Doubt || at-w.at >= cookieEvery):
		t.checkCalm(at)
	case !w.on && at >= w.notUpTo && at-w.at >= calmFor:
		t.checkTrouble(at)
	}
}

// skipsHellos reports whether nobody has begun TLS for some time, and nobody is looked for who does.
func (t *Tap) skipsHellos(at time.Duration) bool {
	return (t.helloAt == 0 || at-t.helloAt >= helloFor) && !searchesHello(at)
}

// searchesHello reports whether ClientHellos are looked for then in any case.
func searchesHello(at time.Duration) bool { return at%helloEvery >= helloEvery-helloSearch }

// countsSockets reports whether there is what takes the place of outgoing packets.
func (t *Tap) countsSockets() bool { return t.o.Counters != nil && t.o.Socket != nil }

// checkTrouble stops reading outgoing packets if many are sent, and nothing has happened
// since the counters were last read.
func (t *Tap) checkTrouble(at time.Duration) {
	w := &t.oneWay
	now, err := t.count()
	first := w.at == 0
	moved, since, before := now.Sub(w.base.Counters), at-w.at, w.at
	w.base, w.at, w.reset = now, at, kernel.Count{}
	switch {
	case err != nil:
		w.notUpTo = at + t.alertFor()
	case first || !moved.CalmButStrayResets() || t.tracker.ResetSince(before-handshake.Lag) || !t.tracker.Settled() || t.reading != packet.Reading{} || t.fit.retiring != nil:
	case t.tracker.Unread().Distrust:
		w.notUpTo, w.at = at+distrustFor, 0
		t.tracker.Unread().Distrust = false
	case t.busy(moved, since):
		t.stopOutgoing(at)
	default:
		w.notUpTo = at + t.alertFor()
	}
}

func (t *Tap) alertFor() time.Duration {
	if t.o.Calm {
		return 0
	}
	return alertFor
}

func (t *Tap) busy(moved kernel.Counters, since time.Duration) bool {
	return t.o.Calm || float64(moved.Sent) >= busySegments*since.Seconds()
}

// read has other segments read from now on.
func (t *Tap) read(r packet.Reading) error {
	if err := t.ring.refilter(packet.Filter(t.ports, r)); err != nil {
		return err
	}
	t.reading = r
	t.tracker.Widen(r.More)
	return nil
}

func (t *Tap) stopOutgoing(at time.Duration) {
	w := &t.oneWay
	if t.read(packet.Reading{OneWay: true, NoHellos: t.skipsHellos(at)}) != nil {
		return
	}
	if w.never = t.ring.ignoreOutgoing(true) != nil; w.never {
		return // adjust has everything read again
	}
	w.on, w.sent, w.sentAt = true, w.base.Counters, at
	t.tracker.StopOutgoing(at)
}

// checkCalm reads outgoing packets again as soon as anything has happened, or nothing is
// saved any more.
func (t *Tap) checkCalm(at time.Duration) {
	w := &t.oneWay
	now, err := t.count()
	w.at = at
	if err != nil || t.tracker.Unread().Doubt || !now.Sub(w.base.Counters).CalmButStrayResets() || at-w.base.Began > strayMost {
		t.resumeOutgoing(t.alertFor())
		return
	}
	t.rebase(at, now)
	if since := at - w.sentAt; since >= calmFor {
		if !t.busy(now.Sub(w.sent), since/2) {
			t.resumeOutgoing(0)
			return
		}
		w.sent, w.sentAt = now.Counters, at
	}
}

// rebase moves the base up to the latest counters, or to earlier ones where RSTs were sent
// since: first all clients who may have been sent one of these have to be known to have been
// let in, also those that came while the counters were read.
func (t *Tap) rebase(at time.Duration, now kernel.Count) {
	w := &t.oneWay
	// LetIn comes first, as it has the kernel asked; what has not been read yet does not count.
	if by := w.reset.Ended; by > 0 && t.tracker.LetIn(by) && at-by >= handshake.Lag {
		w.base, w.reset = w.reset, kernel.Count{}
	}
	switch {
	case w.reset.Ended > 0:
	case now.Resets == w.base.Resets:
		w.base = now
	default:
		w.reset = now
	}
	t.tracker.Unread().CalmTo = w.base.Began
}

// resumeOutgoing reads the counters once more, when nothing is missed any longer.
func (t *Tap) resumeOutgoing(alert time.Duration) {
	w := &t.oneWay
	if t.filtered = errors.Join(t.ring.ignoreOutgoing(false), t.read(packet.Reading{})); t.filtered != nil {
		return // it is tried again
	}
	at := time.Since(t.start)
	now, err := t.countQuickly()
	base := w.base
	if err != nil {
		base.Counters, now.Counters = kernel.Counters{}, unknownCounters()
	}
	if now.Cookies != base.Cookies || now.Drops != base.Drops {
		t.wideUntil = at + wideFor
	}
	t.trouble, t.troubleAt = Trouble{now.Cookies, now.Drops}, now.Began
	w.on, w.base, w.at, w.notUpTo = false, now, now.Began, at+alert
	t.tracker.ResumeOutgoing(at, base, now)
	if now.Drops != base.Drops {
		t.findDrops(base.Began, now.Ended)
	}
}

// countQuickly is count, again if that took long.
func (t *Tap) countQuickly() (now kernel.Count, err error) {
	const quick, most = time.Millisecond, 5
	for range most {
		if now, err = t.count(); err != nil || now.Ended-now.Began < quick {
			break
		}
	}
	return now, err
}

func (t *Tap) count() (c kernel.Count, err error) {
	c.Began = time.Since(t.start)
	c.Counters, err = t.o.Counters()
	c.Ended = time.Since(t.start)
	return c, err
}

// unknownCounters may have moved, each of them.
func unknownCounters() kernel.Counters {
	const some = math.MaxUint32
	return kernel.Counters{Drops: some, Cookies: some, Repeats: some, Resets: some, Aborted: some, Killed: some, Opened: some}
}

// Alert has outgoing packets read for some time: a listener is in trouble, or near it.
func (t *Tap) Alert() {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.oneWay
	if at := time.Since(t.start); !t.closed && w.on {
		t.resumeOutgoing(t.alertFor())
	} else {
		w.notUpTo = max(w.notUpTo, at+t.alertFor())
	}
}

// checkTroubles notes whether SYN cookies were sent or packets dropped since the last time.
// Where no attempt is open that means nothing to anybody.
func (t *Tap) checkTroubles(at time.Duration) {
	if t.o.Trouble == nil || t.oneWay.on || at-t.troubleAt < cookieEvery || t.tracker.Open() == 0 {
		return
	}
	now, err := t.o.Trouble()
	if err != nil {
		return
	}
	until := time.Since(t.start) // some of them since at
	if now.Cookies != t.trouble.Cookies {
		t.tracker.Cookies(t.troubleAt, until)
	}
	if now.Drops != t.trouble.Drops {
		t.findDrops(t.troubleAt, until)
	}
	if now != t.trouble {
		t.wideUntil = at + wideFor
	}
	t.trouble, t.troubleAt = now, at
}

// findDrops notes whose drops these were.
func (t *Tap) findDrops(from, until time.Duration) {
	before := t.dropped
	t.dropped = nil
	if t.o.Dropped != nil {
		t.dropped, _ = t.o.Dropped()
	}
	if before == nil || t.dropped == nil {
		t.tracker.Drops(0, from, until)
		return
	}
	for _, port := range t.ports {
		if t.dropped[port] != before[port] {
			t.tracker.Drops(port, from, until)
		}
	}
}
