package handshake

import "golang.org/x/net/bpf"

const (
	etherIPv4   = 0x0800 // linux/if_ether.h
	etherIPv6   = 0x86dd
	outgoing    = 4   // PACKET_OUTGOING, linux/if_packet.h
	loopback    = 772 // ARPHRD_LOOPBACK, linux/if_arp.h
	maxFiltered = 200 // ports, so that the program fits in net.core.optmem_max
)

// reading is which segments are read.
type reading struct {
	more   uint8 // a flag whose segments are read beside SYNs and RSTs if they go to the ports, 0 for none
	oneWay bool  // nothing that comes from the ports: the loopback receives it, too
}

// filter is the program that the kernel runs on every packet of the namespace,
// from the network header on. The flags come first: nearly all segments have none of them.
// It is not strict: Decode and Tracker are.
//
// The loopback shows a packet twice, when it is sent and when it is received;
// the first is left out. A VLAN shows it on the device below, with the tag, and
// on its own, without; the first is left out too.
func filter(ports []uint16, r reading) []bpf.Instruction {
	program := append(withoutOptions(flagSYN|flagRST|r.more), tcpWith(flagSYN|flagRST|r.more)...)
	program = append(program,
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 4},
		bpf.LoadExtension{Num: bpf.ExtVLANTag},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff}) // VID 0 is a priority only (802.1p): the device itself takes the packet
	program = only(program, bpf.JumpEqual, 0)
	program = append(program,
		bpf.LoadExtension{Num: bpf.ExtLinkLayerType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: loopback, SkipTrue: 3},
		bpf.LoadExtension{Num: bpf.ExtType})
	program = only(program, bpf.JumpNotEqual, outgoing)
	if len(ports) > maxFiltered {
		return append(program, headers()...)
	}
	return append(program, portsOnly(ports, r)...)
}

// withoutOptions ends the program for most packets: those of an IPv4 header without options,
// or of an IPv6 header, that have none of the flags where TCP has them. Their offsets are
// known, so the kernel's compiler needs no call to load them, as it does for LoadIndirect.
func withoutOptions(flags uint8) []bpf.Instruction {
	flagsOf := func(header uint32) []bpf.Instruction {
		return only([]bpf.Instruction{bpf.LoadAbsolute{Off: header + 13, Size: 1}}, bpf.JumpBitsSet, uint32(flags))
	}
	v4, v6 := flagsOf(ipv4Header), flagsOf(ipv6Header)
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x45, SkipTrue: uint8(len(v4) + 1)},
	}
	program = append(append(program, v4...), bpf.Jump{Skip: uint32(len(v6) + 2)})
	program = append(program,
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0x60, SkipTrue: uint8(len(v6))})
	return append(program, v6...)
}

// tcpWith leaves the offset of the TCP header in X.
func tcpWith(flags uint8) []bpf.Instruction {
	flagged := func(program []bpf.Instruction) []bpf.Instruction {
		program = append(program, bpf.LoadIndirect{Off: 13, Size: 1})
		return only(program, bpf.JumpBitsSet, uint32(flags))
	}
	v4 := flagged([]bpf.Instruction{bpf.LoadMemShift{Off: 0}})
	v4 = append(v4, bpf.LoadAbsolute{Off: 9, Size: 1})
	v4 = only(v4, bpf.JumpEqual, protoTCP)
	v4 = append(v4, bpf.LoadAbsolute{Off: 6, Size: 2})
	v4 = only(v4, bpf.JumpBitsNotSet, moreOrLater)

	v6 := only(nil, bpf.JumpEqual, etherIPv6)
	v6 = flagged(append(v6, bpf.LoadConstant{Dst: bpf.RegX, Val: ipv6Header}))
	v6 = append(v6, bpf.LoadAbsolute{Off: 6, Size: 1})
	v6 = only(v6, bpf.JumpEqual, protoTCP)

	program := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtProto},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherIPv4, SkipTrue: uint8(len(v4) + 1)},
	}
	program = append(append(program, v4...), bpf.Jump{Skip: uint32(len(v6))})
	return append(program, v6...)
}

// portsOnly ends the program: with the headers if a port is one of ports.
func portsOnly(ports []uint16, r reading) []bpf.Instruction {
	var source []bpf.Instruction
	if !r.oneWay {
		source = append(source, bpf.LoadIndirect{Off: 0, Size: 2})
		if r.more != 0 {
			source = append([]bpf.Instruction{bpf.LoadIndirect{Off: 13, Size: 1}},
				append(only(nil, bpf.JumpBitsSet, flagSYN|flagRST), source...)...)
		}
		source = anyOf(source, ports, 1)
	}
	source = append(source, bpf.RetConstant{Val: 0})
	target := anyOf([]bpf.Instruction{bpf.LoadIndirect{Off: 2, Size: 2}}, ports, len(source))
	return append(append(target, source...), headers()...)
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

// headers lets the packet pass up to the end of its TCP header.
func headers() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadIndirect{Off: 12, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd},
		bpf.RetA{},
	}
}

// only ends the program, without the packet, unless A is as it should be.
func only(program []bpf.Instruction, cond bpf.JumpTest, value uint32) []bpf.Instruction {
	return append(program, bpf.JumpIf{Cond: cond, Val: value, SkipTrue: 1}, bpf.RetConstant{Val: 0})
}
