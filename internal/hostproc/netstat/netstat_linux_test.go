package netstat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// The counters of a namespace move there and nowhere else, and both readers
// agree.
func TestNetCounters(t *testing.T) {
	fs := hostfs.Real(t)
	tid := proctest.MoveToNetNS(t)
	file, err := OpenListenCounters(fs, tid)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var before, after ListenCounters
	require.NoError(t, file.Read(&before))
	require.Equal(t, ListenCounters{}, before, "a new namespace")

	server := nettest.Listen(t, nettest.ListenOptions{Backlog: 0})
	nettest.Queue(t, server.Addr, 1)
	nettest.Overflow(t, server.Addr, 3)
	require.NoError(t, file.Read(&after))
	require.EqualValues(t, 3, after.ListenOverflows)
	require.EqualValues(t, 3, after.ListenDrops)

	counters, err := netCounters(fs, tid)
	require.NoError(t, err)
	require.Equal(t, after.ListenDrops, counters["ListenDrops"])
	require.Equal(t, after.ListenOverflows, counters["ListenOverflows"])
	require.Equal(t, after.ReqQFullDrop, counters["TCPReqQFullDrop"])
	require.Positive(t, counters["PassiveOpens"])
	for _, name := range []string{
		"TCPReqQFullDoCookies", "SyncookiesSent", "SyncookiesRecv", "SyncookiesFailed", "EmbryonicRsts", "TCPTimeouts",
		"TCPSynRetrans", "TCPAbortOnMemory", "TCPMemoryPressures", "OutRsts", "EstabResets", "AttemptFails",
		"ActiveOpens", "CurrEstab", "OutSegs", "RetransSegs",
	} {
		require.Contains(t, counters, name)
	}

	kept, err := OpenNetCounters(fs, tid)
	require.NoError(t, err)
	defer func() { require.NoError(t, kept.Close()) }()
	fast := map[string]uint64{}
	require.NoError(t, kept.Read(fast))
	require.Equal(t, counters, fast, "the namespace is quiet")
}

func TestNetCountersOfAnOldKernel(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{
		"7/net/netstat": "TcpExt: ListenOverflows ListenDrops TCPAbortOnMemory\nTcpExt: 4 6 2\n",
		"7/net/snmp":    "Ip: Forwarding OutNoRoutes\nIp: 1 5\nIcmp: InMsgs InDestUnreachs\nIcmp: 4 3\nTcp: RtoAlgorithm MaxConn CurrEstab\nTcp: 1 -1 12\n",
	})
	fs := hostfs.At(t, dir)
	counters, err := netCounters(fs, 7)
	require.NoError(t, err)
	require.Equal(t, map[string]uint64{"ListenOverflows": 4, "ListenDrops": 6, "TCPAbortOnMemory": 2, "CurrEstab": 12, "OutNoRoutes": 5, "InDestUnreachs": 3}, counters)
	kept, err := OpenNetCounters(fs, 7)
	require.NoError(t, err)
	fast := map[string]uint64{}
	require.NoError(t, kept.Read(fast))
	require.Equal(t, counters, fast)
	require.NoError(t, kept.Close())
	require.Error(t, kept.Read(fast))
}

func TestListenCountersReadAllocatesNothing(t *testing.T) {
	file, err := OpenListenCounters(hostfs.Real(t), os.Getpid())
	require.NoError(t, err)
	var c ListenCounters
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := file.Read(&c); err != nil {
			t.Error(err)
		}
	}))
	require.NoError(t, file.Close())
	require.ErrorIs(t, file.Close(), os.ErrClosed)
	require.ErrorIs(t, file.Read(&c), unix.EBADF)
}

func TestListenCountersFileChanges(t *testing.T) {
	long := "TcpExt: " + strings.Repeat("Padding ", 5000) + "ListenOverflows ListenDrops\nTcpExt: " + strings.Repeat("1 ", 5000) + "3 4\n"
	dir := proctest.Fake(t, map[string]string{"7/net/netstat": "TcpExt: ListenOverflows ListenDrops\nTcpExt: 1 2\n"})
	fs := hostfs.At(t, dir)
	file, err := OpenListenCounters(fs, 7)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	var c ListenCounters
	require.NoError(t, file.Read(&c))
	require.Equal(t, ListenCounters{ListenOverflows: 1, ListenDrops: 2}, c)

	name := filepath.Join(dir, "7/net/netstat")
	require.NoError(t, os.WriteFile(name, []byte(long), 0o600))
	require.NoError(t, file.Read(&c), "longer than the buffer")
	require.Equal(t, ListenCounters{ListenOverflows: 3, ListenDrops: 4}, c)

	require.NoError(t, os.WriteFile(name, []byte("TcpExt: ListenOverflows\nTcpExt: 1\n"), 0o600))
	require.ErrorIs(t, file.Read(&c), hostproc.ErrMalformed, "no ListenDrops is not none")
	require.Equal(t, ListenCounters{ListenOverflows: 3, ListenDrops: 4}, c, "left alone")
}

// sockstat reads them once.
func sockstat(fs hostproc.FS, pid int) (map[string]int, error) {
	f, err := OpenSockstat(fs, pid)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Read()
}

