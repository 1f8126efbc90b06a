package hsperf

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func capture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	return data
}

func TestParseJVMOfCaptures(t *testing.T) {
	t.Run("jdk 17", func(t *testing.T) {
		jvm, err := parseJVM(capture(t, "jdk17.hsperfdata"))
		require.NoError(t, err)
		require.Equal(t, "17.0.15", jvm.Version)
		require.Equal(t, "-Dfrom.tool=1 -Xmx32m -Dserver.port=8081", jvm.VMArgs, "the first is of JAVA_TOOL_OPTIONS")
		require.Equal(t, "Cap 50000 --server.port=8080", jvm.JavaCommand)
		// As jcmd PID PerfCounter.print showed them: the collectors' 4927569 + 1878625 + 0.
		require.Equal(t, new(6806194*time.Nanosecond), jvm.GCTime)
		require.Equal(t, int64(1795227277759), jvm.Started.UnixMilli())
		require.Positive(t, *jvm.SafepointTime)
		require.Greater(t, *jvm.ApplicationTime, *jvm.SafepointTime)
	})
	t.Run("jdk 25", func(t *testing.T) {
		jvm, err := parseJVM(capture(t, "jdk25.hsperfdata"))
		require.NoError(t, err)
		require.Equal(t, "25.0.3", jvm.Version)
		require.Equal(t, "-Xmx32m", jvm.VMArgs)
		require.Equal(t, new(6850658*time.Nanosecond), jvm.SafepointTime)
		require.Equal(t, new(46166278*time.Nanosecond), jvm.ApplicationTime)
		require.Equal(t, new(6749141*time.Nanosecond), jvm.GCTime)
	})
}

// perfFile writes performance data in either byte order.
type perfFile struct {
	order interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}
	entries []byte
	count   int32
}

func (p *perfFile) long(name string, v int64) *perfFile {
	return p.add(name, 'J', 0, p.order.AppendUint64(nil, uint64(v)))
}

func (p *perfFile) text(name, v string) *perfFile {
	return p.add(name, 'B', int32(len(v)+1), append([]byte(v), 0))
}

func (p *perfFile) add(name string, kind byte, vector int32, value []byte) *perfFile {
	named := append([]byte(name), 0)
	for (entryHeaderSize+len(named))%8 != 0 {
		named = append(named, 0)
	}
	e := p.order.AppendUint32(nil, uint32(entryHeaderSize+len(named)+len(value)))
	e = p.order.AppendUint32(e, entryHeaderSize)
	e = p.order.AppendUint32(e, uint32(vector))
	e = append(e, kind, 0, 0, 0)
	e = p.order.AppendUint32(e, uint32(entryHeaderSize+len(named)))
	p.entries = append(append(append(p.entries, e...), named...), value...)
	p.count++
	return p
}

func (p *perfFile) bytes() []byte {
	b := binary.BigEndian.AppendUint32(nil, perfMagic)
	b = append(b, map[string]byte{"LittleEndian": 1}[p.order.String()], 2, 0, 1)
	b = p.order.AppendUint32(b, uint32(prologueSize+len(p.entries)))
	b = append(b, make([]byte, 12)...) // overflow, time of modification
	b = p.order.AppendUint32(b, prologueSize)
	b = p.order.AppendUint32(b, uint32(p.count))
	return append(b, p.entries...)
}

func TestParseJVMInBothByteOrders(t *testing.T) {
	for _, file := range []*perfFile{{order: binary.BigEndian}, {order: binary.LittleEndian}} {
		data := file.
			long("sun.rt.safepointTime", 1500). // before the frequency
			long("sun.os.hrt.frequency", 1000).
			long("sun.gc.collector.0.time", 250).
			long("sun.gc.collector.1.time", 500).
			long("sun.gc.collector.1.lastEntryTime", 9).
			long("sun.rt.safepoints", 3).
			long("sun.gc.collector.x.time", 9).
			text("java.rt.vmArgs", "-Xmx1g").
			add("java.ci.unknown", 'I', 0, []byte{1, 2, 3, 4}).bytes()
		jvm, err := parseJVM(append(data, 0xff, 0xff)) // the file is longer than what is used
		require.NoError(t, err)
		require.Equal(t, JVM{
			SafepointTime: new(1500 * time.Millisecond), Safepoints: new(int64(3)), Collecting: true, GCTime: new(750 * time.Millisecond), VMArgs: "-Xmx1g",
		}, jvm)
	}
}

