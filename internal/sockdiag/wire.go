package sockdiag

import (
	"encoding/binary"
	"syscall"
)

// Of linux/netlink.h.
const (
	nlmsgHeaderLen = 16 // struct nlmsghdr
	nlmsgError     = 2  // NLMSG_ERROR
	nlmsgDone      = 3  // NLMSG_DONE
	nlmsgOverrun   = 4  // NLMSG_OVERRUN

	flagRequest  = 0x1   // NLM_F_REQUEST
	flagDumpIntr = 0x10  // NLM_F_DUMP_INTR
	flagDump     = 0x300 // NLM_F_DUMP

	attrHeaderLen = 4      // struct nlattr
	attrTypeMask  = 0x3fff // NLA_TYPE_MASK
)

// message is one netlink message; body lies in the receive buffer.
type message struct {
	typ, flags uint16
	seq, pid   uint32
	body       []byte
}

// nextMessage cuts the first message off b.
func nextMessage(b []byte) (m message, rest []byte, err error) {
	if len(b) < nlmsgHeaderLen {
		return m, nil, ErrMalformed
	}
	n := uint64(binary.NativeEndian.Uint32(b))
	if n < nlmsgHeaderLen {
		return m, nil, ErrMalformed
	}
	if n > uint64(len(b)) {
		return m, nil, ErrTruncated
	}
	m = message{
		typ:   binary.NativeEndian.Uint16(b[4:]),
		flags: binary.NativeEndian.Uint16(b[6:]),
		seq:   binary.NativeEndian.Uint32(b[8:]),
		pid:   binary.NativeEndian.Uint32(b[12:]),
		body:  b[nlmsgHeaderLen:n],
	}
	return m, b[min(align4(int(n)), len(b)):], nil
}

// errno decodes the leading int of NLMSG_ERROR (struct nlmsgerr) and of
// NLMSG_DONE (the dump's return value): 0 or a negated errno. A DONE without
// one is a success; the kernel of that time had no errors to report.
func (m message) errno() error {
	switch number, ok := m.number(); {
	case !ok && m.typ != nlmsgDone:
		return ErrMalformed
	case number == 0:
		return nil
	default:
		return number
	}
}

// number is false where there is none.
func (m message) number() (syscall.Errno, bool) {
	if len(m.body) < 4 {
		return 0, false
	}
	code := int32(binary.NativeEndian.Uint32(m.body))
	if code >= 0 {
		return 0, true
	}
	return syscall.Errno(-int64(code)), true
}

// nextAttr cuts the first attribute (struct nlattr) off b.
func nextAttr(b []byte) (typ uint16, value, rest []byte, err error) {
	if len(b) < attrHeaderLen {
		return 0, nil, nil, ErrMalformed
	}
	n := int(binary.NativeEndian.Uint16(b))
	if n < attrHeaderLen || n > len(b) {
		return 0, nil, nil, ErrMalformed
	}
	typ = binary.NativeEndian.Uint16(b[2:]) & attrTypeMask
	return typ, b[attrHeaderLen:n], b[min(align4(n), len(b)):], nil
}

func align4(n int) int { return (n + 3) &^ 3 }
