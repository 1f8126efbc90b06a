package hsperf

import (
	"bytes"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// collector is one of a JVM's garbage collectors, sun.gc.collector.N.*, its
// times in ticks.
type collector struct {
	time        *int64
	entry, exit int64 // of the last pause (lastEntryTime, lastExitTime), since the JVM started
	concurrent  bool  // entry and exit are those of phases during which the application runs
}

// collectors are all of them; no JVM has had more than four.
type collectors [8]collector

// set takes a counter that is a collector's.
func (c *collectors) set(name []byte, v perfValue) bool {
	i, field, ok := collectorField(name)
	if !ok {
		return false
	}
	switch one := &c[i]; field {
	case "time":
		one.time = &v.number
	case "lastEntryTime":
		one.entry = v.number
	case "lastExitTime":
		one.exit = v.number
	case "name":
		one.concurrent = runsBeside(v.text)
	}
	return true
}

// time is the sum of their times, nil without any.
func (c *collectors) time() (sum *int64) {
	for i := range c {
		if c[i].time == nil {
			continue
		}
		if sum == nil {
			sum = new(int64)
		}
		*sum += *c[i].time
	}
	return sum
}

// pausing reports whether one of them has begun a pause and not ended it.
func (c *collectors) pausing() bool {
	for i := range c {
		if !c[i].concurrent && c[i].entry > c[i].exit {
			return true
		}
	}
	return false
}

// collectorField takes "sun.gc.collector.N.FIELD" apart.
func collectorField(name []byte) (i int, field string, ok bool) {
	rest, ok := bytes.CutPrefix(name, []byte("sun.gc.collector."))
	if !ok {
		return 0, "", false
	}
	number, last, ok := bytes.Cut(rest, []byte("."))
	i, isNumber := procfile.Decimal(number)
	if !ok || !isNumber || i >= len(collectors{}) {
		return 0, "", false
	}
	return i, string(last), true
}

// runsBeside recognises a collector during whose phases the application runs by its
// name: "G1 concurrent cycle pauses" are pauses.
func runsBeside(name []byte) bool {
	return bytes.Contains(name, []byte("oncurrent")) && !bytes.Contains(name, []byte("pause"))
}
