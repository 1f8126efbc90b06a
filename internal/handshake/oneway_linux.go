package handshake

import (
	"errors"
	"math"
	"time"
)

// oneWay is whether outgoing packets are left out. They tell most, and cost most: the kernel
// clones each for a packet socket before any filter runs (dev_queue_xmit_nit). While the
// counters show that every SYN is answered by a SYN-ACK, once, it need not be seen.
type oneWay struct {
	on      bool
	never   bool          // this kernel cannot
	base    Counters      // up to which all was calm
	baseAt  time.Duration // when they were read
	at      time.Duration // when any were read last
	reset   Counters      // RSTs were sent since base, and to whom is looked for
	resetAt time.Duration // when they were read, 0 for not
	sent    Counters      // as read when the segments that are sent were last counted
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
)

// chooseDirections reads the counters when it is time, and decides by them.
func (t *Tap) chooseDirections(at time.Duration) {
	w := &t.oneWay
	switch {
	case !t.countsSockets() || w.never:
	case w.on && (t.tracker.Doubtful() || at-w.at >= cookieEvery):
		t.checkCalm(at)
	case !w.on && at >= w.notUpTo && at-w.at >= calmFor:
		t.checkTrouble(at)
	}
}

// countsSockets reports whether there is what takes the place of outgoing packets.
func (t *Tap) countsSockets() bool { return t.o.Counters != nil && t.o.Socket != nil }

// checkTrouble stops reading outgoing packets if many are sent, and nothing has happened
// since the counters were last read.
func (t *Tap) checkTrouble(at time.Duration) {
	w := &t.oneWay
	now, err := t.o.Counters()
	first := w.at == 0
	moved, since, before := now.sub(w.base), at-w.at, w.at
	w.base, w.baseAt, w.at, w.resetAt = now, at, at, 0
	switch {
	case err != nil:
		w.notUpTo = at + t.alertFor()
	case first || !moved.calmButStrayResets() || t.tracker.ResetSince(before-lag) || !t.tracker.Settled() || t.reading != reading{} || t.fit.retiring != nil:
	case t.tracker.Distrust():
		w.notUpTo, w.at = at+distrustFor, 0
		t.tracker.Trust()
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

func (t *Tap) busy(moved Counters, since time.Duration) bool {
	return t.o.Calm || float64(moved.Sent) >= busySegments*since.Seconds()
}

// read has other segments read from now on.
func (t *Tap) read(r reading) error {
	if err := t.ring.refilter(filter(t.ports, r)); err != nil {
		return err
	}
	t.reading = r
	t.tracker.Widen(r.more == flagACK)
	return nil
}

func (t *Tap) stopOutgoing(at time.Duration) {
	w := &t.oneWay
	if t.read(reading{flagFIN, true}) != nil {
		return
	}
	if w.never = t.ring.ignoreOutgoing(true) != nil; w.never {
		return // adjust has everything read again
	}
	w.on, w.sent, w.sentAt = true, w.base, at
	t.tracker.StopOutgoing(at)
}

// checkCalm reads outgoing packets again as soon as anything has happened, or nothing is
// saved any more.
func (t *Tap) checkCalm(at time.Duration) {
	w := &t.oneWay
	now, err := t.o.Counters()
	w.at = at
	if err != nil || t.tracker.Doubtful() || !now.sub(w.base).calmButStrayResets() || at-w.baseAt > strayMost {
		t.resumeOutgoing(t.alertFor())
		return
	}
	t.rebase(at, now)
	if since := at - w.sentAt; since >= calmFor {
		if !t.busy(now.sub(w.sent), since/2) {
			t.resumeOutgoing(0)
			return
		}
		w.sent, w.sentAt = now, at
	}
}

// rebase moves the base up to the latest counters, or to earlier ones where RSTs were sent
// since: first all clients of that time have to be known to have been let in.
func (t *Tap) rebase(at time.Duration, now Counters) {
	w := &t.oneWay
	// LetIn comes first, as it has the kernel asked; what has not been read yet does not count.
	if w.resetAt > 0 && t.tracker.LetIn(w.resetAt) && at-w.resetAt >= lag {
		w.base, w.baseAt, w.resetAt = w.reset, w.resetAt, 0
	}
	switch {
	case w.resetAt > 0:
	case now.Resets == w.base.Resets:
		w.base, w.baseAt = now, at
	default:
		w.reset, w.resetAt = now, at
	}
	t.tracker.Calm(w.baseAt)
}

// resumeOutgoing reads the counters once more, when nothing is missed any longer.
func (t *Tap) resumeOutgoing(alert time.Duration) {
	w := &t.oneWay
	if t.filtered = errors.Join(t.ring.ignoreOutgoing(false), t.read(reading{more: flagFIN})); t.filtered != nil {
		return // it is tried again
	}
	at := time.Since(t.start)
	now, until, err := t.countQuickly()
	moved := Moved{w.baseAt, until, now.sub(w.base)}
	if err != nil {
		moved.Counters = unknownCounters()
	}
	if moved.Cookies > 0 {
		t.wideUntil = at + wideFor
	}
	t.cookies, t.cookiesAt = now.Cookies, until
	w.on, w.base, w.baseAt, w.at, w.notUpTo = false, now, until, until, at+alert
	t.tracker.ResumeOutgoing(at, moved)
}

// countQuickly reads the counters, again if that took long: what happens meanwhile is in
// them or not. until is when it began.
func (t *Tap) countQuickly() (now Counters, until time.Duration, err error) {
	const quick, most = time.Millisecond, 5
	for range most {
		until = time.Since(t.start)
		if now, err = t.o.Counters(); err != nil || time.Since(t.start)-until < quick {
			break
		}
	}
	return now, until, err
}

// unknownCounters may have moved, each of them.
func unknownCounters() Counters {
	const some = math.MaxUint32
	return Counters{Drops: some, Cookies: some, Repeats: some, Resets: some, Aborted: some, Killed: some, Opened: some}
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
