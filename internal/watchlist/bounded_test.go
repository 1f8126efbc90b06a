package watchlist

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/namespace"
	"github.com/tcpdiag/tcpdiag/internal/netns"
)

// Of the namespaces that one owner makes by the thousand as many are followed as there is room for, and
// another's are among them, whoever came first.
func TestNamespacesAreBounded(t *testing.T) {
	discovered := func(id uint64, owner string) *namespace.Namespace {
		return &namespace.Namespace{ID: id, Discovered: true, Owner: owner}
	}
	own := &namespace.Namespace{ID: 1, OfAgent: true}
	open := []*namespace.Namespace{own, discovered(2, "calm")}
	come := make(map[netns.ID]resident)
	for i := range 1000 {
		come[netns.ID(100+i)] = resident{pid: 100 + i, owner: "greedy"}
	}
	come[5000] = resident{pid: 5000, owner: "calm"}
	stay, left, beyond := bounded(open, come, 10)
	require.Equal(t, open, stay)
	require.Empty(t, left)
	require.Equal(t, 992, beyond)
	require.Len(t, come, 9)
	require.Contains(t, come, netns.ID(5000))

	open = []*namespace.Namespace{own}
	for i := range 10 {
		open = append(open, discovered(uint64(100+i), "greedy"))
	}
	come = map[netns.ID]resident{5000: {owner: "calm"}, 6000: {owner: "greedy"}}
	stay, left, beyond = bounded(open, come, 10)
	require.Len(t, stay, 10)
	require.Equal(t, own, stay[0])
	require.Equal(t, uint64(109), left[0].ID, "the latest")
	require.Equal(t, 2, beyond)
	require.Equal(t, map[netns.ID]resident{5000: {owner: "calm"}}, come)
}
