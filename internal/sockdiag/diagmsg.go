package sockdiag

import (
	"encoding/binary"
	"net/netip"
)

// Address families, Linux's numbers on every system.
const (
	FamilyIPv4 uint8 = 2  // AF_INET
	FamilyIPv6 uint8 = 10 // AF_INET6
)

// Attribute and extension numbers of linux/inet_diag.h.
const (
	diagInfo      = 2  // INET_DIAG_INFO: struct tcp_info
	diagSKMemInfo = 7  // INET_DIAG_SKMEMINFO: u32 array, sock_diag.h
	diagCgroup    = 21 // INET_DIAG_CGROUP_ID: u64
	diagSockopt   = 22 // INET_DIAG_SOCKOPT: struct inet_diag_sockopt, Linux 5.10
	diagSKV6Only  = 11 // INET_DIAG_SKV6ONLY: u8, on LISTEN and CLOSE sockets of IPv6
)

// diagMsgLen is the size of struct inet_diag_msg:
//
//	 0 family, state, timer, retrans  u8 each
//	 4 sport, dport                   be16
//	 8 src[4]                         be32, IPv4 in the first
//	24 dst[4]
//	40 if                             u32
//	44 cookie[2]                      u32
//	52 expires                        u32
//	56 rqueue, wqueue, uid, inode     u32 each
const diagMsgLen = 72

// diagMsg is struct inet_diag_msg and the attributes behind it, undecoded.
type diagMsg struct {
	family                     uint8
	state                      State
	local, remote              netip.AddrPort
	iface                      uint32
	cookie                     uint64
	expires                    uint32
	rqueue, wqueue, uid, inode uint32
	attrs                      []byte
}

func (m *diagMsg) decode(b []byte) error {
	if len(b) < diagMsgLen {
		return ErrMalformed
	}
	m.family, m.state = b[0], State(b[1])
	local, ok := decodeAddr(m.family, b[8:24])
	if !ok {
		return ErrMalformed
	}
	remote, _ := decodeAddr(m.family, b[24:40])
	m.local = netip.AddrPortFrom(local, binary.BigEndian.Uint16(b[4:]))
	m.remote = netip.AddrPortFrom(remote, binary.BigEndian.Uint16(b[6:]))
	m.iface = binary.NativeEndian.Uint32(b[40:])
	m.cookie = uint64(binary.NativeEndian.Uint32(b[44:])) | uint64(binary.NativeEndian.Uint32(b[48:]))<<32
	m.expires = binary.NativeEndian.Uint32(b[52:])
	m.rqueue = binary.NativeEndian.Uint32(b[56:])
	m.wqueue = binary.NativeEndian.Uint32(b[60:])
	m.uid = binary.NativeEndian.Uint32(b[64:])
	m.inode = binary.NativeEndian.Uint32(b[68:])
	m.attrs = b[diagMsgLen:]
	return nil
}

func decodeAddr(family uint8, b []byte) (netip.Addr, bool) {
	switch family {
	case FamilyIPv4:
		return netip.AddrFrom4([4]byte(b[:4])), true
	case FamilyIPv6:
		return netip.AddrFrom16([16]byte(b[:16])), true
	}
	return netip.Addr{}, false
}

// unmapped turns [::ffff:192.0.2.1]:80 into 192.0.2.1:80, the way people and
// ss name it.
func unmapped(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}
