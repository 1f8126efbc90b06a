package accounts

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Clients that are refused at another address of the loopback than the server's, on its port:
// they are counted there.
func TestRefusedAtAnotherAddress(t *testing.T) {
	ns := nettest.Namespace(t)
	_, to, stop := serve(t, ns, demo.ServerOptions{Address: "127.0.0.1:0", MaxThreads: 5, MaxConnections: 12, AcceptCount: 4, ServiceTime: 5 * time.Millisecond})
	defer stop()
	elsewhere := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), to.Port())
	tap := openTap(t, ns, nil, to.Port())
	c := newCrowd(t, elsewhere, patience{connect: time.Second})
	ns.Do(func() {
		for range 30 {
			c.begin(false)
		}
	})
	for c.step(5 * time.Millisecond) {
	}
	for _, k := range c.clients {
		require.Equal(t, refused, k.how)
	}
	require.Eventually(t, func() bool {
		r, err := tap.Report()
		require.NoError(t, err)
		for _, e := range r.Endpoints {
			if e.Addr == elsewhere {
				return e.Clients[outcome.Refused] == 30
			}
		}
		return false
	}, time.Minute, 50*time.Millisecond)
}
