package losses

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAllot(t *testing.T) {
	for _, tt := range []struct {
		total        uint64
		wanted, want []uint64
	}{
		{0, nil, nil},
		{0, []uint64{3, 4}, []uint64{0, 0}},
		{7, []uint64{3, 4}, []uint64{3, 4}},
		{100, []uint64{3, 4}, []uint64{3, 4}},
		{10, []uint64{10, 10}, []uint64{5, 5}},
		{1, []uint64{1, 1, 1}, []uint64{1, 0, 0}},
		{5, []uint64{9, 0, 1}, []uint64{5, 0, 0}},
		{9, []uint64{7, 0, 5}, []uint64{5, 0, 4}},
	} {
		require.Equal(t, tt.want, Allot(tt.total, tt.wanted, cmp.Compare), "%d for %v", tt.total, tt.wanted)
	}
}
