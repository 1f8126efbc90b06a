package model

import "time"

// Basis is what a verdict was judged from besides the listener itself: from both
// it can be judged again. It must not be changed.
type Basis struct {
	Before   *Listener     // nil with a single snapshot; it has no basis of its own
	First    bool          // another snapshot follows the only one
	Elapsed  time.Duration // between the two snapshots
	Interval time.Duration // what the losses and Delta span
	Delta    Counters
	Sysctl   map[string]int
	Closed   *Closed
	Shown    *Shown // nil where the verdict was shown as it was judged
}

// Closed is a listener that went away.
type Closed struct {
	Queued int           // connections that stood in its accept queue: they were reset
	Ago    time.Duration // how long ago it was missed
	Part   bool          // only some sockets of an SO_REUSEPORT group: the others listen on
}

// Shown is the verdict that was shown before, and since when those judged differ
// from it: what decides whether the next one replaces it.
type Shown struct {
	Verdict Verdict
	Started bool
	Last    time.Time // when a verdict like the one shown was last judged
	Better  time.Time // since when the status is better; zero while it is not
	Other   time.Time // since when the cause is another one, the status the same
	Cause   Cause     // the latest of these
}
