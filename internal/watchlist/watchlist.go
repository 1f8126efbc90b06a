// Package watchlist says which listeners there are, which of them are watched, and why:
// those on the ports and of the processes that were asked for, or else Tomcat's. A Lister
// opens the network namespaces that are wanted, lists the listeners of each, finds their
// owners and what stands behind them, and makes an immutable list of it.
//
// Read lister.go first. What selects a listener (selection, claim, expect, share) is pure.
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
