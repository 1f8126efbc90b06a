package nettest

import (
	"encoding/binary"
	"net/netip"
	"runtime"
)

// TCP4 is an IPv4 packet with a TCP header of 40 bytes, checksums included.
func TCP4(from, to netip.AddrPort, flags uint8, seq, ack uint32) []byte {
	const ip, length, protoTCP = 20, 60, 6
	p := make([]byte, length)
	p[0], p[3], p[8], p[9] = 0x45, length, 64, protoTCP
	copy(p[12:], from.Addr().AsSlice())
	copy(p[16:], to.Addr().AsSlice())
	tcp := p[ip:]
	binary.BigEndian.PutUint16(tcp, from.Port())
	binary.BigEndian.PutUint16(tcp[2:], to.Port())
	binary.BigEndian.PutUint32(tcp[4:], seq)
	binary.BigEndian.PutUint32(tcp[8:], ack)
	tcp[12], tcp[13] = 10<<4, flags
	Seal4(p)
	return p
}

// Seal4 computes the checksums of TCP4 (RFC 1071).
func Seal4(p []byte) {
	const ip, protoTCP = 20, 6
	p[10], p[11], p[36], p[37] = 0, 0, 0, 0
	checksum := func(sum uint32, parts ...[]byte) uint16 {
		for _, b := range parts {
			for ; len(b) >= 2; b = b[2:] {
				sum += uint32(binary.BigEndian.Uint16(b))
			}
		}
		for sum > 0xffff {
			sum = sum>>16 + sum&0xffff
		}
		return ^uint16(sum)
	}
	binary.BigEndian.PutUint16(p[10:], checksum(0, p[:ip]))
	binary.BigEndian.PutUint16(p[36:], checksum(uint32(protoTCP+len(p)-ip), p[12:20], p[ip:]))
}

// Heap is what the program holds of it.
func Heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
