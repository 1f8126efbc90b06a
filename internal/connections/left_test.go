package connections

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

func TestLeft(t *testing.T) {
	tests := map[string]struct {
		state  sockdiag.State
		inode  uint32
		recvQ  uint32
		info   sockdiag.TCPInfo
		counts bool
	}{
		"in service, closed 2 s ago":               {sockdiag.CloseWait, 1, 1, info(1000, 1100, 500, 1, 0), true},
		"closed a moment ago":                      {sockdiag.CloseWait, 1, 1, info(1000, 1100, 25, 1, 0), false},
		"the header was sent, closed 2 s ago":      {sockdiag.CloseWait, 1, 1, info(1000, 999, 500, 1, 1), true},
		"TLS: a close_notify that nobody has read": {sockdiag.CloseWait, 1, 25, info(500, 1100, 500, 4, 3), true},
		"still open":                                     {sockdiag.Established, 1, 0, info(1000, 1100, 500, 1, 0), false},
		"in the accept queue":                            {sockdiag.CloseWait, 0, 101, info(1000, 1100, 500, 1, 0), false},
		"a stream, between two pieces":                   {sockdiag.CloseWait, 1, 1, sized(info(3000, 600, 500, 1, 9), 50), false},
		"a stream with TLS, a close_notify behind it":    {sockdiag.CloseWait, 1, 25, sized(info(500, 600, 500, 4, 20), 50), false},
		"the header in pieces at once, and then nothing": {sockdiag.CloseWait, 1, 1, sized(info(1000, 999, 500, 1, 5), 50), true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var f Found
			f.Add(&sockdiag.Socket{State: tt.state, Inode: tt.inode, RecvQ: tt.recvQ, Info: tt.info, HasInfo: true})
			if !tt.counts {
				require.Zero(t, f.Counts.Left)
				return
			}
			require.Equal(t, 1, f.Counts.Left)
			require.Equal(t, 2*time.Second, f.Counts.LeftFor)
		})
	}
}
