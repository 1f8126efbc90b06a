package unheard

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/handshake/shares"
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
		comes   uint32 // segments to the socket by each of them
		want    uint64
	}{
		"the socket has not heard of it": {from, kernel.Connection, 3 * time.Second, false, 0, 1},
		"the socket has taken it":        {from, kernel.Connection, 3 * time.Second, true, 1, 0},
		"another port":                   {other, kernel.Connection, 3 * time.Second, false, 0, 0},
		"there is no socket":             {from, kernel.OnlyListener, 0, true, 0, 0},
		"heard of it the moment before, but not of its repetition": {from, kernel.Connection, 20 * time.Millisecond, false, 0, 1},
		"forged, with a number that the socket does not expect":    {from, kernel.Connection, 3 * time.Second, false, 1, 0},
		"a reset of which the socket knows nothing":                {to, kernel.Connection, 3 * time.Second, false, 0, 1},
		"a reset that has ended it":                                {to, kernel.NoSocket, 0, true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			const came = 5 * time.Second
			now, segments := came, uint32(7)
			c := Clients{Clock: func() time.Duration { return now }}
			c.Socket = func(s, from netip.AddrPort, device uint32) kernel.Found {
				require.Equal(t, [2]netip.AddrPort{server, client}, [2]netip.AddrPort{s, from})
				f := kernel.Found{Socket: tt.socket, Segments: segments}
				if !tt.taken {
					f.Unheard = tt.unheard + now - came
				}
				return f
			}
			for range 3 { // it is repeated
				c.Observe(now, &tt.segment, follows)
				segments += tt.comes
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

// Two forged segments that came at nearly the same time are asked for once.
func TestForgedTwice(t *testing.T) {
	l := newLab()
	server := netip.MustParseAddrPort("10.0.0.1:8080")
	e := endsOf(server, netip.MustParseAddrPort("10.0.0.7:41000"))
	l.unheard[e] = true
	l.fin(e)
	at := l.now
	l.pass(askAfter)
	l.Observe(at+askAfter/2, fin(e), follows) // it was read late
	l.pass(time.Second)
	require.Zero(t, l.Of(server, false))
	l.fin(e)
	l.pass(time.Second)
	require.EqualValues(t, 1, l.Of(server, false))
}

func endsOf(server, client netip.AddrPort) shares.Ends {
	return shares.Ends{
		Server: shares.End{Addr: server.Addr().As16(), Port: server.Port()}, Client: shares.End{Addr: client.Addr().As16(), Port: client.Port()},
	}
}

// lab has sockets of which some have not heard of what came.
type lab struct {
	Clients
	now     time.Duration
	unheard map[shares.Ends]bool
	asked   map[shares.Ends]int
}

func newLab() *lab {
	l := &lab{now: time.Second, unheard: make(map[shares.Ends]bool), asked: make(map[shares.Ends]int)}
	l.Clock = func() time.Duration { return l.now }
	l.Socket = func(server, client netip.AddrPort, _ uint32) kernel.Found {
		e := endsOf(server, client)
		if l.asked[e]++; l.unheard[e] {
			return kernel.Found{Socket: kernel.Connection, Unheard: time.Hour}
		}
		return kernel.Found{Socket: kernel.OnlyListener}
	}
	return l
}

func fin(e shares.Ends) *packet.Segment {
	return &packet.Segment{
		Link: packet.Link{Incoming: true, Index: 2}, Src: e.Client.Addr, SrcPort: e.Client.Port,
		Dst: e.Server.Addr, DstPort: e.Server.Port, Flags: packet.FlagFIN | packet.FlagACK,
	}
}

func (l *lab) fin(e shares.Ends) { l.Observe(l.now, fin(e), follows) }

func (l *lab) pass(d time.Duration) {
	l.now += d
	l.Advance(l.now)
}

// address is one of many hosts and ports.
func address(n int, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)}), port)
}

// Whatever floods, those of others are asked for: of another client's address, of another server's.
func TestFloodHidesNoOthers(t *testing.T) {
	server := netip.MustParseAddrPort("10.0.0.1:8080")
	for name, flood := range map[string]func(n int) shares.Ends{
		"of one address": func(n int) shares.Ends { return endsOf(server, address(1, uint16(n))) },
		"of one /64": func(n int) shares.Ends {
			return endsOf(server, netip.AddrPortFrom(netip.AddrFrom16([16]byte{32, 1, 15: byte(n)}), uint16(n)))
		},
		"to another server": func(n int) shares.Ends { return endsOf(netip.MustParseAddrPort("10.0.0.2:8080"), address(n, 1)) },
		"to another, of one": func(n int) shares.Ends {
			return endsOf(netip.MustParseAddrPort("10.0.0.2:8080"), address(1, uint16(n)))
		},
		"of a client, again":     func(int) shares.Ends { return endsOf(server, address(1, 1)) },
		"of twenty addresses":    func(n int) shares.Ends { return endsOf(server, address(n%20, uint16(n))) },
		"to servers without end": func(n int) shares.Ends { return endsOf(address(n%40, 8080), address(n%40, uint16(n))) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			others := []shares.Ends{endsOf(server, netip.MustParseAddrPort("10.0.0.7:41000")), endsOf(server, netip.MustParseAddrPort("[2001:db8::7]:41000"))}
			for _, e := range others {
				l.unheard[e] = true
			}
			n := 0
			for range 3 { // FINs of each
				for i := range 3000 {
					l.fin(flood(n))
					n++
					if i == 1500 {
						for _, e := range others {
							l.fin(e)
						}
					}
					require.LessOrEqual(t, l.waiting.Len(), mostWaiting)
				}
				l.pass(200 * time.Millisecond)
			}
			require.EqualValues(t, len(others), l.Of(server, false))
			all := 0
			for _, times := range l.asked {
				all += times
			}
			require.LessOrEqual(t, all, 3*mostWaiting)
			require.Zero(t, l.waiting.Len())
		})
	}
}

