package packet

import "golang.org/x/net/bpf"

// Always has the flags of which one suffices for a segment to be read.
const Always = FlagSYN | FlagRST | FlagFIN

// MaxFiltered ports are the most that a filter names, so that its program fits in
// net.core.optmem_max.
const MaxFiltered = 100

const (
	etherIPv4 = 0x0800 // linux/if_ether.h
	etherIPv6 = 0x86dd
	host      = 0   // PACKET_HOST, linux/if_packet.h
	outgoing  = 4   // PACKET_OUTGOING
	loopback  = 772 // ARPHRD_LOOPBACK, linux/if_arp.h

	// subsetMask has the bits in which the ports of a client of the subset and of its server are
	// alike: a sixteenth are. The lowest is no such bit: connect(2) prefers ports of one parity.
	subsetMask = 0x1e
)

// Reading is which segments are read.
type Reading struct {
	More     bool // all segments that go to the ports, beside those with always
	OneWay   bool // nothing that comes from the ports: the loopback receives it, too
	NoHellos bool // no ClientHellos
}

// Filter is the program that the kernel runs on every packet of the namespace,
// from the network header on. The flags come first: nearly all segments have none of them, and begin no TLS handshake, which only
// what stands behind their headers shows: in memory that the processor has not read yet.
// It is not strict: Decode and Tracker are.
//
// Most packets have an IPv4 header without options. The offsets of what follows are known then, so the
// kernel's compiler needs no call to load it, as it does for LoadIndirect.
func Filter(ports []uint16, r Reading) []bpf.Instruction {
	flags := uint8(Always)
	if r.More {
		flags |= FlagACK
	}
	plain := append(plainIPv4(flags, r), followed(IPv4Header, ports, r)...)
	others := append(otherTCP(flags, r), followed(atX, ports, r)...)
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x45, SkipTrue: 1},
		bpf.Jump{Skip: uint32(len(plain))},
	}
	return append(append(program, plain...), others...)
}

func plainIPv4(flags uint8, r Reading) []bpf.Instruction {
	program := flagged(nil, IPv4Header, flags, !r.OneWay, !r.NoHellos)
	program = append(program, bpf.LoadExtension{Num: bpf.ExtProto})
	program = only(program, bpf.JumpEqual, etherIPv4)
	return unfragmented(program)
}

// otherTCP leaves the offset of the TCP header in X.
func otherTCP(flags uint8, r Reading) []bpf.Instruction {
	v4 := unfragmented(flagged([]bpf.Instruction{bpf.LoadMemShift{Off: 0}}, atX, flags, !r.OneWay, !r.NoHellos))
	v6 := flagged(only(nil, bpf.JumpEqual, etherIPv6), ipv6Header, flags, !r.OneWay, !r.NoHellos)
	v6 = append(v6, bpf.LoadAbsolute{Off: 6, Size: 1})
	v6 = append(only(v6, bpf.JumpEqual, protoTCP), bpf.LoadConstant{Dst: bpf.RegX, Val: ipv6Header})
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherIPv4, SkipTrue: uint8(len(v4) + 1)},
	}
	program = append(append(program, v4...), bpf.Jump{Skip: uint32(len(v6))})
	return append(program, v6...)
}

// InSubset reports whether all segments of a client are read, but in the calm: a fixed
// sixteenth of the clients' ports.
func InSubset(client, server uint16) bool { return (client^server)&subsetMask == 0 }

// headerAt is where the TCP header begins.
type headerAt uint32

const atX headerAt = 0 // where the register X says

func (p headerAt) load(offset uint32, size int) bpf.Instruction {
	if p == atX {
		return bpf.LoadIndirect{Off: offset, Size: size}
	}
	return bpf.LoadAbsolute{Off: uint32(p) + offset, Size: size}
}

// flagged ends the program for segments with none of the flags. subset: but for those of
// the clients of the subset, which both ports tell (see inSubset). hellos: and for a client's first of TLS.
func flagged(program []bpf.Instruction, p headerAt, flags uint8, subset, hellos bool) []bpf.Instruction {
	rest := []bpf.Instruction{bpf.RetConstant{Val: 0}}
	if hellos {
		rest = hello(p)
	}
	if subset {
		ports := []bpf.Instruction{
			p.load(0, 2),
			bpf.StoreScratch{Src: bpf.RegA, N: 1},
			p.load(2, 2),
			bpf.LoadScratch{Dst: bpf.RegX, N: 1},
			bpf.ALUOpX{Op: bpf.ALUOpXor},
		}
		if p == atX {
			ports = append([]bpf.Instruction{bpf.StoreScratch{Src: bpf.RegX, N: 0}}, append(ports, bpf.LoadScratch{Dst: bpf.RegX, N: 0})...)
		}
		rest = append(append(ports, bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: subsetMask, SkipTrue: uint8(len(rest))}), rest...)
	}
	program = append(program, p.load(13, 1), bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: uint32(flags), SkipTrue: uint8(len(rest))})
	return append(program, rest...)
}

