package schedule

import (
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A process that has used nearly all local ports towards one peer is warned of in
// the interval of one scan, and so is one that has used them all. (The outgoing
// connections were counted in the second of the two readings only, and what is
// high in one is no finding.)
func TestEphemeralPortsWithinAnInterval(t *testing.T) {
	nettest.Root(t)
	for _, used := range []int{95, 100} {
		t.Run(fmt.Sprint(used), func(t *testing.T) {
			l := newLab(t, func(o *Options) { o.All, o.Ports = false, []uint16{8080} })
			l.Sysctl(t, "net.ipv4.ip_local_port_range", "20000 20099")
			l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 10})
			peer := netip.MustParseAddrPort("127.0.0.1:5432")
			l.listen(t, nettest.ListenOptions{Address: peer.String(), Backlog: 200})
			l.queue(t, peer, used)
			require.NoError(t, l.Observe(context.Background(), 100*time.Millisecond))
			got := only(t, l.Snapshot())
			require.NotNil(t, got.Process)
			require.NotNil(t, got.Process.Busiest)
			require.Equal(t, model.Destination{Address: peer, Ports: used}, *got.Process.Busiest)
			require.Equal(t, model.StatusWarning, got.Verdict.Status, "%+v", got.Verdict)
			require.Equal(t, model.CauseEphemeralPorts, got.Verdict.Cause)
		})
	}
}
