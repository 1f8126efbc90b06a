package main

import (
	"time"
)

// history is the truth about one number over time: its value from each moment on.
// Values are only added behind.
type history struct {
	at    []time.Time
	value []uint64
}

func (h *history) add(at time.Time, value uint64) {
	if n := len(h.value); n > 0 && h.value[n-1] == value {
		return
	}
	h.at, h.value = append(h.at, at), append(h.value, value)
}

// staleness is how long a published value had no longer been true when it was
// received: the time since the truth last was that value. Of a value that never was,
// it is the time since the beginning.
func (h *history) staleness(received time.Time, published uint64) time.Duration {
	last := -1
	for i := range h.value {
		if h.at[i].After(received) {
			break
		}
		if h.value[i] == published {
			last = i
		}
	}
	if last+1 >= len(h.at) || h.at[last+1].After(received) {
		return 0 // still true
	}
	return received.Sub(h.at[last+1])
}

// firstRise is when the value first was above the one at the beginning.
func (h *history) firstRise() (time.Time, bool) {
	for i := range h.value {
		if h.value[i] > h.value[0] {
			return h.at[i], true
		}
	}
	return time.Time{}, false
}