func TestCollectorsPause(t *testing.T) {
	for name, tt := range map[string]struct {
		collector   string
		entry, exit int64
		want        bool
	}{
		"none yet":                   {"Serial full collection pauses", 0, 0, false},
		"over":                       {"Serial full collection pauses", 7, 9, false},
		"under way":                  {"Serial full collection pauses", 11, 9, true},
		"of a concurrent cycle":      {"G1 concurrent cycle pauses", 11, 9, true},
		"the application goes on":    {"Shenandoah concurrent phases", 11, 9, false},
		"of a name that says little": {"PSParallelCompact", 11, 9, true},
	} {
		t.Run(name, func(t *testing.T) {
			file := &perfFile{order: binary.LittleEndian}
			jvm, err := parseJVM(file.
				long("sun.gc.collector.1.lastEntryTime", tt.entry).
				long("sun.gc.collector.1.lastExitTime", tt.exit).
				text("sun.gc.collector.1.name", tt.collector).bytes())
			require.NoError(t, err)
			require.Equal(t, tt.want, jvm.Collecting)
		})
	}
}

func TestJVMTicks(t *testing.T) {
	for _, tt := range []struct {
		ticks, frequency int64
		want             *time.Duration
	}{
		{5, 0, nil},
		{5, -1, nil},
		{-5, 1000, nil},
		{3, 2, new(1500 * time.Millisecond)},
		{math.MaxInt64, int64(time.Second), new(time.Duration(math.MaxInt64))},
		{math.MaxInt64, 1, new(time.Duration(math.MaxInt64))},
		{math.MaxInt64, math.MaxInt64, new(time.Second)},
	} {
		ticks := jvmTicks{frequency: tt.frequency}
		require.Equal(t, tt.want, ticks.duration(&tt.ticks), "%d at %d", tt.ticks, tt.frequency)
	}
	require.Nil(t, (&jvmTicks{frequency: 1}).duration(nil))
}

func TestParsePerfDataMalformed(t *testing.T) {
	good := func() []byte {
		return (&perfFile{order: binary.LittleEndian}).long("a", 1).text("b", "x").bytes()
	}
	put := func(at int, v uint32) []byte {
		data := good()
		binary.LittleEndian.PutUint32(data[at:], v)
		return data
	}
	set := func(at int, v byte) []byte {
		data := good()
		data[at] = v
		return data
	}
	ignore := func([]byte, perfValue) {}
	require.NoError(t, parsePerfData(good(), ignore))
	require.ErrorIs(t, parsePerfData(set(prologueMajor, 3), ignore), hostproc.ErrNotSupported)
	require.ErrorIs(t, parsePerfData(set(prologueAccessible, 0), ignore), ErrNoPerfData)
	const first = prologueSize
	for name, data := range map[string][]byte{
		"empty":               nil,
		"short":               good()[:prologueSize-1],
		"text":                bytes.Repeat([]byte("x"), 100),
		"byte order":          set(prologueByteOrder, 2),
		"entries inside":      put(prologueEntryOffset, 4),
		"entries outside":     put(prologueEntryOffset, 4000),
		"entries before":      put(prologueEntryOffset, 0xfffffff0),
		"more entries":        put(prologueNumEntries, 0x7fffffff),
		"entry too short":     put(first+entryLength, 3),
		"entry of no length":  put(first+entryLength, 0),
		"entry too long":      put(first+entryLength, 4000),
		"entry negative":      put(first+entryLength, 0xffffffff),
		"name outside":        put(first+entryName, 4000),
		"name in header":      put(first+entryName, 2),
		"name negative":       put(first+entryName, 0x80000000),
		"data outside":        put(first+entryDataOffset, 4000),
		"data negative":       put(first+entryDataOffset, 0xffffffff),
		"negative vector":     put(first+entryVectorLen, 0xffffffff),
		"cut within an entry": good()[:len(good())-3],
	} {
		require.ErrorIs(t, parsePerfData(data, ignore), hostproc.ErrMalformed, name)
	}
	// A value that its entry has no room for is left out.
	require.NoError(t, parsePerfData(put(first+entryDataOffset, entryHeaderSize+4+8), func(name []byte, v perfValue) {
		require.NotEqual(t, "a", string(name))
	}))
}

func FuzzParseJVM(f *testing.F) {
	m := mutate.Into(f)
	m.Add(capture(f, "jdk17.hsperfdata"))
	m.Add((&perfFile{order: binary.BigEndian}).long("sun.os.hrt.frequency", 1).text("java.rt.vmArgs", "x").bytes())
	m.Fuzz(func(t *testing.T, data []byte) {
		jvm, err := parseJVM(data)
		if err != nil {
			require.Equal(t, JVM{}, jvm)
			return
		}
		require.LessOrEqual(t, len(jvm.VMArgs)+len(jvm.JavaCommand), 2*len(data))
		for _, d := range []*time.Duration{jvm.SafepointTime, jvm.ApplicationTime} {
			require.False(t, d != nil && *d < 0)
		}
	})
}
