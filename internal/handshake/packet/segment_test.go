package packet

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// webServer is who the packets of these tests are for.
var webServer = netip.MustParseAddrPort("10.0.0.1:8080")

var arriving = Link{Incoming: true, Index: 2, Length: 60}

func synFrom(from string) []byte {
	return nettest.TCP4(netip.MustParseAddrPort(from), webServer, FlagSYN, 1000, 0)
}

// syn6 is an IPv6 SYN without options.
func syn6(from, to string) []byte {
	p := make([]byte, ipv6Header+tcpHeader)
	p[0], p[5], p[6], p[7] = 0x60, tcpHeader, protoTCP, 64
	src, dst := netip.MustParseAddr(from).As16(), netip.MustParseAddr(to).As16()
	copy(p[8:], src[:])
	copy(p[24:], dst[:])
	binary.BigEndian.PutUint16(p[40:], 40000)
	binary.BigEndian.PutUint16(p[42:], webServer.Port())
	p[52], p[53] = 5<<4, FlagSYN
	binary.BigEndian.PutUint16(p[56:], ^fold(sum(sum(0, p[8:40])+protoTCP+tcpHeader, p[40:])))
	return p
}

func TestDecode(t *testing.T) {
	s, err := Decode(synFrom("10.0.0.7:40000"), arriving)
	require.NoError(t, err)
	require.Equal(t, "10.0.0.7", s.Src.Netip().String())
	require.Equal(t, "10.0.0.1", s.Dst.Netip().String())
	require.Equal(t, [2]uint16{40000, webServer.Port()}, [2]uint16{s.SrcPort, s.DstPort})
	require.Equal(t, [2]uint32{1000, 0}, [2]uint32{s.Seq, s.Ack})
	require.EqualValues(t, FlagSYN, s.Flags)

	s, err = Decode(syn6("fd00::7", "fd00::1"), arriving)
	require.NoError(t, err)
	require.Equal(t, "fd00::7", s.Src.Netip().String())
	require.EqualValues(t, webServer.Port(), s.DstPort)
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
			nettest.Seal4(p)
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
		{"SYN and FIN", change(33, FlagSYN|FlagFIN, true), arriving, ErrNoHandshake},
		{"SYN and RST", change(33, FlagSYN|FlagRST, true), arriving, ErrNoHandshake},
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

// FuzzDecode: whatever arrives, it is read within its bounds; what is taken for a segment has
// checksums that are right.
func FuzzDecode(f *testing.F) {
	m := mutate.Into(f)
	m.Add(synFrom("10.0.0.7:40000"), 60)
	m.Add(syn6("fd00::7", "fd00::1"), 60)
	m.Add(nettest.TCP4(webServer, netip.MustParseAddrPort("10.0.0.7:40000"), FlagSYN|FlagACK, 5000, 1001), 60)
	m.Add(nettest.TCP4(webServer, netip.MustParseAddrPort("10.0.0.7:40000"), FlagRST|FlagACK, 0, 1001), 60)
	m.Fuzz(func(t *testing.T, b []byte, length int) {
		_, err := Decode(b, Link{Incoming: true, Index: 2, Length: length})
		if err != nil {
			return
		}
		header := ipv6Header
		if b[0]>>4 == 4 {
			header = int(b[0]&0xf) * 4
			require.EqualValues(t, 0xffff, fold(sum(0, b[:header])))
		}
		require.GreaterOrEqual(t, len(b), header+tcpHeader)
	})
}
