package netns_test

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// The interfaces are those of the namespace that the thread is in, as the standard library
// sees them there.
func TestDevices(t *testing.T) {
	ns := nettest.Namespace(t)
	ns.Do(func() {
		list, err := net.Interfaces()
		require.NoError(t, err)
		require.NotEmpty(t, list)
		indices := []uint32{9999}
		for _, i := range list {
			indices = append(indices, uint32(i.Index))
		}
		got, err := netns.Devices(indices)
		require.NoError(t, err)
		require.Len(t, got, len(list))
		for _, i := range list {
			require.Equal(t, i.Name, got[uint32(i.Index)])
		}
	})
}
