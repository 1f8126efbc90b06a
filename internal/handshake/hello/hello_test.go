package hello

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

func follows(port uint16) bool { return port == 8443 }

// A client that ends its TLS handshake has an answer, and sends an alert at most; who is done with it sends more.
func TestTLSEnded(t *testing.T) {
	server, client := netip.MustParseAddrPort("10.0.0.1:8443"), netip.MustParseAddrPort("10.0.0.7:41000")
	const (
		isn, serverISN = 1<<32 - 300, 7_000 // the numbers begin again within the ClientHello
		length         = 517
		flight         = 1230
		fin, rst       = packet.FlagFIN | packet.FlagACK, packet.FlagRST | packet.FlagACK
	)
	segment := func(sent, got uint32, flags uint8) packet.Segment {
		return packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: client.Addr().As16(), SrcPort: client.Port(),
			Dst: server.Addr().As16(), DstPort: server.Port(), Flags: flags, Seq: (isn + 1 + sent) & (1<<32 - 1), Ack: serverISN + 1 + got,
		}
	}
	for _, tt := range []struct {
		name      string
		sent, got uint32 // behind the ClientHello; of the server
		flags     uint8
		after     time.Duration
		do        func(s *packet.Segment)
		want      uint64
	}{
		{"an alert: curl, Java, Go with TLS 1.2", 7, flight, fin, time.Millisecond, nil, 1},
		{"and a reset", 7, flight, rst, time.Millisecond, nil, 1},
		{"an encrypted alert: Go with TLS 1.3", 30, flight, fin, time.Millisecond, nil, 1},
		{"the JDK's", 46, flight, fin, time.Millisecond, nil, 1},
		{"nothing: the JDK's HttpClient with TLS 1.2", 0, flight, fin, time.Millisecond, nil, 1},
		{"a ChangeCipherSpec: the same with TLS 1.3", 6, flight, fin, time.Millisecond, nil, 1},
		{"the alert is in the FIN's segment", 0, flight, fin, time.Millisecond, func(s *packet.Segment) { s.Payload = 7 }, 1},
		{"done, and no request: a spare connection", 80, flight + 510, fin, time.Millisecond, nil, 0},
		{"done, with the session before: TLS 1.2", 51, 200, fin, time.Millisecond, nil, 0},
		{"the same with ChaCha20", 43, 200, fin, time.Millisecond, nil, 0},
		{"done with TLS 1.3, without a ChangeCipherSpec", 58, flight, fin, time.Millisecond, nil, 0},
		{"a request", 289, 7000, fin, time.Millisecond, nil, 0},
		{"no answer: its patience was over", 0, 0, fin, time.Second, nil, 0},
		{"the server's alert", 0, 7, fin, time.Millisecond, nil, 0},
		{"and its FIN", 0, 8, fin, time.Millisecond, nil, 0},
		{"it hung until the server's timeout", 0, flight + 1, fin, 20 * time.Second, nil, 0},
		{"a reset that acknowledges nothing", 7, flight, packet.FlagRST, time.Millisecond, func(s *packet.Segment) { s.Ack = 0 }, 0},
		{"another connection of its port", 1 << 20, flight, fin, time.Millisecond, nil, 0},
		{"another port", 7, flight, fin, time.Millisecond, func(s *packet.Segment) { s.DstPort = 8080 }, 0},
		{"a packet that leaves", 7, flight, fin, time.Millisecond, func(s *packet.Segment) { s.Incoming, s.Outgoing = false, true }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var c Clients
			end := segment(length+tt.sent, tt.got, tt.flags)
			if tt.do != nil {
				tt.do(&end)
			}
			c.Observe(0, &end, follows) // nothing has begun
			begin := segment(0, 0, packet.FlagACK)
			begin.Payload, begin.Hello = length, true
			c.Observe(0, &begin, follows)
			for range 3 { // it is repeated
				c.Observe(tt.after, &end, follows)
			}
			require.Equal(t, tt.want, c.Of(server, true))
			require.Zero(t, c.Of(server, false), "it begins again")
		})
	}
}

// Who begins is counted once, whatever is repeated.
func TestTLSBegun(t *testing.T) {
	var c Clients
	server := netip.MustParseAddrPort("10.0.0.1:8443")
	for n := range 5 {
		begin, end := beginAndEnd(server, netip.AddrPortFrom(netip.MustParseAddr("10.0.0.7"), uint16(41000+n)))
		c.Observe(0, &begin, follows)
		c.Observe(time.Millisecond, &begin, follows)
		c.Observe(time.Second, &end, follows)
	}
	require.EqualValues(t, 5, c.Begun(server, true))
	require.Zero(t, c.Begun(server, false))
}

