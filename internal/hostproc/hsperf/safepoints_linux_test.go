package hsperf

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The few counters that are read each time are those of a whole reading.
func TestSafepoints(t *testing.T) {
	for name, feature := range map[string]int{"jdk17.hsperfdata": 17, "jdk25.hsperfdata": 25} {
		data := capture(t, name)
		want, err := parseJVM(data)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "1")
		require.NoError(t, os.WriteFile(path, data, 0o600))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		require.NoError(t, err)
		jvm := &File{file: f, size: len(data)}
		var got Safepoints
		for range 2 { // found, and read again
			require.NoError(t, jvm.Safepoints(&got))
			require.Equal(t, Safepoints{
				Begun: *want.Safepoints, Ran: *want.ApplicationTime, Stood: *want.SafepointTime, Synced: *want.SafepointSyncTime,
				Collecting: want.Collecting, Started: *want.Started, Feature: feature,
			}, got, name)
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = jvm.Safepoints(&got) }))

		x := jvm.safepoints
		number := make([]byte, 8)
		x.order.PutUint64(number, uint64(*want.Safepoints+1))
		_, err = f.WriteAt(number, int64(x.begun))
		require.NoError(t, err)
		x.order.PutUint64(number, math.MaxInt64)
		_, err = f.WriteAt(number, int64(x.pauses[0].entry))
		require.NoError(t, err)
		require.NoError(t, jvm.Safepoints(&got))
		require.Equal(t, *want.Safepoints+1, got.Begun)
		require.True(t, got.Collecting)

		require.NoError(t, f.Truncate(100))
		require.Error(t, jvm.Safepoints(&got))
		require.NoError(t, jvm.Close())
	}
}

// Since Java 13 the time until all threads have stopped is not in that of the safepoint: 11 has it
// in both counters, and 17, 21 and 25 do not.
func TestSafepointsAreWaitedFor(t *testing.T) {
	for version, want := range map[string]time.Duration{"1.8.0_402": 0, "11.0.2": 0, "13.0.1": 7 * time.Second, "21": 7 * time.Second, "": 0} {
		p := perfFile{order: binary.LittleEndian}
		data := p.text("java.property.java.version", version).long("sun.os.hrt.frequency", 1000).
			long("sun.rt.safepoints", 3).long("sun.rt.applicationTime", 60_000).long("sun.rt.safepointTime", 1000).long("sun.rt.safepointSyncTime", 7000).bytes()
		x, err := findSafepoints(data)
		require.NoError(t, err)
		var got Safepoints
		x.read(data, &got)
		require.Equal(t, want, got.Synced, version)
		jvm, err := parseJVM(data)
		require.NoError(t, err)
		require.Equal(t, want > 0, jvm.SafepointSyncTime != nil, version)
		if want > 0 {
			require.Equal(t, want, *jvm.SafepointSyncTime)
		}
	}
}

func TestJavaFeature(t *testing.T) {
	for version, want := range map[string]int{"1.8.0_402": 8, "17.0.15": 17, "25": 25, "22-ea": 22, "": 0, "x": 0} {
		require.Equal(t, want, javaFeature(version), version)
	}
}
