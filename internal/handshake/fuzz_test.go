package handshake

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// FuzzTracker: whatever the packets of a few clients, each attempt ends once.
func FuzzTracker(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	m.Fuzz(func(t *testing.T, b []byte) {
		tracker := NewTracker(Options{MaxOpen: 3})
		tracker.SetPorts([]uint16{port, 1})
		attempts, at := make(map[[2]uint32]bool), time.Duration(0)
		for ; len(b) >= 4; b = b[4:] {
			at += time.Duration(b[3]) * 20 * time.Millisecond
			who, isn := uint32(b[0]&7), uint32(b[1]&3)
			s := packet.Segment{Src: packet.Addr{15: byte(who)}, SrcPort: 1, Dst: packet.Addr{0: 1}, DstPort: port, Seq: isn, Ack: uint32(b[2] & 3), Flags: b[2] >> 3}
			s.Incoming, s.Outgoing = b[0]&0x10 == 0, b[0]&0x20 != 0
			if b[0]&0x40 != 0 {
				s.Src, s.Dst, s.SrcPort, s.DstPort = s.Dst, s.Src, s.DstPort, s.SrcPort
			}
			tracker.Advance(at)
			tracker.Observe(at, &s)
			if s.Flags&(packet.FlagSYN|packet.FlagACK|packet.FlagRST) == packet.FlagSYN && s.Incoming {
				attempts[[2]uint32{who, isn}] = true
			}
		}
		tracker.Advance(at + time.Hour)
		ended := uint64(0)
		for _, e := range tracker.Report() {
			require.Zero(t, e.Open())
			ended += sumOf(e.Clients) + e.Untracked
		}
		if len(attempts) > 0 {
			require.NotZero(t, ended)
		} else {
			require.Zero(t, ended)
		}
		require.Zero(t, tracker.table.open)
	})
}

// FuzzPackets: what is taken for a SYN ends as one client, and nothing else as any.
func FuzzPackets(f *testing.F) {
	m := mutate.Into(f)
	m.Add(nettest.TCP4(netip.MustParseAddrPort("10.0.0.7:40000"), server, packet.FlagSYN, clientISN, 0), 60)
	m.Add(nettest.TCP4(server, netip.MustParseAddrPort("10.0.0.7:40000"), packet.FlagSYN|packet.FlagACK, serverISN, clientISN+1), 60)
	m.Fuzz(func(t *testing.T, b []byte, length int) {
		s, err := packet.Decode(b, packet.Link{Incoming: true, Index: 2, Length: length})
		if err != nil {
			return
		}
		tracker := NewTracker(Options{MaxOpen: 4})
		tracker.SetPorts([]uint16{s.DstPort})
		tracker.Observe(time.Second, &s)
		tracker.Advance(time.Hour)
		clients := uint64(0)
		for _, e := range tracker.Report() {
			clients += sumOf(e.Clients)
		}
		if s.Flags&(packet.FlagSYN|packet.FlagACK|packet.FlagRST) == packet.FlagSYN {
			require.EqualValues(t, 1, clients)
		} else {
			require.Zero(t, clients)
		}
	})
}
