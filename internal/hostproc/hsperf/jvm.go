// Package hsperf reads the performance data that a HotSpot JVM publishes in
// /tmp/hsperfdata_USER/PID, from outside and without its help, and whose Java a
// process runs.
package hsperf

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// ErrNoPerfData says that a process has no readable hsperfdata file: it is not
// a HotSpot JVM, is still starting, or runs with -XX:-UsePerfData or
// -XX:+PerfDisableSharedMem.
var ErrNoPerfData = errors.New("publishes no JVM performance data")

// JVM is what a HotSpot JVM publishes in /tmp/hsperfdata_USER/PID, read from
// outside and without its help. A counter that this JVM lacks is nil or "".
type JVM struct {
	// SafepointTime is the time all threads were stopped (sun.rt.safepointTime),
	// SafepointSyncTime that until they were, which is not in it (sun.rt.safepointSyncTime;
	// nil before Java 13, where it is),
	// ApplicationTime the time they ran (sun.rt.applicationTime), Safepoints how
	// many times they were stopped (sun.rt.safepoints). All since the JVM
	// started; the latter two move when a safepoint begins, the first when it
	// ends, the second in between.
	SafepointTime     *time.Duration
	SafepointSyncTime *time.Duration
	ApplicationTime   *time.Duration
	Safepoints        *int64
	// Collecting: a garbage collector's pause is under way (a
	// sun.gc.collector.N.lastEntryTime is later than its lastExitTime).
	Collecting bool
	// GCTime is the sum of the collectors' times (sun.gc.collector.N.time);
	// for concurrent phases that is not time stood still.
	GCTime *time.Duration
	// OldUsed and OldMax are the bytes of the old generation that are used, and that it may have
	// (sun.gc.generation.1.space.0; collectors without one lack it).
	OldUsed, OldMax *int64
	// VMArgs are the arguments of the JVM (java.rt.vmArgs), those of
	// JAVA_TOOL_OPTIONS and JDK_JAVA_OPTIONS included, joined by spaces. The
	// JVM cuts it off at 1023 bytes, and says so by three dots at its end.
	VMArgs string
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
	frequency                    int64
	safepoint, sync, application *int64
	gc                           collectors
}

// parseJVM reads a whole hsperfdata file.
func parseJVM(data []byte) (JVM, error) {
	var jvm JVM
	var ticks jvmTicks
	err := parsePerfData(data, func(name []byte, v perfValue) {
		switch {
		case ticks.gc.set(name, v):
		case v.text != nil:
			jvm.setText(name, v.text)
		default:
			jvm.setNumber(name, v.number)
			ticks.set(name, v.number)
		}
	})
	if err != nil {
		return JVM{}, err
	}
	jvm.SafepointTime = ticks.duration(ticks.safepoint)
	if javaFeature(jvm.Version) >= syncedApart {
		jvm.SafepointSyncTime = ticks.duration(ticks.sync)
	}
	jvm.ApplicationTime = ticks.duration(ticks.application)
	jvm.GCTime = ticks.duration(ticks.gc.time())
	jvm.Collecting = ticks.gc.pausing()
	return jvm, nil
}

func (j *JVM) setText(name, text []byte) {
	switch string(name) {
	case "java.rt.vmArgs":
		j.VMArgs = string(text)
	case "sun.rt.javaCommand":
		j.JavaCommand = string(text)
	case "java.property.java.version":
		j.Version = string(text)
	}
}

func (j *JVM) setNumber(name []byte, n int64) {
	switch string(name) {
	case "sun.rt.safepoints":
		j.Safepoints = &n
	case "sun.rt.createVmBeginTime":
		j.Started = new(time.UnixMilli(n))
	case "sun.gc.generation.1.space.0.used":
		j.OldUsed = &n
	case "sun.gc.generation.1.space.0.maxCapacity":
		j.OldMax = &n
	}
}

func (t *jvmTicks) set(name []byte, n int64) {
	switch string(name) {
	case "sun.os.hrt.frequency":
		t.frequency = n
	case "sun.rt.safepointTime":
		t.safepoint = &n
	case "sun.rt.safepointSyncTime":
		t.sync = &n
	case "sun.rt.applicationTime":
		t.application = &n
	}
}

// duration converts ticks; nil without a counter or a frequency.
func (t *jvmTicks) duration(ticks *int64) *time.Duration {
	if ticks == nil {
		return nil
	}
	d, ok := ticksDuration(*ticks, t.frequency)
	if !ok {
		return nil
	}
	return &d
}

// ticksDuration converts ticks exactly.
func ticksDuration(ticks, frequency int64) (time.Duration, bool) {
	if ticks < 0 || frequency <= 0 {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(ticks), uint64(time.Second))
	if hi >= uint64(frequency) {
		return math.MaxInt64, true
	}
	ns, _ := bits.Div64(hi, lo, uint64(frequency))
	return time.Duration(min(ns, math.MaxInt64)), true
}

// syncedApart is the version of Java since which sun.rt.safepointTime begins when all threads have
// stopped (SafepointTracing::end; before: RuntimeService::record_safepoint_end, from the beginning).
const syncedApart = 13

// javaFeature is the first number of java.version that says something: "1.8.0_402"
// is Java 8 (JEP 223).
func javaFeature(version string) int {
	version = strings.TrimPrefix(version, "1.")
	digits := version[:len(version)-len(strings.TrimLeft(version, "0123456789"))]
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// VirtualMachine is whose Java a process runs.
type VirtualMachine int

// The virtual machines, by the libraries that a process has mapped. A program of
// GraalVM's native-image has neither.
const (
	NoVirtualMachine VirtualMachine = iota
	HotSpot                         // libjvm.so
	OpenJ9                          // libj9vm29.so, beside a libjvm.so that leads to it
)

// maxMaps bounds the list of mappings; vm.max_map_count is 65,530.
const maxMaps = 16 << 20

// VirtualMachineOf reads /proc/PID/maps; owner is whose process it is.
func VirtualMachineOf(fs hostproc.FS, owner string, pid int) (VirtualMachine, error) {
	maps, err := fs.OpenMemory(owner, pid, "maps")
	if err != nil {
		return NoVirtualMachine, err
	}
	defer maps.Close()
	vm, err := virtualMachine(io.LimitReader(maps, maxMaps))
	return vm, fs.Wrap(pid, "maps", err)
}

func virtualMachine(maps io.Reader) (VirtualMachine, error) {
	vm := NoVirtualMachine
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		_, path, _ := bytes.Cut(lines.Bytes(), []byte{'/'})
		name := path[bytes.LastIndexByte(path, '/')+1:]
		switch {
		case bytes.HasPrefix(name, []byte("libj9vm")):
			return OpenJ9, nil
		case string(name) == "libjvm.so":
			vm = HotSpot
		}
	}
	return vm, lines.Err()
}
