package reading

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A thread between two requests is a quarter of four: where many wait it does not show that threads are free. Of a pool whose
// threads are not counted one that is missing is all that it may be.
func TestThreadsExhaustedBetweenTwoRequests(t *testing.T) {
	for name, c := range map[string]struct {
		most, busy, waiting int
		want                bool
	}{
		"all are busy":               {4, 4, 1, true},
		"one is between two of them": {4, 3, 16, true},
		"one is free, and one waits": {4, 3, 1, false},
		"two are free":               {4, 2, 16, false},
		"the only one is free":       {1, 0, 16, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &model.Listener{
				Connector:   &model.Connector{MaxThreads: &model.Setting[int]{Value: c.most}},
				Connections: &model.Connections{Accepted: c.busy + c.waiting},
			}
			l.Connections.Phases[model.InService], l.Connections.Phases[model.Waiting] = c.busy, c.waiting
			require.Equal(t, c.want, Pair{Now: l, T: DefaultThresholds()}.ThreadsExhausted(l))
		})
	}
}

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
