package connections

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// A client of TLS that has its answer says that it closes, and closes: nobody has read that yet, and
// it has given up nothing.
func TestFarewellOfTLS(t *testing.T) {
	closed := func(port uint16, unread uint32, sent uint32) *sockdiag.Socket {
		s := &sockdiag.Socket{State: sockdiag.CloseWait, Inode: 1, HasInfo: true, RecvQ: unread, Remote: netip.AddrPortFrom(netip.IPv4Unspecified(), port)}
		s.Info.BytesReceived, s.Info.DataSegsOut, s.Info.DataSegsIn = 600, sent, 4
		return s
	}
	for name, c := range map[string]struct {
		socket    *sockdiag.Socket
		connector *model.Connector
		abandoned int
	}{
		"TLS, a close_notify":            {closed(1, 1+24, 3), &model.Connector{TLS: true}, 0},
		"TLS, a request":                 {closed(1, 1+90, 3), &model.Connector{TLS: true}, 1},
		"TLS, nothing was sent":          {closed(1, 1+24, 0), &model.Connector{TLS: true}, 1},
		"no TLS, as many bytes":          {closed(1, 1+24, 3), &model.Connector{}, 1},
		"it is not known what is spoken": {closed(1, 1+24, 3), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var f Found
			f.Add(c.socket)
			f.Add(closed(2, 1+200, 3)) // another one's request
			require.Equal(t, 1+c.abandoned, f.Behind(c.connector).Abandoned)
			require.Len(t, f.Unanswered(c.connector), 1+c.abandoned)
			require.Len(t, f.Closed, 2)
		})
	}
}
