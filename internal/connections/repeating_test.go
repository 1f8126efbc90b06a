package connections

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

func TestRepeating(t *testing.T) {
	for _, tt := range []struct {
		name         string
		sent, again  uint64
		retransmits  uint8
		size, counts int
	}{
		{"one of three responses", 9000, 3000, 0, 1 << 10, 1},
		{"3 % of a long connection", 100_000, 3100, 0, 1 << 10, 1},
		{"less", 100_000, 2900, 0, 1 << 10, 0},
		{"none", 9000, 0, 0, 1 << 10, 0},
		{"nothing was sent", 0, 0, 0, 1 << 10, 0},
		{"being repeated", 9000, 3000, 1, 1 << 10, 1},
		{"its client acknowledges nothing", 9000, 3000, unacknowledgedAfter, 1 << 10, 0},
		{"an old kernel, which does not say", 9000, 3000, 0, 200, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f Found
			f.Add(&sockdiag.Socket{State: sockdiag.Established, Inode: 1, HasInfo: true, Info: sockdiag.TCPInfo{
				Size: tt.size, BytesSent: tt.sent, BytesRetrans: tt.again, Retransmits: tt.retransmits,
			}})
			require.Equal(t, tt.counts, f.Counts.Repeating)
		})
	}
}
