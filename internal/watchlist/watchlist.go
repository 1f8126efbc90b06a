package watchlist

import (
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// List is the watchlist with its namespaces. It is not changed once it is made.
type List struct {
	*facts.Watchlist
	Namespaces []*namespace.Namespace
}

// Namespace is the namespace of that number, nil where it is not open.
func (r *List) Namespace(netns uint64) *namespace.Namespace {
	for _, n := range r.Namespaces {
		if n.ID == netns {
			return n
		}
	}
	return nil
}
