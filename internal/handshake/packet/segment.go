// Package packet reads the TCP segments of handshakes from raw packets, and makes the program by
// which the kernel picks them. It is pure.
package packet

import (
	"encoding/binary"
	"errors"
	"net/netip"
)

// Link says how a packet passed the tap (sockaddr_ll and tpacket3_hdr).
type Link struct {
	Incoming bool   // received by this namespace (PACKET_HOST); on the loopback both
	Outgoing bool   // sent by it (PACKET_OUTGOING)
	Index    uint32 // of the interface
	Length   int    // of the packet from its network header on; what is at hand is cut off
	// Verified: the kernel vouches for the TCP checksum, or has yet to compute it
	// (TP_STATUS_CSUM_VALID, TP_STATUS_CSUMNOTREADY).
	Verified bool
}

// Successor marks the Index of packets of a ring that took over, so that one that both rings
// show is known as the same.
const Successor = 1 << 15

// Loopback is the Index of the loopback, in each namespace (LOOPBACK_IFINDEX).
const Loopback = 1

// TCP's flags (RFC 9293, 3.1).
const (
	FlagFIN = 1 << iota
	FlagSYN
	FlagRST
	flagPSH
	FlagACK
)

// Addr is an IPv6 address, or an IPv4 one mapped into IPv6.
type Addr [16]byte

// Netip is the address as netip has it.
func (a *Addr) Netip() netip.Addr { return netip.AddrFrom16(*a).Unmap() }

// Host is what one host has of the addresses: an IPv4 address, the /64 of an IPv6 one (RFC 6177).
func (a Addr) Host() Addr {
	if a.Netip().Is6() {
		clear(a[8:])
	}
	return a
}

// Segment is a TCP header, and the addresses of the IP header before it.
type Segment struct {
	Link
	Src, Dst         Addr
	SrcPort, DstPort uint16
	Seq, Ack         uint32
	Payload          int // bytes behind the TCP header
	Flags            uint8
	Hello            bool // they begin with a ClientHello of TLS: of this the filter passes the first byte
}

// recordHello is the type of the record that a ClientHello is in (RFC 8446, 5.1).
const recordHello = 22

// The reasons why a packet is none that the kernel's TCP would take.
var (
	ErrTruncated   = errors.New("packet: cut off or its lengths contradict each other")
	ErrNotTCP      = errors.New("packet: not an unfragmented TCP segment")
	ErrChecksum    = errors.New("packet: wrong checksum, or one that cannot be verified")
	ErrBadAddress  = errors.New("packet: an address that no connection has")
	ErrNoHandshake = errors.New("packet: flags that no handshake has")
)

// IPv4Header is the length of an IPv4 header without options, in bytes.
const IPv4Header = 20

const (
	protoTCP    = 6
	ipv6Header  = 40
	tcpHeader   = 20 // without options
	moreOrLater = 0x3fff
)

// Decode reads an IP packet from its network header on. It takes nothing that
// the kernel's own TCP would discard before it looked for a socket.
func Decode(b []byte, link Link) (Segment, error) {
	if len(b) == 0 {
		return Segment{}, ErrTruncated
	}
	s := Segment{Link: link}
	switch b[0] >> 4 {
	case 4:
		return s, s.ipv4(b)
	case 6:
		return s, s.ipv6(b)
	}
	return s, ErrNotTCP
}

// ipv4 follows ip_rcv_core (net/ipv4/ip_input.c).
func (s *Segment) ipv4(b []byte) error {
	header := int(b[0]&0xf) * 4
	if header < IPv4Header || len(b) < header {
		return ErrTruncated
	}
	total := int(binary.BigEndian.Uint16(b[2:]))
	switch {
	case total < header+tcpHeader || total > s.Length:
		return ErrTruncated
	case b[9] != protoTCP || binary.BigEndian.Uint16(b[6:])&moreOrLater != 0:
		return ErrNotTCP
	case s.Incoming && fold(sum(0, b[:header])) != 0xffff:
		return ErrChecksum
	}
	s.Src, s.Dst = mapped(b[12:16]), mapped(b[16:20])
	if s.Incoming && (!usable4(b[12:16]) || !usable4(b[16:20]) || !s.Loopback() && (b[12] == 127 || b[16] == 127)) {
		return ErrBadAddress
	}
	return s.tcp(b[header:], total-header, sum(0, b[12:20]))
}

