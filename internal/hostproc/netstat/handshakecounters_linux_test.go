package netstat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestHandshakeCounters(t *testing.T) {
	fs := hostfs.Real(t)
	tid := proctest.MoveToNetNS(t)
	file, err := OpenHandshakeCounters(fs, tid)
	require.NoError(t, err)
	var before, after HandshakeCounters
	require.NoError(t, file.Read(&before))
	require.Equal(t, HandshakeCounters{}, before, "a new namespace")

	// With backlog 0 Linux 5.10 answers by a cookie.
	server := nettest.Listen(t, nettest.ListenOptions{Backlog: 1})
	nettest.Queue(t, server.Addr, 2)
	require.NoError(t, file.Read(&after))
	require.EqualValues(t, 2, after.Opened)
	require.GreaterOrEqual(t, after.Sent, uint64(3))
	after.Opened, after.Sent = 0, 0
	require.Equal(t, HandshakeCounters{}, after, "clients were let in, and nothing else")

	nettest.Overflow(t, server.Addr, 3)
	server.Close() // with clients in its queue
	require.NoError(t, file.Read(&after))
	for _, one := range []*counterFile{file.netstat, file.snmp} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if err := one.read(); err != nil {
				t.Error(err)
			}
		}))
	}
	require.EqualValues(t, 3, after.Drops)
	require.Positive(t, after.Resets)
	require.EqualValues(t, 4, after.Killed, "both ends are here")
	require.NoError(t, file.Close())
}

// Where one of them is missing nothing would be certain.
func TestHandshakeCountersOfAnOldKernel(t *testing.T) {
	fs, err := hostproc.NewFS(proctest.Fake(t, map[string]string{
		"7/net/netstat": "TcpExt: ListenDrops TCPReqQFullDoCookies EmbryonicRsts\nTcpExt: 4 6 2\n",
		"7/net/snmp":    "Tcp: PassiveOpens EstabResets OutSegs OutRsts\nTcp: 1 2 3 4\n",
	}))
	require.NoError(t, err)
	file, err := OpenHandshakeCounters(fs, 7)
	require.NoError(t, err)
	c := HandshakeCounters{Sent: 9}
	require.ErrorIs(t, file.Read(&c), hostproc.ErrMalformed)
	require.Equal(t, HandshakeCounters{Sent: 9}, c)
	require.NoError(t, file.Close())
}
