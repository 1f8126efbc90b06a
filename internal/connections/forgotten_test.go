package connections

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// A connection that the server has ended is forgotten by something in between where its FIN alone has had no answer for
// seconds, and another connection of the same address has been heard of meanwhile.
func TestForgotten(t *testing.T) {
	here, there := netip.MustParseAddrPort("10.0.0.7:41000"), netip.MustParseAddrPort("10.0.0.8:41000")
	fin := func(state sockdiag.State, sendQ uint32, repeated uint8, rto time.Duration) *sockdiag.Socket {
		return &sockdiag.Socket{Remote: here, State: state, SendQ: sendQ, HasInfo: true, Info: sockdiag.TCPInfo{Retransmits: repeated, RTO: rto}}
	}
	other := func(from netip.AddrPort, heard time.Duration) *sockdiag.Socket {
		return &sockdiag.Socket{Remote: from, State: sockdiag.Established, Inode: 1, HasInfo: true, Info: sockdiag.TCPInfo{LastAckRecv: heard}}
	}
	long := fin(sockdiag.FinWait1, 1, 5, 6400*time.Millisecond)
	for name, tt := range map[string]struct {
		ended, other *sockdiag.Socket
		want         int
	}{
		"others of the address are heard of":               {long, other(here, time.Second), 1},
		"those of another address are":                     {long, other(there, time.Second), 0},
		"others are, but not since":                        {long, other(here, 8*time.Second), 0},
		"the FIN has been sent again once":                 {fin(sockdiag.FinWait1, 1, 1, 400*time.Millisecond), other(here, 0), 0},
		"for two seconds":                                  {fin(sockdiag.FinWait1, 1, 3, 1600*time.Millisecond), other(here, 0), 0},
		"a slow path, and the FIN has been sent once":      {fin(sockdiag.FinWait1, 1, 0, 12*time.Second), other(here, 0), 0},
		"data is not acknowledged either":                  {fin(sockdiag.FinWait1, 1449, 5, 6400*time.Millisecond), other(here, 0), 0},
		"the FIN is acknowledged, the client's is to come": {fin(sockdiag.FinWait2, 0, 0, 200*time.Millisecond), other(here, 0), 0},
		"the client has ended it, and is gone":             {fin(sockdiag.LastAck, 1, 5, 6400*time.Millisecond), other(here, 0), 0},
	} {
		for _, order := range [][]*sockdiag.Socket{{tt.ended, tt.other}, {tt.other, tt.ended}} {
			var f Found
			for _, s := range order {
				f.Add(s)
			}
			f.Finish(time.Now(), 0, false)
			require.Equal(t, tt.want, f.Counts.Forgotten, name)
		}
	}
}
