package hsperf

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Safepoints is how far a JVM's safepoints have come.
type Safepoints struct {
	Begun int64         // sun.rt.safepoints; moves when one begins
	Ran   time.Duration // sun.rt.applicationTime; moves when one begins
	Stood time.Duration // sun.rt.safepointTime; moves when one ends
	// Synced is the time until all threads had stopped, which is not in Stood
	// (sun.rt.safepointSyncTime); moves when they have. 0 before Java 13, whose Stood has it.
	Synced time.Duration
	// Collecting: a garbage collector's pause is under way.
	Collecting bool
	Started    time.Time // sun.rt.createVmBeginTime
	// Feature is the version of Java: 8 for "1.8.0_402", 17 for "17.0.15"; 0
	// where it is not known.
	Feature int
}

// safepointIndex is where the counters of Safepoints stand in a performance
// data file. HotSpot never moves a counter; it adds new ones at the end.
type safepointIndex struct {
	order              binary.ByteOrder
	entries            uint32 // num_entries of the prologue, when the index was made
	begun, ran, stood  int    // offsets; 0 where this JVM lacks the counter
	synced             int
	frequency, started int64
	feature            int
	pauses             [len(collectors{})]pauseIndex
	end                int // of the last counter wanted
}

// pauseIndex is where a collector's times stand, 0 where it has no pauses.
type pauseIndex struct{ entry, exit int }

// findSafepoints makes the index.
func findSafepoints(data []byte) (safepointIndex, error) {
	order, err := perfByteOrder(data)
	if err != nil {
		return safepointIndex{}, err
	}
	x := safepointIndex{order: order, entries: order.Uint32(data[prologueNumEntries:]), end: prologueSize}
	var concurrent [len(collectors{})]bool
	err = parsePerfData(data, func(name []byte, v perfValue) {
		x.locate(string(name), v)
		x.locatePause(name, v, &concurrent)
	})
	for i, c := range concurrent {
		if c {
			x.pauses[i] = pauseIndex{}
		}
	}
	if err == nil && (x.begun == 0 || x.ran == 0 || x.stood == 0 || x.frequency <= 0) {
		err = fmt.Errorf("performance data without safepoints: %w", ErrNoPerfData)
	}
	return x, err
}

func (x *safepointIndex) locate(name string, v perfValue) {
	switch name {
	case "sun.rt.safepoints":
		x.begun = v.at
	case "sun.rt.applicationTime":
		x.ran = v.at
	case "sun.rt.safepointTime":
		x.stood = v.at
	case "sun.rt.safepointSyncTime":
		x.synced = v.at
	case "sun.os.hrt.frequency":
		x.frequency = v.number
	case "sun.rt.createVmBeginTime":
		x.started = v.number
	case "java.property.java.version":
		x.feature = javaFeature(string(v.text))
		return
	default:
		return
	}
	x.end = max(x.end, v.at+8)
}

func (x *safepointIndex) locatePause(name []byte, v perfValue, concurrent *[len(collectors{})]bool) {
	i, field, ok := collectorField(name)
	if !ok {
		return
	}
	switch field {
	case "lastEntryTime":
		x.pauses[i].entry = v.at
	case "lastExitTime":
		x.pauses[i].exit = v.at
	case "name":
		concurrent[i] = runsBeside(v.text)
		return
	default:
		return
	}
	x.end = max(x.end, v.at+8)
}

// read decodes the counters. data may be shorter than the file, not than end.
func (x *safepointIndex) read(data []byte, out *Safepoints) {
	*out = Safepoints{
		Begun: x.number(data, x.begun), Ran: x.duration(data, x.ran), Stood: x.duration(data, x.stood),
		Started: time.UnixMilli(x.started), Feature: x.feature,
	}
	if x.synced > 0 && x.feature >= syncedApart {
		out.Synced = x.duration(data, x.synced)
	}
	for _, p := range x.pauses {
		if p.entry > 0 && p.exit > 0 && x.number(data, p.entry) > x.number(data, p.exit) {
			out.Collecting = true
		}
	}
}

// stale reports whether counters were added since the index was made: a JVM that
// was starting may have had no collectors yet.
func (x *safepointIndex) stale(data []byte) bool {
	return x.order.Uint32(data[prologueNumEntries:]) != x.entries
}

func (x *safepointIndex) number(data []byte, at int) int64 { return int64(x.order.Uint64(data[at:])) }

func (x *safepointIndex) duration(data []byte, at int) time.Duration {
	d, ok := ticksDuration(x.number(data, at), x.frequency)
	if !ok {
		return math.MaxInt64
	}
	return d
}