// hello ends the program unless a segment that came in begins with a ClientHello. One that is whole has PSH.
func hello(p headerAt) []bpf.Instruction {
	program := only([]bpf.Instruction{bpf.LoadExtension{Num: bpf.ExtType}}, bpf.JumpEqual, host)
	program = only(append(program, p.load(13, 1)), bpf.JumpBitsSet, flagPSH)
	if p == atX {
		program = append(program, bpf.StoreScratch{Src: bpf.RegX, N: 0})
	}
	program = append(append(program, afterHeader(p)...), bpf.TAX{})
	for _, l := range helloMarks() {
		program = only(append(program, l.load()...), bpf.JumpEqual, l.value)
	}
	if p == atX {
		program = append(program, bpf.LoadScratch{Dst: bpf.RegX, N: 0})
	}
	return program
}

// mark is what stands at a place behind the TCP header, which X names, in the upper half of four bytes.
type mark struct{ offset, value uint32 }

func (m mark) load() []bpf.Instruction {
	return []bpf.Instruction{bpf.LoadIndirect{Off: m.offset, Size: 4}, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xffff0000}}
}

// helloMarks are those of a ClientHello (RFC 8446, 5.1 and 4): a record of type 22 and version 3, in it a message of type 1, shorter than 64 KiB.
func helloMarks() [2]mark { return [2]mark{{0, recordHello<<24 | 3<<16}, {5, 1 << 24}} }

// helloLength is that of its marks.
const helloLength = 9

// unfragmented ends the program unless an IPv4 packet is a whole one of TCP.
func unfragmented(program []bpf.Instruction) []bpf.Instruction {
	program = append(program, bpf.LoadAbsolute{Off: 9, Size: 1})
	program = only(program, bpf.JumpEqual, protoTCP)
	program = append(program, bpf.LoadAbsolute{Off: 6, Size: 2})
	return only(program, bpf.JumpBitsNotSet, moreOrLater)
}

// followed ends the program: with the headers if a segment is of one of the ports.
//
// The loopback shows a packet twice, when it is sent and when it is received;
// the first is left out. A VLAN shows it on the device below, with the tag, and
// on its own, without; the first is left out too.
func followed(p headerAt, ports []uint16, r Reading) []bpf.Instruction {
	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 4},
		bpf.LoadExtension{Num: bpf.ExtVLANTag},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff}, // VID 0 is a priority only (802.1p): the device itself takes the packet
	}
	program = only(program, bpf.JumpEqual, 0)
	program = append(program,
		bpf.LoadExtension{Num: bpf.ExtLinkLayerType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: loopback, SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtType})
	program = only(program, bpf.JumpNotEqual, outgoing)
	if len(ports) <= MaxFiltered {
		program = append(program, portsOnly(p, ports, r)...)
	}
	return append(program, headers(p)...)
}

// portsOnly ends the program unless a port is one of ports.
func portsOnly(p headerAt, ports []uint16, r Reading) []bpf.Instruction {
	var source []bpf.Instruction
	if !r.OneWay {
		source = append(source, p.load(0, 2))
		if r.More {
			source = append(flagged(nil, p, Always, true, false), source...)
		}
		source = anyOf(source, ports, 1)
	}
	source = append(source, bpf.RetConstant{Val: 0})
	target := anyOf([]bpf.Instruction{p.load(2, 2)}, ports, len(source))
	return append(target, source...)
}

// anyOf jumps to what follows the next skip instructions if A is one of ports.
func anyOf(program []bpf.Instruction, ports []uint16, skip int) []bpf.Instruction {
	for i, port := range ports {
		rest := 2 * (len(ports) - i - 1)
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(port), SkipTrue: 1},
			bpf.Jump{Skip: uint32(rest + skip)})
	}
	return program
}

// headers lets the packet pass up to the end of its TCP header; of a ClientHello the first byte as well, which marks it.
func headers(p headerAt) []bpf.Instruction {
	marked := []bpf.Instruction{bpf.TXA{}, bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: 1}, bpf.RetA{}}
	plain := []bpf.Instruction{bpf.TXA{}, bpf.RetA{}}
	for _, m := range helloMarks() {
		next := append(m.load(), bpf.JumpIf{Cond: bpf.JumpEqual, Val: m.value, SkipTrue: uint8(len(plain))})
		marked = append(append(next, plain...), marked...)
	}
	program := append(afterHeader(p), bpf.TAX{}, bpf.LoadExtension{Num: bpf.ExtLen}, bpf.ALUOpX{Op: bpf.ALUOpSub},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: helloLength, SkipTrue: uint8(len(plain))})
	return append(append(program, plain...), marked...)
}

// afterHeader has A say where the TCP header ends.
func afterHeader(p headerAt) []bpf.Instruction {
	start := bpf.Instruction(bpf.ALUOpConstant{Op: bpf.ALUOpAdd, Val: uint32(p)})
	if p == atX {
		start = bpf.ALUOpX{Op: bpf.ALUOpAdd}
	}
	return []bpf.Instruction{
		p.load(12, 1),
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2},
		start,
	}
}

// only ends the program, without the packet, unless A is as it should be.
func only(program []bpf.Instruction, cond bpf.JumpTest, value uint32) []bpf.Instruction {
	return append(program, bpf.JumpIf{Cond: cond, Val: value, SkipTrue: 1}, bpf.RetConstant{Val: 0})
}