// ipv6 follows ip6_rcv_core (net/ipv6/ip6_input.c). Extension headers are not
// followed: no host puts one before a handshake.
func (s *Segment) ipv6(b []byte) error {
	if len(b) < ipv6Header {
		return ErrTruncated
	}
	payload := int(binary.BigEndian.Uint16(b[4:]))
	switch {
	case b[6] != protoTCP:
		return ErrNotTCP
	case payload < tcpHeader || payload > s.Length-ipv6Header:
		return ErrTruncated
	}
	s.Src, s.Dst = Addr(b[8:24]), Addr(b[24:40])
	if s.Incoming && (!s.Src.usable6(s.Loopback()) || !s.Dst.usable6(s.Loopback())) {
		return ErrBadAddress
	}
	return s.tcp(b[ipv6Header:], payload, sum(0, b[8:40]))
}

// tcp follows tcp_v4_rcv and tcp_rcv_state_process; pseudo is the sum of the
// addresses, for the checksum.
func (s *Segment) tcp(b []byte, length int, pseudo uint32) error {
	if len(b) < tcpHeader {
		return ErrTruncated
	}
	header := int(b[12]>>4) * 4
	if header < tcpHeader || header > length || len(b) < header {
		return ErrTruncated
	}
	s.SrcPort, s.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	s.Seq, s.Ack = binary.BigEndian.Uint32(b[4:]), binary.BigEndian.Uint32(b[8:])
	s.Flags, s.Payload = b[13], length-header
	s.Hello = s.Payload > 0 && len(b) > header && b[header] == recordHello
	if s.Flags&FlagSYN != 0 && s.Flags&(FlagFIN|FlagRST) != 0 {
		return ErrNoHandshake
	}
	if s.Verified || !s.Incoming {
		return nil
	}
	if header != length || fold(sum(pseudo+protoTCP+uint32(length), b[:header])) != 0xffff {
		return ErrChecksum
	}
	return nil
}

// Loopback says whether the packet is of this host alone: only there one is both sent and received.
func (s *Segment) Loopback() bool { return s.Incoming && s.Outgoing }

func mapped(b []byte) (a Addr) {
	a[10], a[11] = 0xff, 0xff
	copy(a[12:], b)
	return a
}

// usable4 is false for 0.0.0.0, multicast and the broadcast address (ip_route_input_slow);
// 240.0.0.0/4 is unicast, as is the rest of 0.0.0.0/8 since Linux 5.3 (ipv4_is_zeronet).
func usable4(b []byte) bool {
	a := binary.BigEndian.Uint32(b)
	return a != 0 && a != 1<<32-1 && a>>28 != 0xe
}

// usable6 is false for the unspecified address, multicast, mapped IPv4, and
// beyond the loopback for ::1.
func (a *Addr) usable6(loopback bool) bool {
	high, low := binary.BigEndian.Uint64(a[:]), binary.BigEndian.Uint64(a[8:])
	switch {
	case a[0] == 0xff, high == 0 && low == 0, high == 0 && low>>32 == 0xffff:
		return false
	}
	return loopback || high != 0 || low != 1
}

// sum adds big-endian words (RFC 1071); b is a header, so an even number of bytes.
func sum(acc uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		acc += uint32(b[0])<<8 | uint32(b[1])
	}
	return acc
}

func fold(acc uint32) uint16 {
	for acc > 0xffff {
		acc = acc>>16 + acc&0xffff
	}
	return uint16(acc)
}
