package connscan

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// More than are worth asking for have no memory, until a walk has found fewer.
func TestFew(t *testing.T) {
	const most = 3
	var f connectionSet
	walk := func(n int) {
		f.begin(most)
		for i := range n {
			f.add(&sockdiag.Socket{State: sockdiag.Established, Cookie: uint64(1 + i)}, most)
		}
	}
	walk(most)
	require.Len(t, f.ids, most)
	require.False(t, f.beyond)
	walk(most + 1)
	require.Nil(t, f.ids)
	require.True(t, f.beyond)
	walk(most + 1)
	require.Zero(t, cap(f.ids), "not begun again")
	walk(most)
	require.True(t, f.beyond, "none is remembered of the walk that has found so")
	walk(most)
	require.Len(t, f.ids, most)
	require.False(t, f.beyond)
	f.add(&sockdiag.Socket{State: sockdiag.Established}, most+1)
	require.True(t, f.beyond, "without a cookie it cannot be asked for")
}