// While all sockets hear of what comes few questions are asked; one in doubt is asked for soon, and so are others, until no FIN of its can come.
func TestFewQuestionsInTheCalm(t *testing.T) {
	l := newLab()
	server := netip.MustParseAddrPort("10.0.0.1:8080")
	n := 0
	second := func() (asked int) {
		before := len(l.asked)
		for range 50 {
			for range 100 { // of 5,000 clients a second
				l.fin(endsOf(server, address(n, 1)))
				n++
			}
			l.pass(20 * time.Millisecond)
		}
		return len(l.asked) - before
	}
	second()
	require.LessOrEqual(t, second(), 3*mostWaiting)

	unheard := endsOf(netip.MustParseAddrPort("10.0.0.2:8080"), address(1, 41000))
	l.unheard[unheard] = true
	l.fin(unheard)
	l.pass(calmFor + askAfter)
	l.pass(askAfter)
	l.fin(unheard)
	l.pass(askAfter)
	require.EqualValues(t, 1, l.Of(unheard.Server.Netip(), false))

	l.fin(unheard)
	l.pass(time.Second)
	require.Equal(t, 1, l.doubted.Len())
	require.Greater(t, second(), 5*mostWaiting)
	l.pass(countedFor + time.Second)
	require.LessOrEqual(t, second(), 4*mostWaiting)
	require.Zero(t, l.doubted.Len())
}

// Of a flood of addresses that are all others neither the first nor the last have all slots.
func TestLotsAreDrawn(t *testing.T) {
	l := newLab()
	server := netip.MustParseAddrPort("10.0.0.1:8080")
	const floods, each = 200, 640
	for range floods {
		for i := range each {
			l.fin(endsOf(server, address(i, 1)))
		}
		l.pass(time.Second)
	}
	for _, part := range []struct{ from, to int }{{0, each / 3}, {each / 3, 2 * each / 3}, {2 * each / 3, each}} {
		asked := 0
		for i := part.from; i < part.to; i++ {
			asked += l.asked[endsOf(server, address(i, 1))]
		}
		require.InDelta(t, floods*mostWaiting/3, asked, floods*mostWaiting/15, "%v", part)
	}
}

// However many have a socket that hears nothing, they take no more room, and each that is counted is counted once.
func TestUnheardByChurn(t *testing.T) {
	l := newLab()
	for round := range 300 {
		for range 2 {
			for i := range mostWaiting {
				e := endsOf(address(i, 8080), address(round*mostWaiting+i, 7))
				l.unheard[e] = true
				l.fin(e)
			}
			l.pass(time.Second)
			l.pass(time.Second)
		}
		require.LessOrEqual(t, l.doubted.Len(), mostWaiting)
		require.LessOrEqual(t, l.counted.Len(), mostCounted)
	}
	all := uint64(0)
	for i := range mostWaiting {
		all += l.Of(address(i, 8080), true)
	}
	require.Positive(t, all)
	require.LessOrEqual(t, all, uint64(300*mostWaiting))
}

// Who is counted already leaves room for those of others, who are counted once, too.
func TestCountedShareTheRoom(t *testing.T) {
	server, another := netip.MustParseAddrPort("10.0.0.1:8080"), netip.MustParseAddrPort("10.0.0.2:8080")
	for name, flood := range map[string]func(n int) shares.Ends{
		"of one address": func(n int) shares.Ends { return endsOf(server, address(1, uint16(n))) },
		"of one /64": func(n int) shares.Ends {
			return endsOf(server, netip.AddrPortFrom(netip.AddrFrom16([16]byte{32, 1, 15: byte(n)}), uint16(n)))
		},
		"to another server": func(n int) shares.Ends { return endsOf(another, address(n, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab()
			first := flood(0)
			flooded := first.Server.Netip()
			for n := range 2 * mostCounted {
				l.count(new(flood(n)), l.now)
			}
			require.EqualValues(t, mostCounted, l.Of(flooded, false))
			others := []shares.Ends{endsOf(server, netip.MustParseAddrPort("10.0.0.7:41000")), endsOf(server, netip.MustParseAddrPort("[2001:db8::7]:41000"))}
			before := l.Of(server, false)
			for range 3 { // FINs of each
				for _, e := range others {
					l.count(&e, l.now)
				}
				for n := range 2 * mostCounted {
					l.count(new(flood(n)), l.now)
				}
			}
			require.EqualValues(t, before+uint64(len(others)), l.Of(server, false), "each once")
			require.Equal(t, mostCounted, l.counted.Len())

			l.count(new(flood(5*mostCounted)), l.now+countedFor+time.Second)
			require.Equal(t, 1, l.counted.Len())
		})
	}
}

func BenchmarkFloodOfFINs(b *testing.B) {
	l := newLab()
	var segments [1024]*packet.Segment
	for i := range segments {
		segments[i] = fin(endsOf(netip.MustParseAddrPort("10.0.0.1:8080"), address(i, 1)))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Observe(l.now, segments[i%len(segments)], follows)
	}
}
