package tap

import "time"

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
