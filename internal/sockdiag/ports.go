package sockdiag

import "encoding/binary"

// Codes of struct inet_diag_bc_op { u8 code; u8 yes; u16 no }: jumps forward
// by yes bytes when the condition holds, else by no. A port to compare with
// stands in the no field of a second op.
const (
	bcJump       = 1  // INET_DIAG_BC_JMP: always no
	bcSourceGE   = 2  // INET_DIAG_BC_S_GE
	bcSourceLE   = 3  // INET_DIAG_BC_S_LE
	bcSourceEQ   = 11 // INET_DIAG_BC_S_EQ, Linux 4.16
	bcCgroup     = 13 // INET_DIAG_BC_CGROUP_COND, Linux 5.9: its argument is a u64
	bcOpLen      = 4
	bcCompareLen = 2 * bcOpLen
	bcCgroupLen  = 3 * bcOpLen
)

// maxRanges bounds the bytecode: at most 28 bytes a range have to fit the 16
// bits of a jump and of an attribute's length, and the kernel's check of the
// jumps (inet_diag_bc_audit) takes time with the square of it.
const maxRanges = 1024

// portFilter compiles ports into bytecode. Its memory is reused.
type portFilter struct {
	ports  *Ports
	ranges []portRange
	// coarse says that the ranges cover more than the ports.
	coarse bool
}

func (f *portFilter) set(ports *Ports) {
	f.ports, f.coarse = ports, false
	f.ranges = ports.appendRanges(f.ranges[:0], 1)
	for gap := 2; len(f.ranges) > maxRanges; gap *= 2 {
		f.coarse = true
		f.ranges = ports.appendRanges(f.ranges[:0], gap)
	}
}

// has is the filter that a coarse one needs after the kernel's.
func (f *portFilter) has(port uint16) bool { return !f.coarse || f.ports.Has(port) }

// single is the only port, for which the request itself has a field that
// spares the kernel the bytecode; 0 if there are several.
func (f *portFilter) single() uint16 {
	if len(f.ranges) != 1 || f.ranges[0].first != f.ranges[0].last {
		return 0
	}
	return f.ranges[0].first
}

// appendBytecode compiles a binary search. Every op's yes leads to the op that
// follows it, which 8 bits always reach (the kernel accepts only jumps to ops
// of that chain); whatever is far away is reached by no, which has 16 bits.
// tail is the length of what follows: an op that jumps exactly to the end
// accepts the socket, one that jumps 4 bytes beyond rejects it.
func appendBytecode(b []byte, ranges []portRange, tail int) []byte {
	if len(ranges) == 1 {
		return appendRange(b, ranges[0], tail)
	}
	left, right := ranges[:len(ranges)/2], ranges[len(ranges)/2:]
	b = appendCompare(b, bcSourceGE, right[0].first, bcCompareLen+bytecodeLen(right))
	b = appendBytecode(b, right, tail+bytecodeLen(left))
	return appendBytecode(b, left, tail)
}

func appendRange(b []byte, r portRange, tail int) []byte {
	end := rangeLen(r) + tail
	reject := end + bcOpLen
	if r.first == r.last {
		b = appendCompare(b, bcSourceEQ, r.first, reject)
	} else {
		b = appendCompare(b, bcSourceGE, r.first, reject)
		b = appendCompare(b, bcSourceLE, r.last, reject-bcCompareLen)
	}
	return appendOp(b, bcJump, bcOpLen, bcOpLen+tail)
}

func appendCompare(b []byte, code uint8, port uint16, no int) []byte {
	b = appendOp(b, code, bcCompareLen, no)
	return appendOp(b, 0, 0, int(port))
}

func appendOp(b []byte, code, yes uint8, no int) []byte {
	return binary.NativeEndian.AppendUint16(append(b, code, yes), uint16(no))
}

func rangeLen(r portRange) int {
	if r.first == r.last {
		return bcCompareLen + bcOpLen
	}
	return 2*bcCompareLen + bcOpLen
}

func bytecodeLen(ranges []portRange) int {
	n := (len(ranges) - 1) * bcCompareLen
	for _, r := range ranges {
		n += rangeLen(r)
	}
	return n
}
