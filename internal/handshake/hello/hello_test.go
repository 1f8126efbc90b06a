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

// Whatever comes, what is remembered is bounded.
func TestBounded(t *testing.T) {
	var c Clients
	for i := range uint32(100_000) {
		s := packet.Segment{Link: packet.Link{Incoming: true}, SrcPort: uint16(i), DstPort: 8443, Flags: packet.FlagACK, Seq: i, Payload: 100, Hello: true}
		s.Src[15], s.Src[14], s.Dst[15], s.Dst[14] = byte(i), byte(i>>8), byte(i), byte(i>>8)
		c.Observe(time.Second, &s, follows)
		s.Hello, s.Payload, s.Flags, s.Seq, s.Ack = false, 0, packet.FlagFIN|packet.FlagACK, i+100, 1000
		c.Observe(time.Second, &s, follows)
	}
	require.Len(t, c.open, mostOpen)
	require.Len(t, c.counts, mostServers)
}
