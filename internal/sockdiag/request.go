package sockdiag

import "encoding/binary"

// Request types of linux/sock_diag.h and linux/inet_diag.h.
const (
	sockDiagByFamily = 20 // SOCK_DIAG_BY_FAMILY: one family
	tcpDiagGetSock   = 18 // TCPDIAG_GETSOCK: both families in one walk

	reqBytecode = 1 // INET_DIAG_REQ_BYTECODE

	protoTCP = 6
)

// extension is the bit of idiag_ext (8 bits) that asks for an attribute.
func extension(attr uint8) uint8 { return 1 << (attr - 1) }

// appendLookup encodes the exact request: struct inet_diag_req_v2 without
// NLM_F_DUMP.
func appendLookup(b []byte, id ListenerID) []byte {
	b = appendHeader(b, sockDiagByFamily, flagRequest)
	b = append(b, id.Family, protoTCP, extension(diagSKMemInfo), 0)
	b = binary.NativeEndian.AppendUint32(b, Listen.mask())
	b = binary.BigEndian.AppendUint16(b, id.Local.Port())
	b = append(b, 0, 0) // peer's port
	src := id.Local.Addr().As16()
	if id.Family == FamilyIPv4 {
		src = [16]byte{}
		ip4 := id.Local.Addr().As4()
		copy(src[:], ip4[:])
	}
	b = append(b, src[:]...)
	b = append(b, peerOf(id)...)
	b = binary.NativeEndian.AppendUint32(b, id.Interface)
	return appendNoCookie(b)
}

// peerOf is the wildcard peer's address. inet_diag looks a v4-mapped address
// up as IPv4, but only if both ends are v4-mapped.
func peerOf(id ListenerID) []byte {
	peer := make([]byte, 16)
	if id.Family == FamilyIPv6 && id.Local.Addr().Is4In6() {
		peer[10], peer[11] = 0xff, 0xff
	}
	return peer
}

// appendDump encodes the walk of both families: struct inet_diag_req with
// NLM_F_DUMP. sport 0 selects all ports.
func appendDump(b []byte, states uint32, ext uint8, sport uint16) []byte {
	b = appendHeader(b, tcpDiagGetSock, flagRequest|flagDump)
	b = append(b, 0, 0, 0, ext) // family (not read), src_len, dst_len
	b = binary.BigEndian.AppendUint16(b, sport)
	b = append(b, make([]byte, 2+16+16+4)...) // dport, src, dst, if
	b = appendNoCookie(b)
	b = binary.NativeEndian.AppendUint32(b, states)
	return binary.NativeEndian.AppendUint32(b, 0) // idiag_dbs
}

// appendFilter adds the source ports, and the cgroup if there is one, as
// INET_DIAG_REQ_BYTECODE.
func appendFilter(b []byte, ranges []portRange, cgroup uint64) []byte {
	length := bytecodeLen(ranges)
	if cgroup != 0 {
		length += bcCgroupLen
	}
	b = binary.NativeEndian.AppendUint16(b, uint16(attrHeaderLen+length))
	b = binary.NativeEndian.AppendUint16(b, reqBytecode)
	if cgroup != 0 {
		b = appendOp(b, bcCgroup, bcCgroupLen, length+bcOpLen)
		b = binary.NativeEndian.AppendUint64(b, cgroup)
	}
	return appendBytecode(b, ranges, 0)
}

// appendNoCookie fills idiag_cookie with INET_DIAG_NOCOOKIE: any socket.
func appendNoCookie(b []byte) []byte {
	return binary.NativeEndian.AppendUint64(b, ^uint64(0))
}

// appendHeader leaves length and sequence number to finish.
func appendHeader(b []byte, typ, flags uint16) []byte {
	b = binary.NativeEndian.AppendUint32(b, 0)
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = binary.NativeEndian.AppendUint16(b, flags)
	return binary.NativeEndian.AppendUint64(b, 0)
}

func finish(b []byte, seq uint32) {
	binary.NativeEndian.PutUint32(b, uint32(len(b)))
	binary.NativeEndian.PutUint32(b[8:], seq)
}