// begin is the segment of a client's ClientHello, and end the one of its FIN after an alert.
func beginAndEnd(server, client netip.AddrPort) (begin, end packet.Segment) {
	begin = packet.Segment{
		Link: packet.Link{Incoming: true}, Src: client.Addr().As16(), SrcPort: client.Port(), Dst: server.Addr().As16(), DstPort: server.Port(),
		Flags: packet.FlagACK, Seq: 1, Ack: 1, Payload: 500, Hello: true,
	}
	end = begin
	end.Hello, end.Payload, end.Flags, end.Seq, end.Ack = false, 0, packet.FlagFIN|packet.FlagACK, 508, 1300
	return begin, end
}

// Whatever floods, clients of others are counted: of another address, of another server's. What is remembered is bounded.
func TestFloodHidesNoOthers(t *testing.T) {
	server := netip.MustParseAddrPort("10.0.0.1:8443")
	address := func(n int, port uint16) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 18 + byte(n>>16), byte(n >> 8), byte(n)}), port)
	}
	for name, flood := range map[string]func(n int) (server, client netip.AddrPort){
		"of one address": func(n int) (netip.AddrPort, netip.AddrPort) { return server, address(1, uint16(n)) },
		"of one /64": func(n int) (netip.AddrPort, netip.AddrPort) {
			return server, netip.AddrPortFrom(netip.AddrFrom16([16]byte{32, 1, 14: byte(n >> 8), 15: byte(n)}), uint16(n>>4))
		},
		"of twenty addresses":   func(n int) (netip.AddrPort, netip.AddrPort) { return server, address(n%20, uint16(n)) },
		"to another server":     func(n int) (netip.AddrPort, netip.AddrPort) { return address(1, 8443), address(n, 1) },
		"to twenty servers":     func(n int) (netip.AddrPort, netip.AddrPort) { return address(n%20, 8443), address(n, 1) },
		"to servers of its own": func(n int) (netip.AddrPort, netip.AddrPort) { return address(n%40, 8443), address(n%40, uint16(n)) },
	} {
		t.Run(name, func(t *testing.T) {
			var c Clients
			now := time.Second
			others := []netip.AddrPort{netip.MustParseAddrPort("10.0.0.7:41000"), netip.MustParseAddrPort("[2001:db8::7]:41000")}
			strangers := func(n int) {
				now += time.Microsecond
				begin, end := beginAndEnd(flood(n))
				c.Observe(now, &begin, follows)
				if n%2 == 0 {
					c.Observe(now, &end, follows)
				}
			}
			for n := range 10_000 {
				strangers(n)
			}
			before := c.Of(server, false)
			for _, o := range others {
				begin, _ := beginAndEnd(server, o)
				c.Observe(now, &begin, follows)
			}
			for n := range 10_000 {
				strangers(20_000 + 2*n + 1) // none of these fails
			}
			require.Equal(t, before, c.Of(server, false))
			for _, o := range others {
				_, end := beginAndEnd(server, o)
				c.Observe(now, &end, follows)
			}
			require.Equal(t, before+2, c.Of(server, false))
			all := 0
			for i := range c.parts {
				require.LessOrEqual(t, c.parts[i].Len(), most)
				all += c.parts[i].Len()
			}
			require.Greater(t, all, parts*most/2)
		})
	}
}

// Of a server's many clients the latest are remembered: a thousand in ten times as long as a handshake takes.
func TestOfManyTheLatest(t *testing.T) {
	var c Clients
	server := netip.MustParseAddrPort("10.0.0.1:8443")
	const clients, meanwhile = 20_000, 300
	var ends []packet.Segment
	for n := range clients {
		begin, end := beginAndEnd(server, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(n >> 8), byte(n)}), 41000))
		c.Observe(time.Duration(n)*100*time.Microsecond, &begin, follows)
		ends = append(ends, end)
		if n >= meanwhile {
			c.Observe(time.Duration(n)*100*time.Microsecond, &ends[n-meanwhile], follows)
		}
	}
	require.EqualValues(t, clients-meanwhile, c.Of(server, false))
}

func BenchmarkHandshakes(b *testing.B) {
	var c Clients
	var begins, ends [8192]packet.Segment
	for i := range begins {
		begins[i], ends[i] = beginAndEnd(netip.MustParseAddrPort("10.0.0.1:8443"), netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 41000))
		ends[i].Seq += 300 // its request
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		at := time.Duration(i) * 100 * time.Microsecond
		c.Observe(at, &begins[i%len(begins)], follows)
		c.Observe(at, &ends[(i-100)&(len(ends)-1)], follows)
	}
}
