package handshake

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// The first byte of the answer is timed of a sixteenth of the clients, from the first SYN on.
func TestResponses(t *testing.T) {
	s := newScript(t, Options{})
	n := uint64(0)
	for client := range uint16(320) {
		c := s.client(fmt.Sprintf("10.0.0.9:%d", 20_000+client), uint32(client))
		c.syns(0, 1)
		c.synAck()
		c.wait(.5)
		data := packet.Segment{
			Link: packet.Link{Outgoing: true, Index: 2}, Dst: c.from.Addr().As16(), DstPort: c.from.Port(), Src: server.Addr().As16(), SrcPort: port,
			Flags: packet.FlagACK, Seq: serverISN + 1, Ack: c.isn + 101, Payload: 500,
		}
		c.observe(data)
		data.Seq += 500
		c.observe(data) // the rest of it
		if packet.InSubset(20_000+client, port) {
			n++
		}
	}
	require.EqualValues(t, 20, n)
	got := s.tracker.Report()[0].Responses
	require.Equal(t, n, got.Count)
	require.InDelta(t, 1.5*float64(n), got.Sum, .001)
	require.Equal(t, [11]uint64{0, 0, 0, 0, 0, 0, 0, n, n, n, n}, got.Buckets())
}

// The kernel says that a client was sent something before the packet has been read.
func TestResponseReadLate(t *testing.T) {
	sent, told := uint64(0), false
	s := newScript(t, Options{Socket: func(_, _ netip.AddrPort, _ uint32) kernel.Found {
		told = sent > 0
		return kernel.Found{Socket: kernel.Connection, HasInfo: true, Received: 50, Sent: sent}
	}})
	from := uint16(20_000)
	for !packet.InSubset(from, port) {
		from++
	}
	c := s.client(netip.AddrPortFrom(s.from.Addr(), from).String(), 7)
	c.syn()
	c.synAck()
	for range 8 {
		c.wait(.25)
		s.tracker.Advance(c.at)
	}
	at := c.at
	for sent = 500; !told; c.wait(.125) {
		s.tracker.Advance(c.at)
		require.Less(t, c.at, time.Minute)
	}
	s.tracker.Observe(at, &packet.Segment{
		Link: packet.Link{Outgoing: true, Index: 2}, Dst: c.from.Addr().As16(), DstPort: from, Src: server.Addr().As16(), SrcPort: port,
		Flags: packet.FlagACK, Seq: serverISN + 1, Ack: c.isn + 51, Payload: 500,
	})
	c.wait(1)
	s.tracker.Advance(c.at)
	require.EqualValues(t, 1, s.tracker.Report()[0].Answers.Answered)
	require.EqualValues(t, 1, s.tracker.Report()[0].Responses.Count)
}

// A server's clients are a proxy's connections where four of five come from three addresses.
func TestProxies(t *testing.T) {
	for name, c := range map[string]struct {
		from []int // clients of each address
		want int
	}{
		"one":                {[]int{300, 10}, 1},
		"three":              {[]int{50, 50, 40, 10, 10}, 3},
		"four":               {[]int{40, 40, 40, 40}, 0},
		"few clients of one": {[]int{60}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, Options{})
			for addr, n := range c.from {
				for i := range n {
					s.client(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(addr)}), uint16(1000+i)).String(), 1).refused()
				}
			}
			s.wait(1)
			s.tracker.Advance(s.at)
			require.Len(t, s.tracker.Report()[0].Proxies, c.want)
		})
	}
}
