package losses

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// TestPacked: counters come out as they went in, also where a kernel's set of
// them differs from the one before, and the names are kept once.
func TestPacked(t *testing.T) {
	first := model.Counters{"ListenDrops": 3, "EstabResets": 0}
	a := pack(first, packed{})
	require.Equal(t, first, a.unpack())
	second := model.Counters{"ListenDrops": 4, "EstabResets": 1}
	b := pack(second, a)
	require.Equal(t, second, b.unpack())
	require.Same(t, &a.names[0], &b.names[0])
	other := model.Counters{"ListenDrops": 5, "OutRsts": 2}
	require.Equal(t, other, pack(other, b).unpack())
	require.Equal(t, model.Counters{}, packed{}.unpack())
	require.Equal(t, first, a.unpack())
}
