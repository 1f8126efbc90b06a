package connections

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Requests whose clients have closed are followed until it shows whether these had given up: where they are many, and lately, and no
// finished connections of TLS.
func TestGivesUp(t *testing.T) {
	tls := &model.Connector{TLS: true}
	add := func(f *Found, n int, ago time.Duration, unread uint32, sent uint32) {
		for range n {
			f.Add(&sockdiag.Socket{
				State: sockdiag.CloseWait, Inode: 1, RecvQ: unread, HasInfo: true, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(len(f.Closed))),
				Info: sockdiag.TCPInfo{BytesReceived: 99, DataSegsIn: 1, DataSegsOut: sent, BytesAcked: uint64(sent), LastDataRecv: time.Hour, LastAckRecv: ago},
			})
		}
	}
	for name, c := range map[string]struct {
		lately, before, farewells, serving int
		connector                          *model.Connector
		want                               bool
	}{
		"nobody":                      {},
		"two":                         {lately: 2},
		"three":                       {lately: 3, want: true},
		"forgotten ones":              {before: 100},
		"two beside forgotten ones":   {lately: 2, before: 100},
		"three among 15":              {lately: 3, serving: 12, want: true},
		"three among 16":              {lately: 3, serving: 13},
		"a hundred among 5000":        {lately: 100, serving: 4900, want: true},
		"TLS":                         {lately: 3, connector: tls, want: true},
		"TLS, finished ones":          {farewells: 50, connector: tls},
		"TLS, two and finished ones":  {lately: 2, farewells: 50, connector: tls},
		"no TLS, answers were before": {farewells: 50, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			var f Found
			add(&f, c.lately, time.Second, 100, 0)
			add(&f, c.before, closedLately, 100, 0)
			add(&f, c.farewells, time.Second, 1+24, 3)
			for range c.serving {
				f.Add(&sockdiag.Socket{
					State: sockdiag.Established, Inode: 1, HasInfo: true,
					Info: sockdiag.TCPInfo{BytesReceived: 99, DataSegsIn: 1, LastDataRecv: time.Second, LastDataSent: time.Second},
				})
			}
			require.Zero(t, f.Counts.Phases[model.Idle])
			require.Equal(t, c.want, f.GivesUp(c.connector))
		})
	}
}