func TestSockstat(t *testing.T) {
	fs := hostfs.Real(t)
	tid := proctest.MoveToNetNS(t)
	stat, err := sockstat(fs, tid)
	require.NoError(t, err)
	require.Zero(t, stat["inuse"])
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	require.NoError(t, unix.Listen(fd, 1))
	stat, err = sockstat(fs, tid)
	require.NoError(t, err)
	require.Equal(t, 1, stat["inuse"])
	for _, name := range []string{"orphan", "tw", "alloc", "mem"} {
		require.Contains(t, stat, name)
	}
	fd6, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd6) }()
	require.NoError(t, unix.Listen(fd6, 1))
	stat, err = sockstat(fs, tid)
	require.NoError(t, err)
	require.Equal(t, 2, stat["inuse"], "sockets of both families")
}

// What was opened stays the namespace's, also for a thread that has left it.
func TestFilesStayTheNamespaces(t *testing.T) {
	fs := hostfs.Real(t)
	proctest.MoveToNetNS(t)
	inside, err := OpenSockstat(fs, hostproc.CallingThread)
	require.NoError(t, err)
	defer func() { require.NoError(t, inside.Close()) }()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	require.NoError(t, unix.Listen(fd, 1))
	require.NoError(t, unix.Unshare(unix.CLONE_NEWNET))
	stat, err := inside.Read()
	require.NoError(t, err)
	require.Equal(t, 1, stat["inuse"])
	stat, err = sockstat(fs, hostproc.CallingThread)
	require.NoError(t, err)
	require.Zero(t, stat["inuse"], "where the thread is now")
}

func TestParseSockstat(t *testing.T) {
	for line, want := range map[string]map[string]int{
		"UDP: inuse 1\nTCP: inuse 4 tw 1\n": {"inuse": 4, "tw": 1},
		"TCP:\n":                            {},
		"TCP6: inuse 4\n":                   nil,
		"":                                  nil,
	} {
		got, err := parseSockstat([]byte(line), "TCP:")
		require.NoError(t, err, line)
		require.Equal(t, want, got, line)
	}
	for _, line := range []string{"TCP: inuse\n", "TCP: inuse x\n", "TCP: inuse -1"} {
		_, err := parseSockstat([]byte(line), "TCP:")
		require.ErrorIs(t, err, hostproc.ErrMalformed, line)
	}
}

func FuzzParseSockstat(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("sockets: used 3\nTCP: inuse 4 orphan 0 tw 1 alloc 9 mem 2\n"))
	m.Fuzz(func(t *testing.T, data []byte) {
		out, err := parseSockstat(data, "TCP:")
		require.True(t, err == nil || out == nil)
		for _, n := range out {
			require.GreaterOrEqual(t, n, 0)
		}
	})
}

func TestSockstatWithoutIPv6(t *testing.T) {
	fs := hostfs.At(t, proctest.Fake(t, map[string]string{"7/net/sockstat": "sockets: used 3\nTCP: inuse 4 orphan 0 tw 1 alloc 9 mem 2\n"}))
	stat, err := sockstat(fs, 7)
	require.NoError(t, err)
	require.Equal(t, 4, stat["inuse"])
}

func TestSockstatWithoutTCP(t *testing.T) {
	fs := hostfs.At(t, proctest.Fake(t, map[string]string{"7/net/sockstat": "sockets: used 3\nUDP: inuse 1 mem 2\n"}))
	_, err := sockstat(fs, 7)
	require.ErrorIs(t, err, hostproc.ErrMalformed)
}

func TestSysctlsOfTheThreadsNamespace(t *testing.T) {
	fs := hostfs.Real(t)
	proctest.MoveToNetNS(t)
	require.NoError(t, os.WriteFile("/proc/sys/net/core/somaxconn", []byte("77"), 0o600))
	require.NoError(t, os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40100"), 0o600))
	inside, err := Sysctls(fs)
	require.NoError(t, err)
	require.Equal(t, 77, inside["somaxconn"])
	require.Equal(t, 40000, inside["ip_local_port_range_min"])
	require.Equal(t, 40100, inside["ip_local_port_range_max"])
	require.Contains(t, inside, "tcp_max_syn_backlog")
	require.Contains(t, inside, "tcp_syncookies")
	require.Contains(t, inside, "tcp_abort_on_overflow")

	outside := make(chan map[string]int)
	go func() {
		values, err := Sysctls(fs)
		if err != nil {
			t.Error(err)
		}
		outside <- values
	}()
	values := <-outside
	require.NotEqual(t, 77, values["somaxconn"])
	require.Contains(t, values, "tcp_mem_high", "of the initial namespace only")
}

func TestSysctlsAbsent(t *testing.T) {
	dir := proctest.Fake(t, map[string]string{"sys/net/core/somaxconn": "128\n"})
	fs := hostfs.At(t, dir)
	values, err := Sysctls(fs)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"somaxconn": 128}, values)

	proctest.WriteTree(t, dir, map[string]string{"sys/net/ipv4/tcp_syncookies": "on\n"})
	_, err = Sysctls(fs)
	require.ErrorContains(t, err, "tcp_syncookies")
}

func TestZombieIsGone(t *testing.T) {
	fs := hostfs.Real(t)
	c := proctest.Start(t, "wait", "")
	require.NoError(t, c.Process.Kill())
	require.Eventually(t, func() bool {
		p, err := fs.Process(c.PID())
		return err == nil && p.Exited()
	}, time.Minute, time.Millisecond)
	require.ErrorIs(t, KernelSockets(fs, c.PID(), func(uint32) {}), hostproc.ErrNoProcess)
	_, err := OpenListenCounters(fs, c.PID())
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
	_, err = netCounters(fs, c.PID())
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}
