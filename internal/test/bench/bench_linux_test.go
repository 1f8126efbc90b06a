package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// TestMain doubles as the processes that make the sockets.
func TestMain(m *testing.M) {
	if code, ok := runChild(os.Args[1:]); ok {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// The kernel has as many sockets as the table says, a tenth of them the watched
// server's, and the bare requests are ones that it understands.
func TestTableGrows(t *testing.T) {
	ns := nettest.Namespace(t)
	var sockets table
	defer sockets.stop()
	ns.Do(func() {
		kernel, err := newBare()
		require.NoError(t, err)
		defer kernel.close()
		for _, size := range []int{10, 200, 1000} {
			require.NoError(t, sockets.grow(t.Context(), size))
			require.Equal(t, size, sockets.size)
			all, err := kernel.count(dumpRequest(statesConnected, 0, 0))
			require.NoError(t, err)
			require.Equal(t, size, all)
			theirs, err := kernel.count(dumpRequest(statesConnected, extInfo, watchedPort))
			require.NoError(t, err)
			require.Equal(t, size/10, theirs)
			require.NoError(t, kernel.dump(dumpRequest(statesConnected, extInfo, watchedPort)))
		}
		listening, err := kernel.count(dumpRequest(stateListen, extMemory, 0))
		require.NoError(t, err)
		require.Equal(t, len(sockets.pairs), listening)
		require.NoError(t, kernel.once(exactRequest(watchedPort)))
		require.EqualValues(t, 20, kernel.buffer[4], "SOCK_DIAG_BY_FAMILY, not an error")
	})
}

func TestProcessorTimeAndMemory(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "tick", "1ms")
	require.NoError(t, cmd.Start())
	defer rig.End(cmd)
	require.Eventually(t, func() bool {
		used, err := rig.CPUTime(cmd.Process.Pid)
		require.NoError(t, err)
		return used > 2*time.Millisecond
	}, time.Minute, 5*time.Millisecond)
	now, highest, err := rig.Resident(cmd.Process.Pid)
	require.NoError(t, err)
	require.Greater(t, now, int64(1<<20))
	require.GreaterOrEqual(t, highest, now)
	files, err := rig.Shared(cmd.Process.Pid)
	require.NoError(t, err)
	require.Less(t, files, now)
}

func TestAllocations(t *testing.T) {
	var keep [][]byte
	n, err := allocations(100, func() error { keep = append(keep[:0], make([]byte, 100)); return nil })
	require.NoError(t, err)
	require.InDelta(t, 1, n, 0.2)
	none, err := allocations(100, func() error { return nil })
	require.NoError(t, err)
	require.Less(t, none, 0.5)
}

func TestParseTail(t *testing.T) {
	got, err := parseTail(`Running 1s test @ http://127.0.0.1:8090/hello?ms=0
  1 threads and 32 connections
  Latency Distribution
     50%    4.61ms
     75%    6.26ms
     90%    9.06ms
     99%   21.88ms
  7012 requests in 1.00s, 1.12MB read
Requests/sec:   6980.81
Transfer/sec:      1.12MB
`)
	require.NoError(t, err)
	require.Equal(t, 21880*time.Microsecond, got)
	_, err = parseTail("unable to connect")
	require.ErrorContains(t, err, "unable to connect")
}
