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

// pack stores counters; it shares the names of earlier ones where they are the same.
func pack(c model.Counters, earlier packed) packed {
	p := packed{names: earlier.names, values: make([]uint64, len(c))}
	if !p.fits(c) {
		p.names = slices.Sorted(maps.Keys(c))
	}
	for i, name := range p.names {
		p.values[i] = c[name]
	}
	return p
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
