package cgroup

import (
	"bytes"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Throttle is what CPU limits have done to a process so far.
type Throttle struct {
	// Periods is nr_periods of cpu.stat, Throttled nr_throttled and Withheld
	// throttled_usec (throttled_time in version 1; summed over CPUs). Of several
	// limits one above the other the periods of the busiest, the sums of the rest.
	Periods, Throttled uint64
	Withheld           time.Duration
	Used               time.Duration // CPU time of the process's own group
}

// add adds one group's cpu.stat, of either version.
func (t *Throttle) add(stat []byte) {
	if n, ok := statNumber(stat, []byte("nr_periods ")); ok {
		t.Periods = max(t.Periods, n)
	}
	if n, ok := statNumber(stat, []byte("nr_throttled ")); ok {
		t.Throttled += n
	}
	if n, ok := statNumber(stat, []byte("throttled_usec ")); ok {
		t.Withheld += procfile.Microseconds(n)
	}
	if n, ok := statNumber(stat, []byte("throttled_time ")); ok {
		t.Withheld += procfile.Nanoseconds(n)
	}
}

func (t *Throttle) setUsed(data []byte) {
	if n, ok := statNumber(data, []byte("usage_usec ")); ok {
		t.Used = procfile.Microseconds(n)
	} else if n, _, ok := procfile.NextNumber(bytes.TrimSuffix(data, []byte{'\n'})); ok {
		t.Used = procfile.Nanoseconds(n) // cpuacct.usage
	}
}

func statNumber(stat, key []byte) (uint64, bool) {
	value, ok := procfile.ValueOf(stat, key)
	if !ok {
		return 0, false
	}
	n, rest, ok := procfile.NextNumber(value)
	return n, ok && len(rest) == 0
}
