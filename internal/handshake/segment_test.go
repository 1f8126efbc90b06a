package handshake

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

var arriving = Link{Incoming: true, Index: 2, Length: 60}

func synFrom(from string) []byte {
	return packet4(netip.MustParseAddrPort(from), server, flagSYN, clientISN, 0)
}

// syn6 is an IPv6 SYN without options.
func syn6(from, to string) []byte {
	p := make([]byte, ipv6Header+tcpHeader)
	p[0], p[5], p[6], p[7] = 0x60, tcpHeader, protoTCP, 64
	src, dst := netip.MustParseAddr(from).As16(), netip.MustParseAddr(to).As16()
	copy(p[8:], src[:])
	copy(p[24:], dst[:])
	binary.BigEndian.PutUint16(p[40:], 40000)
	binary.BigEndian.PutUint16(p[42:], port)
	p[52], p[53] = 5<<4, flagSYN
	binary.BigEndian.PutUint16(p[56:], ^fold(sum(sum(0, p[8:40])+protoTCP+tcpHeader, p[40:])))
	return p
}

func TestDecode(t *testing.T) {
	s, err := Decode(synFrom("10.0.0.7:40000"), arriving)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.7", s.src.netip().String())
	require.Equal(t, "10.0.0.1", s.dst.netip().String())
	require.Equal(t, [2]uint16{40000, port}, [2]uint16{s.srcPort, s.dstPort})
	require.Equal(t, [2]uint32{clientISN, 0}, [2]uint32{s.seq, s.ack})
	require.EqualValues(t, flagSYN, s.flags)

	s, err = Decode(syn6("fd00::7", "fd00::1"), arriving)
	require.NoError(t, err)
	require.Equal(t, "fd00::7", s.src.netip().String())
	require.EqualValues(t, port, s.dstPort)
}

// What the kernel's TCP discards before it looks for a socket is no client.
// Linux takes 240.0.0.0/4 and 0.0.0.0/8 as unicast, but for their ends
// (ipv4_is_lbcast, ipv4_is_zeronet).
func TestUnusualUnicast(t *testing.T) {
	for _, from := range []string{"240.1.0.2:40000", "255.255.255.254:40000", "0.0.0.1:40000"} {
		_, err := Decode(synFrom(from), arriving)
		require.NoError(t, err, from)
	}
}

func TestDecodeRefuses(t *testing.T) {
	change := func(at int, to byte, reseal bool) []byte {
		p := synFrom("10.0.0.7:40000")
		p[at] = to
		if reseal {
			seal4(p)
		}
		return p
	}
	lo := Link{Incoming: true, Outgoing: true, Index: 1, Length: 60}
	tests := []struct {
		name   string
		packet []byte
		link   Link
		want   error
	}{
		{"nothing", nil, arriving, ErrTruncated},
		{"version 5", change(0, 0x55, false), arriving, ErrNotTCP},
		{"IP header of 16 bytes", change(0, 0x44, true), arriving, ErrTruncated},
		{"IP header longer than the packet", synFrom("10.0.0.7:1")[:18], arriving, ErrTruncated},
		{"total length beyond the packet", change(3, 61, true), arriving, ErrTruncated},
		{"total length without a TCP header", change(3, 39, true), arriving, ErrTruncated},
		{"IP checksum", change(10, 0xaa, false), arriving, ErrChecksum},
		{"UDP", change(9, 17, true), arriving, ErrNotTCP},
		{"first fragment", change(6, 0x20, true), arriving, ErrNotTCP},
		{"later fragment", change(7, 0x10, true), arriving, ErrNotTCP},
		{"from 0.0.0.0", synFrom("0.0.0.0:40000"), arriving, ErrBadAddress},
		{"from multicast", synFrom("224.0.0.1:40000"), arriving, ErrBadAddress},
		{"from broadcast", synFrom("255.255.255.255:40000"), arriving, ErrBadAddress},
		{"from 127.0.0.1 on a wire", synFrom("127.0.0.1:40000"), arriving, ErrBadAddress},
		{"TCP header of 16 bytes", change(32, 4<<4, true), arriving, ErrTruncated},
		{"TCP header longer than the packet", change(32, 15<<4, true), arriving, ErrTruncated},
		{"TCP header cut off", synFrom("10.0.0.7:40000")[:50], arriving, ErrTruncated},
		{"TCP checksum", change(36, 0xaa, false), arriving, ErrChecksum},
		{"SYN and FIN", change(33, flagSYN|flagFIN, true), arriving, ErrNoHandshake},
		{"SYN and RST", change(33, flagSYN|flagRST, true), arriving, ErrNoHandshake},
		{"data, and a checksum that nobody vouches for", change(32, 5<<4, true), arriving, ErrChecksum},
		{"IPv6 cut off", syn6("fd00::7", "fd00::1")[:39], arriving, ErrTruncated},
		{"IPv6 from ::", syn6("::", "fd00::1"), arriving, ErrBadAddress},
		{"IPv6 from ::1 on a wire", syn6("::1", "fd00::1"), arriving, ErrBadAddress},
		{"IPv6 from multicast", syn6("ff02::1", "fd00::1"), arriving, ErrBadAddress},
		{"IPv6 from mapped IPv4", syn6("::ffff:10.0.0.7", "fd00::1"), arriving, ErrBadAddress},
		{"127.0.0.1 on the loopback", synFrom("127.0.0.1:40000"), lo, nil},
		{"::1 on the loopback", syn6("::1", "::1"), lo, nil},
		{"data, and a checksum that the kernel vouches for", change(32, 5<<4, true), Link{Incoming: true, Length: 60, Verified: true}, nil},
	}
	for _, test := range tests {
		_, err := Decode(test.packet, test.link)
		require.ErrorIs(t, err, test.want, test.name)
	}
}

