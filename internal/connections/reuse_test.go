package connections

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// A socket in TIME_WAIT keeps its port from new connections to the same peer, but for
// tcp_tw_reuse: of the 100 ports only those count as taken that it does not give.
func TestReuse(t *testing.T) {
	loopback, far := netip.MustParseAddrPort("[::ffff:127.0.0.1]:9000"), netip.MustParseAddrPort("10.0.0.9:5432")
	old, young := time.Minute-3*time.Second, time.Minute-500*time.Millisecond // to go
	sysctl := func(reuse, timestamps int) map[string]int {
		return map[string]int{"tcp_tw_reuse": reuse, "tcp_timestamps": timestamps}
	}
	delayed := sysctl(1, 1)
	delayed["tcp_tw_reuse_delay"] = 5000
	for name, c := range map[string]struct {
		sysctl map[string]int
		remote netip.AddrPort
		left   time.Duration
		want   bool
	}{
		"off":                            {sysctl(0, 1), loopback, old, false},
		"everywhere":                     {sysctl(1, 1), far, old, true},
		"everywhere, within the second":  {sysctl(1, 1), far, young, false},
		"everywhere, a longer delay":     {delayed, far, old, false},
		"without timestamps":             {sysctl(1, 0), far, old, false},
		"the loopback":                   {sysctl(2, 1), loopback, old, true},
		"the loopback, in the second":    {sysctl(2, 1), loopback, young, false},
		"the loopback's rule, elsewhere": {sysctl(2, 1), far, old, false},
		"not known":                      {nil, loopback, old, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := make(Peers)
			s := sockdiag.Socket{State: sockdiag.TimeWait, Remote: c.remote, Expires: uint32(c.left.Milliseconds())}
			p.Add(&s, ReuseOf(c.sysctl))
			held := sockdiag.Socket{State: sockdiag.Established, Remote: c.remote, Inode: 7}
			p.Add(&held, ReuseOf(c.sysctl))
			_, d := p.Busiest()
			want := &Destination{Ports: 2, TimeWait: 1, Inodes: []uint32{7}}
			if c.want {
				want.Reusable = 1
			}
			require.Equal(t, want, d)
		})
	}
}
