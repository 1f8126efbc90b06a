package sockdiag

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

func TestAtLeast(t *testing.T) {
	for release, want := range map[string]bool{
		"6.9.0": true, "6.9-rc1": true, "6.18.44-cloud": true, "7.0.1": true, "10.0": true,
		"6.8.12-1-pve": false, "6.1.0-18-amd64": false, "5.14.0-427.el9.x86_64": false, "4.18.0": false,
		"": false, "six": false,
	} {
		require.Equal(t, want, atLeast(release, 6, 9), release)
	}
}

// Both ways to ask have the same answer.
func TestAtOnceOrNot(t *testing.T) {
	nettest.Namespace(t).Do(func() {
		l := nettest.Listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
		nettest.Queue(t, l.Addr, 3)
		for _, atOnce := range []bool{true, false} {
			c, err := Dial()
			require.NoError(t, err)
			c.sock.atOnce = atOnce
			asks := []Ask{
				{ID: ListenerID{Family: FamilyIPv4, Local: l.Addr}, Inode: l.Inode},
				{ID: ListenerID{Family: FamilyIPv4, Local: netip.MustParseAddrPort("127.0.0.1:8081")}},
			}
			answers := 0
			require.NoError(t, c.LookupEach(asks, func(i int, found *Listener, err error) {
				answers++
				if i == 1 {
					require.ErrorIs(t, err, ErrNotFound)
					return
				}
				require.NoError(t, err)
				require.EqualValues(t, 3, found.RecvQ)
				require.EqualValues(t, 5, found.SendQ)
			}))
			require.Equal(t, 2, answers)
			require.NoError(t, c.Close())
			require.ErrorIs(t, c.LookupEach(asks, nil), ErrClosed)
		}
	})
}
