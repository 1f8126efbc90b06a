package watchlist

import (
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/namespace"
)

// List is the watchlist with its namespaces. It is not changed once it is made.
type List struct {
	*facts.Watchlist
	Namespaces []*namespace.Namespace
}

// Remembers reports whether an address has an account, watched or not.
func (r *List) Remembers(id model.ListenerID) (known bool) {
	if n := r.Namespace(id.NetNS); n != nil {
		n.Books(func(b *losses.Books) { known = b.Accounts()[id] != nil })
	}
	return known
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
