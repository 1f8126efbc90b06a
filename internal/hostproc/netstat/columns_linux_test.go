package netstat

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

const smallNetstat = `TcpExt: SyncookiesSent SyncookiesRecv ListenOverflows ListenDrops
TcpExt: 1 2 3 18446744073709551615
IpExt: InNoRoutes
IpExt: 5
`

func TestColumnsOfACapture(t *testing.T) {
	data, err := os.ReadFile("testdata/netstat-6.18")
	require.NoError(t, err)
	names := listenCounterNames()
	cols, err := findColumns(data, "TcpExt", append(names, "NoSuchCounter"))
	require.NoError(t, err)
	values := make([]uint64, len(names)+1)
	require.NoError(t, cols.read(data, values))
	for i, name := range names {
		require.True(t, cols.has(i), name)
		require.Equal(t, slowRead(t, string(data), name), values[i], name)
	}
	require.False(t, cols.has(len(names)))
	require.Zero(t, values[len(names)])
}

// slowRead looks a counter up the plain way.
func slowRead(t *testing.T, file, name string) uint64 {
	t.Helper()
	lines := strings.Split(file, "\n")
	for i, field := range strings.Fields(lines[0]) {
		if field == name {
			n, _, ok := procfile.NextNumber([]byte(strings.Fields(lines[1])[i]))
			require.True(t, ok)
			return n
		}
	}
	t.Fatalf("no %q", name)
	return 0
}

func TestColumns(t *testing.T) {
	cols, err := findColumns([]byte(smallNetstat), "TcpExt", []string{"ListenDrops", "Missing", "SyncookiesSent"})
	require.NoError(t, err)
	values := []uint64{7, 7, 7}
	require.NoError(t, cols.read([]byte(smallNetstat), values))
	require.Equal(t, []uint64{18446744073709551615, 0, 1}, values)

	second, err := findColumns([]byte(smallNetstat), "IpExt", []string{"InNoRoutes"})
	require.NoError(t, err)
	require.NoError(t, second.read([]byte(smallNetstat), values[:1]))
	require.Equal(t, uint64(5), values[0])
}

func TestColumnsMalformed(t *testing.T) {
	for name, file := range map[string]string{
		"empty":          "",
		"other protocol": "IpExt: a\nIpExt: 1\n",
		"no newline":     "TcpExt: ListenDrops",
		"within a line":  "x TcpExt: ListenDrops\nx",
	} {
		_, err := findColumns([]byte(file), "TcpExt", []string{"ListenDrops"})
		require.ErrorIs(t, err, hostproc.ErrMalformed, name)
	}
	const names = "TcpExt: A ListenDrops\n"
	cols, err := findColumns([]byte(names), "TcpExt", []string{"ListenDrops"})
	require.NoError(t, err)
	for name, file := range map[string]string{
		"no values":   names,
		"too few":     names + "TcpExt: 1\n",
		"other":       names + "IpExt: 1 2\n",
		"no number":   names + "TcpExt: 1 x\n",
		"negative":    names + "TcpExt: 1 -2\n",
		"other names": "TcpExt: B ListenDrops\nTcpExt: 1 2\n",
	} {
		require.ErrorIs(t, cols.read([]byte(file), make([]uint64, 1)), hostproc.ErrMalformed, name)
	}
}

func FuzzColumns(f *testing.F) {
	m := mutate.Into(f)
	data, err := os.ReadFile("testdata/netstat-6.18")
	require.NoError(f, err)
	m.Add(data)
	m.Add([]byte(smallNetstat))
	m.Fuzz(func(t *testing.T, file []byte) {
		names := listenCounterNames()
		cols, err := findColumns(file, "TcpExt", names)
		if err != nil {
			require.ErrorIs(t, err, hostproc.ErrMalformed)
			return
		}
		if err := cols.read(file, make([]uint64, len(names))); err != nil {
			require.ErrorIs(t, err, hostproc.ErrMalformed)
		}
	})
}
