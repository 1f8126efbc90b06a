package unheard

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

func follows(port uint16) bool { return port == 8080 }

// A client's FIN, or a reset of the server, of which an open connection has heard nothing, was dropped or
// sent by something in front of it.
func TestUnheard(t *testing.T) {
	server, client := netip.MustParseAddrPort("10.0.0.1:8080"), netip.MustParseAddrPort("10.0.0.7:41000")
	from := packet.Segment{
		Link: packet.Link{Incoming: true, Index: 2}, Src: client.Addr().As16(), SrcPort: client.Port(),
		Dst: server.Addr().As16(), DstPort: server.Port(), Flags: packet.FlagFIN | packet.FlagACK,
	}
	to := packet.Segment{
		Link: packet.Link{Outgoing: true, Index: 2}, Dst: client.Addr().As16(), DstPort: client.Port(),
		Src: server.Addr().As16(), SrcPort: server.Port(), Flags: packet.FlagRST,
	}
	other := from
	other.DstPort = 9090
	for name, tt := range map[string]struct {
		segment packet.Segment
		socket  kernel.Socket
		unheard time.Duration // of the socket, when the segment came
		taken   bool
		want    uint64
	}{
		"the socket has not heard of it": {from, kernel.Connection, 3 * time.Second, false, 1},
		"the socket has taken it":        {from, kernel.Connection, 3 * time.Second, true, 0},
		"another port":                   {other, kernel.Connection, 3 * time.Second, false, 0},
		"there is no socket":             {from, kernel.OnlyListener, 0, true, 0},
		"heard of it the moment before, but not of its repetition": {from, kernel.Connection, 20 * time.Millisecond, false, 1},
		"a reset of which the socket knows nothing":                {to, kernel.Connection, 3 * time.Second, false, 1},
		"a reset that has ended it":                                {to, kernel.NoSocket, 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			const came = 5 * time.Second
			now := came
			c := Clients{Clock: func() time.Duration { return now }}
			c.Socket = func(s, from netip.AddrPort, device uint32) kernel.Found {
				require.Equal(t, [2]netip.AddrPort{server, client}, [2]netip.AddrPort{s, from})
				f := kernel.Found{Socket: tt.socket}
				if !tt.taken {
					f.Unheard = tt.unheard + now - came
				}
				return f
			}
			for range 3 { // it is repeated
				c.Observe(now, &tt.segment, follows)
				c.Advance(now)
				now += 200 * time.Millisecond
				c.Advance(now)
				now += time.Second
			}
			require.Equal(t, tt.want, c.Of(server, true))
			require.Zero(t, c.Of(server, false))
		})
	}
}

// Many of them take no more room, and are asked for in turn.
func TestBounds(t *testing.T) {
	now := time.Second
	asked := 0
	c := Clients{Clock: func() time.Duration { return now }, Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
		asked++
		return kernel.Found{Socket: kernel.Connection, Unheard: time.Hour}
	}}
	for i := range 1000 {
		s := packet.Segment{
			Link: packet.Link{Incoming: true}, Src: packet.Addr{15: byte(i)}, SrcPort: uint16(1024 + i), Dst: packet.Addr{14: byte(i >> 8), 15: byte(i)},
			DstPort: 8080, Flags: packet.FlagFIN | packet.FlagACK,
		}
		c.Observe(now, &s, follows)
	}
	now += time.Second
	c.Advance(now)
	require.Equal(t, mostWaiting, asked)
	require.Len(t, c.counts, mostServers)
}
