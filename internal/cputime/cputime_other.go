//go:build !linux

package cputime

import "time"

// Of is the elapsed time where threads are not accounted for.
func Of(fn func() error) (time.Duration, error) {
	start := time.Now()
	err := fn()
	return time.Since(start), err
}

// Thread is not known.
func Thread() (time.Duration, bool) { return 0, false }

// Process is not known.
func Process() time.Duration { return 0 }
