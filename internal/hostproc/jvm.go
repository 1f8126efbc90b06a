package hostproc

import (
	"bytes"
	"errors"
	"math"
	"math/bits"
	"time"
)

// ErrNoPerfData says that a process has no readable hsperfdata file: it is not
// a HotSpot JVM, is still starting, or runs with -XX:-UsePerfData or
// -XX:+PerfDisableSharedMem.
var ErrNoPerfData = errors.New("publishes no JVM performance data")

// JVM is what a HotSpot JVM publishes in /tmp/hsperfdata_USER/PID, read from
// outside and without its help. A counter that this JVM lacks is nil or "".
type JVM struct {
	// SafepointTime is the time all threads stood still (sun.rt.safepointTime),
	// ApplicationTime the time they ran (sun.rt.applicationTime; it moves at
	// safepoints only). Both since the JVM started.
	SafepointTime   *time.Duration
	ApplicationTime *time.Duration
	// GCTime is the sum of the collectors' times (sun.gc.collector.N.time);
	// for concurrent phases that is not time stood still.
	GCTime *time.Duration
	// ThreadsLive are platform threads, daemons included (java.threads.live).
	ThreadsLive *int
	// VMArgs are the arguments of the JVM (java.rt.vmArgs), those of
	// JAVA_TOOL_OPTIONS and JDK_JAVA_OPTIONS included, joined by spaces. The
	// JVM cuts it off at 1023 bytes, and says so by three dots at its end.
	VMArgs string
	// Flags are flags from .hotspotrc (java.rt.vmFlags); usually empty.
	Flags string
	// JavaCommand is the main class or jar and its arguments
	// (sun.rt.javaCommand), joined by spaces and cut like VMArgs.
	JavaCommand string
	// Version is the property java.version, "17.0.15".
	Version string
	// Started is when the JVM was created by the clock of then
	// (sun.rt.createVmBeginTime).
	Started *time.Time
}

// jvmTicks are the counters that have to wait for the clock's frequency, which
// may come after them.
type jvmTicks struct {
	frequency              int64
	safepoint, application *int64
	gc                     *int64
}

// parseJVM reads a whole hsperfdata file.
func parseJVM(data []byte) (JVM, error) {
	var jvm JVM
	var ticks jvmTicks
	err := parsePerfData(data, func(name []byte, v perfValue) {
		if v.text != nil {
			jvm.setText(name, v.text)
			return
		}
		jvm.setNumber(name, v.number)
		ticks.set(name, v.number)
	})
	if err != nil {
		return JVM{}, err
	}
	jvm.SafepointTime = ticks.duration(ticks.safepoint)
	jvm.ApplicationTime = ticks.duration(ticks.application)
	jvm.GCTime = ticks.duration(ticks.gc)
	return jvm, nil
}

func (j *JVM) setText(name, text []byte) {
	switch string(name) {
	case "java.rt.vmArgs":
		j.VMArgs = string(text)
	case "java.rt.vmFlags":
		j.Flags = string(text)
	case "sun.rt.javaCommand":
		j.JavaCommand = string(text)
	case "java.property.java.version":
		j.Version = string(text)
	}
}

func (j *JVM) setNumber(name []byte, n int64) {
	switch string(name) {
	case "java.threads.live":
		j.ThreadsLive = new(int(n))
	case "sun.rt.createVmBeginTime":
		j.Started = new(time.UnixMilli(n))
	}
}

func (t *jvmTicks) set(name []byte, n int64) {
	switch string(name) {
	case "sun.os.hrt.frequency":
		t.frequency = n
	case "sun.rt.safepointTime":
		t.safepoint = &n
	case "sun.rt.applicationTime":
		t.application = &n
	default:
		if !isCollectorTime(name) {
			return
		}
		if t.gc == nil {
			t.gc = new(int64)
		}
		*t.gc += n
	}
}

// isCollectorTime matches sun.gc.collector.N.time.
func isCollectorTime(name []byte) bool {
	rest, ok := bytes.CutPrefix(name, []byte("sun.gc.collector."))
	if !ok {
		return false
	}
	number, ok := bytes.CutSuffix(rest, []byte(".time"))
	if !ok {
		return false
	}
	_, ok = decimal(number)
	return ok
}

// duration converts ticks exactly; nil without a counter or a frequency.
func (t *jvmTicks) duration(ticks *int64) *time.Duration {
	if ticks == nil || *ticks < 0 || t.frequency <= 0 {
		return nil
	}
	hi, lo := bits.Mul64(uint64(*ticks), uint64(time.Second))
	if hi >= uint64(t.frequency) {
		return new(time.Duration(math.MaxInt64))
	}
	ns, _ := bits.Div64(hi, lo, uint64(t.frequency))
	return new(time.Duration(min(ns, math.MaxInt64)))
}
