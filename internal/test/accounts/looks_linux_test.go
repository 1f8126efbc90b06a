package accounts

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/handshake"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// One short connection every 0.1 s, and one to a port on which nothing listens: what a look of
// half a second to five seconds says of them is the number of that time, but for what packets
// take to be read.
func TestShortLooks(t *testing.T) {
	ns := nettest.Namespace(t)
	_, to, stop := serve(t, ns, demo.ServerOptions{Address: "127.0.0.1:0", MaxThreads: 5, MaxConnections: 12, AcceptCount: 4, ServiceTime: 5 * time.Millisecond})
	defer stop()
	closed := netip.AddrPortFrom(to.Addr(), 1)
	tap := openTap(t, ns, nil, to.Port(), closed.Port())
	crowds := []*crowd{newCrowd(t, to, patience{connect: time.Second, read: time.Second}), newCrowd(t, closed, patience{connect: time.Second})}
	crowds[1].ports = firstPort + 5000
	looks := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second}
	start := time.Now()
	for _, look := range looks {
		for time.Since(start) < look {
			ns.Do(func() {
				for _, c := range crowds {
					c.begin(false)
				}
			})
			for next := time.Now().Add(100 * time.Millisecond); time.Now().Before(next); {
				for _, c := range crowds {
					c.step(5 * time.Millisecond)
				}
			}
		}
		r, err := tap.Report()
		require.NoError(t, err)
		at := time.Since(start) - handshake.Lag - 250*time.Millisecond // the wheel's tick, and a busy machine
		for i, c := range crowds {
			over, begun := uint64(0), uint64(len(c.clients))
			for _, k := range c.clients {
				if k.over > 0 && k.over <= at {
					over++
				}
			}
			for _, e := range r.Endpoints {
				if e.Addr != c.to {
					continue
				}
				of := []outcome.Outcome{outcome.Connected, outcome.Refused}[i]
				require.GreaterOrEqual(t, e.Clients[of], over, "%v after %v", of, look)
				require.LessOrEqual(t, e.Clients[of], begun)
			}
		}
		require.Len(t, r.Endpoints, 2, look)
	}
}
