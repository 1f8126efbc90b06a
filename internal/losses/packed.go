package losses

import (
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// packed are counters as they are kept: sixty of a minute for each namespace, a
// sixth of the size of a map each. The names are shared by those that have the
// same.
type packed struct {
	names  []string
	values []uint64
}

// pack stores counters; it shares the names of earlier ones where they are the same, or are to be kept: then those that are new
// are left out, and those that are gone stay as they were.
func pack(c model.Counters, earlier packed, keep bool) packed {
	p := packed{names: earlier.names}
	if !keep && !p.fits(c) {
		p.names = slices.Sorted(maps.Keys(c))
	}
	p.values = make([]uint64, len(p.names))
	for i, name := range p.names {
		v, ok := c[name]
		if !ok {
			v = earlier.values[i]
		}
		p.values[i] = v
	}
	return p
}

// shares reports whether the names are the same in memory.
func (p *packed) shares(other *packed) bool {
	return len(p.names) == len(other.names) && (len(p.names) == 0 || &p.names[0] == &other.names[0])
}

// fits reports whether the names are those of the counters.
func (p *packed) fits(c model.Counters) bool {
	if len(p.names) != len(c) {
		return false
	}
	for _, name := range p.names {
		if _, ok := c[name]; !ok {
			return false
		}
	}
	return true
}

// unpack makes them counters again.
func (p packed) unpack() model.Counters {
	out := make(model.Counters, len(p.names))
	for i, name := range p.names {
		out[name] = p.values[i]
	}
	return out
}
