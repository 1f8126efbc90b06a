package recall

import (
	"maps"
	"time"
)

// Drops remember when the listeners of a port dropped SYNs or ACKs; 0 is any port. The zero value has none.
type Drops map[uint16]*Marks

// Mark notes that they may have from one moment to another.
func (d *Drops) Mark(port uint16, from, to time.Duration) {
	if *d == nil {
		*d = make(Drops)
	}
	if (*d)[port] == nil {
		(*d)[port] = new(Marks)
	}
	(*d)[port].Mark(from, to)
}

// Between reports whether a listener of a port may have dropped anything between two moments.
func (d Drops) Between(port uint16, from, to time.Duration) bool {
	for _, p := range [2]uint16{0, port} {
		if m := d[p]; m != nil && m.Between(from, to) {
			return true
		}
	}
	return false
}

// Retain forgets the ports that are not followed any more.
func (d Drops) Retain(follows func(port uint16) bool) {
	maps.DeleteFunc(d, func(port uint16, _ *Marks) bool { return port != 0 && !follows(port) })
}
