package rig

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// A load has come when the MBeans and the clients say so, and not a moment before.
func TestFull(t *testing.T) {
	one := new(Crowd)
	one.Connected.Store(30)
	one.Answered.Store(20)
	says := ConnectorTruth{Busy: 6, Connections: 31}
	for _, tt := range []struct {
		full Full
		met  bool
	}{
		{Full{Busy: 6, Connections: 30}, true},
		{Full{Busy: 5, Connections: 30}, false},
		{Full{Busy: 5, OrMore: true, Connections: 30}, true},
		{Full{Busy: 7, OrMore: true, Connections: 30}, false},
		{Full{Busy: 6, Connections: 32}, false},
		{Full{Busy: 6, Connections: 30, Exactly: true}, false},
		{Full{Busy: 6, Connections: 31, Exactly: true}, true},
		{Full{Any: true, Connections: 30, Connected: 30}, true},
		{Full{Any: true, Connections: 30, Connected: 31}, false},
		{Full{Busy: 6, Answered: 20}, true},
		{Full{Busy: 6, Answered: 21}, false},
	} {
		require.Equal(t, tt.met, tt.full.met(says, []*Crowd{one}), "%+v", tt.full)
	}
}

func TestMatches(t *testing.T) {
	want := []string{"saturated max_threads", "ok", "* jvm_pause"}
	require.True(t, matches("saturated", "max_threads", want))
	require.True(t, matches("ok", "", want))
	require.True(t, matches("losing", "jvm_pause", want))
	require.False(t, matches("losing", "max_threads", want))
	require.False(t, matches("ok", "max_threads", want))
}

// A table keeps the rows that were not run, in the order of the cases, and drops those
// of cases that are no more.
func TestTable(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.WriteFile("go.mod", []byte("module x\n"), 0o600))
	path := filepath.Join(dir, "table.md")
	require.NoError(t, os.WriteFile(path, []byte("# Old\n\n| case | truth | said | |\n|---|---|---|---|\n| gone | a | b | right |\n| kept | as | before | right |\n"), 0o600))
	table := Open("table.md", "# New\n\n", []string{"first|one", "kept"})
	table.put(Row{Name: "first|one", Truth: "a\nb", Said: "c|d", Wrong: []string{"x", "y"}})
	require.Equal(t, "# New\n\n| first\\|one | a b | c\\|d | **wrong**: x; y |\n| kept | as | before | right |\n", table.String())
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(old), "# Old", "a plain go test writes nothing")
	t.Setenv("TCPDIAG_TESTS", "full")
	table.put(Row{Name: "kept", Skipped: "not run: nginx is not installed"})
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, table.String(), string(now))
	require.Contains(t, string(now), "| kept |  |  | not run: nginx is not installed |\n")
	table.Head(func(rows []string) string { return fmt.Sprintf("%d rows\n", len(rows)) })
	require.Contains(t, table.String(), "2 rows\n| first")
}

func TestResult(t *testing.T) {
	require.Equal(t, "right", Row{}.Result())
	require.Equal(t, "unknown, and says so", Row{Unknown: true}.Result())
	require.Equal(t, "**wrong**: x", Row{Unknown: true, Wrong: []string{"x"}, Skipped: "undecided"}.Result(), "what is wrong is not hidden")
}

// A backend that works at two requests at a time lets the third one wait.
func TestBackend(t *testing.T) {
	c := &Case{TB: t, Ctx: t.Context()}
	t.Cleanup(c.Unwind)
	b := (&Backend{AtOnce: 2, Delay: 200 * time.Millisecond}).Serve(c)
	began := time.Now()
	var conns []net.Conn
	for range 3 {
		conn, err := net.Dial("tcp", b.Address)
		require.NoError(t, err)
		_, err = conn.Write([]byte("1\n"))
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	require.Eventually(t, func() bool { return b.Waiting.Load() == 3 || time.Since(began) > 200*time.Millisecond }, time.Minute, time.Millisecond)
	for _, conn := range conns {
		_, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.GreaterOrEqual(t, time.Since(began), 400*time.Millisecond, "two turns")
	require.Eventually(t, func() bool { return b.Waiting.Load() == 0 }, time.Minute, time.Millisecond)
}

func TestTally(t *testing.T) {
	var one, two demo.Outcomes
	one.Count[demo.OK], one.Latencies = 2, []time.Duration{3, 1}
	two.Count[demo.Reset], two.Latencies = 1, []time.Duration{2}
	var sum Tally
	sum.Add(one)
	sum.Add(two)
	got := sum.Sum()
	require.Equal(t, 2, got.Of(demo.OK))
	require.Equal(t, 1, got.Lost())
	require.Equal(t, []time.Duration{1, 2, 3}, got.Latencies)
	sum.Reset()
	require.Zero(t, sum.Sum().Of(demo.OK))
}

// What a case began last it ends first, and from a mark on what came after it.
func TestUnwind(t *testing.T) {
	c := &Case{TB: t, Ctx: t.Context()}
	var ended []string
	end := func(name string) func() { return func() { ended = append(ended, name) } }
	c.AtEnd(end("a"))
	c.AtLast(end("last"))
	mark := c.Mark()
	c.AtEnd(end("b"))
	c.AtEnd(end("c"))
	c.UnwindTo(mark)
	require.Equal(t, []string{"c", "b"}, ended)
	c.Unwind()
	c.Unwind()
	require.Equal(t, []string{"c", "b", "a", "last"}, ended)
}

func TestFirstPort(t *testing.T) {
	require.Equal(t, "81", firstPort("server { listen 81 proxy_protocol; location / { proxy_pass http://127.0.0.1:8080; } }"))
}

func TestSeries(t *testing.T) {
	s := Series{`a_total{port="1",x="y"}`: 2, `a_total{port="2",x="y"}`: 3, `a_total_more{port="1"}`: 5}
	require.InDelta(t, 5., s.Sum("a_total"), 0)
	got, ok := s.Find("a_total", `port="2"`)
	require.True(t, ok)
	require.InDelta(t, 3., got, 0)
	_, ok = s.Find("a_total", `x="y"`)
	require.False(t, ok, "two of them")
}
