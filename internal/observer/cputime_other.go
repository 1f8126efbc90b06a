//go:build !linux

package observer

import "time"

// cpuTime is the elapsed time where threads are not accounted for.
func cpuTime(fn func() error) (time.Duration, error) {
	start := time.Now()
	err := fn()
	return time.Since(start), err
}