// FuzzDecode: whatever arrives, it is read within its bounds; what is taken for
// a SYN has checksums that are right, and ends as one client.
func FuzzDecode(f *testing.F) {
	m := mutate.Into(f)
	m.Add(synFrom("10.0.0.7:40000"), 60)
	m.Add(syn6("fd00::7", "fd00::1"), 60)
	m.Add(packet4(server, netip.MustParseAddrPort("10.0.0.7:40000"), flagSYN|flagACK, serverISN, clientISN+1), 60)
	m.Add(packet4(server, netip.MustParseAddrPort("10.0.0.7:40000"), flagRST|flagACK, 0, clientISN+1), 60)
	m.Fuzz(func(t *testing.T, b []byte, length int) {
		s, err := Decode(b, Link{Incoming: true, Index: 2, Length: length})
		if err != nil {
			return
		}
		header := ipv6Header
		if b[0]>>4 == 4 {
			header = int(b[0]&0xf) * 4
			require.EqualValues(t, 0xffff, fold(sum(0, b[:header])))
		}
		require.GreaterOrEqual(t, len(b), header+tcpHeader)

		tracker := NewTracker(Options{MaxOpen: 4})
		tracker.SetPorts([]uint16{s.dstPort})
		tracker.Observe(time.Second, &s)
		tracker.Advance(time.Hour)
		clients := uint64(0)
		for _, e := range tracker.Report() {
			clients += sumOf(e.Clients)
		}
		if s.flags&(flagSYN|flagACK|flagRST) == flagSYN {
			require.EqualValues(t, 1, clients)
		} else {
			require.Zero(t, clients)
		}
	})
}

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
			s := Segment{src: addr{15: byte(who)}, srcPort: 1, dst: addr{0: 1}, dstPort: port, seq: isn, ack: uint32(b[2] & 3), flags: b[2] >> 3}
			s.Incoming, s.Outgoing = b[0]&0x10 == 0, b[0]&0x20 != 0
			if b[0]&0x40 != 0 {
				s.src, s.dst, s.srcPort, s.dstPort = s.dst, s.src, s.dstPort, s.srcPort
			}
			tracker.Advance(at)
			tracker.Observe(at, &s)
			if s.flags&(flagSYN|flagACK|flagRST) == flagSYN && s.Incoming {
				attempts[[2]uint32{who, isn}] = true
			}
		}
		tracker.Advance(at + time.Hour)
		ended := uint64(0)
		for _, e := range tracker.Report() {
			require.Zero(t, e.Waiting+e.Settling+e.Stalling)
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
