package reading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A short time says little of an acceptor, but it does not say either that one is at work.
func TestNothingAccepted(t *testing.T) {
	for name, c := range map[string]struct {
		long   *time.Duration
		length int
		want   time.Duration
		stands bool
	}{
		"for as long as it stood":   {new(31 * time.Second), 101, 31 * time.Second, true},
		"too short to be said":      {new(400 * time.Millisecond), 101, 0, true},
		"somebody was accepted":     {new(time.Duration(0)), 101, 0, false},
		"one reading alone":         {nil, 101, 0, false},
		"it has been emptied since": {new(31 * time.Second), 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := Pair{Now: &model.Listener{Inode: 7, AcceptQueue: &model.AcceptQueue{Length: c.length, Limit: 100, NoAcceptFor: c.long}}}
			require.Equal(t, c.want, p.NothingAccepted())
			require.Equal(t, c.stands, p.OldestStands())
		})
	}
}
