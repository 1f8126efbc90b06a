package sockdiag

import "math/bits"

// Ports is a set of ports; the zero value is empty.
type Ports struct{ words [1 << 16 / 64]uint64 }

// PortsOf is the set of those ports.
func PortsOf(ports ...uint16) *Ports {
	p := new(Ports)
	for _, port := range ports {
		p.Add(port)
	}
	return p
}

// Add puts a port in.
func (p *Ports) Add(port uint16) { p.words[port/64] |= 1 << (port % 64) }

// AddRange puts a run of ports in, both ends included.
func (p *Ports) AddRange(first, last uint16) {
	for port := int(first); port <= int(last); {
		if port%64 == 0 && port+63 <= int(last) {
			p.words[port/64] = ^uint64(0)
			port += 64
			continue
		}
		p.Add(uint16(port))
		port++
	}
}

// Remove takes a port out.
func (p *Ports) Remove(port uint16) { p.words[port/64] &^= 1 << (port % 64) }

// Has reports whether a port is in.
func (p *Ports) Has(port uint16) bool { return p.words[port/64]>>(port%64)&1 != 0 }

// next is the first port from one on that is in the set, or that is not; 1<<16
// when there is none.
func (p *Ports) next(from int, in bool) int {
	for from < 1<<16 {
		word := p.words[from/64]
		if !in {
			word = ^word
		}
		if word >>= from % 64; word != 0 {
			return from + bits.TrailingZeros64(word)
		}
		from += 64 - from%64
	}
	return 1 << 16
}

// portRange is a run of neighbouring ports, ends included.
type portRange struct{ first, last uint16 }

// appendRanges appends the runs in ascending order; ports that are at most gap
// apart are of one.
func (p *Ports) appendRanges(to []portRange, gap int) []portRange {
	start := len(to)
	for first := p.next(0, true); first < 1<<16; {
		end := p.next(first, false)
		if n := len(to); n > start && first-int(to[n-1].last) <= gap {
			to[n-1].last = uint16(end - 1)
		} else {
			to = append(to, portRange{uint16(first), uint16(end - 1)})
		}
		first = p.next(end, true)
	}
	return to
}
