package netstat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// The listeners of the namespace that the process is in, of both families; connections are none.
func TestListening(t *testing.T) {
	fs := hostfs.Real(t)
	tid := proctest.MoveToNetNS(t)
	four := nettest.Listen(t, nettest.ListenOptions{Address: "127.0.0.1:0", Backlog: 5})
	six := nettest.Listen(t, nettest.ListenOptions{Address: "[::]:0", Backlog: 5})
	nettest.Queue(t, four.Addr, 2)
	got := map[uint16]uint32{}
	require.NoError(t, Listening(fs, tid, func(port uint16, inode uint32) { got[port] = inode }))
	require.Equal(t, map[uint16]uint32{four.Addr.Port(): four.Inode, six.Addr.Port(): six.Inode}, got)
}
