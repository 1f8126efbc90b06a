package sampler

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// shown is a Tomcat of 200 threads as a scan would deliver it.
func shown(connections, inService, waiting, queued int) *backlog.Listener {
	set := func(n int) *backlog.Setting[int] {
		return &backlog.Setting[int]{Value: n, Kind: backlog.SourceFile}
	}
	l := &backlog.Listener{
		ID:   backlog.ListenerID{Address: netip.MustParseAddrPort("127.0.0.1:8080")},
		Port: 8080, Inode: 7, Members: 1,
		Process:     &backlog.Process{PID: 42, StartTime: 1, RunDelay: new(time.Duration)},
		Connector:   &backlog.Connector{Server: "tomcat", MaxThreads: set(200), MaxConnections: set(connections), PoolThreads: new(200)},
		AcceptQueue: &backlog.AcceptQueue{Length: queued, Limit: 5},
		Connections: &backlog.Connections{Accepted: inService + waiting},
		Losses:      &backlog.Losses{},
	}
	l.Connections.Phases[backlog.InService], l.Connections.Phases[backlog.Waiting] = inService, waiting
	return l
}

func with(l *backlog.Listener, change func(*backlog.Listener)) *backlog.Listener {
	change(l)
	return l
}

// The first of two looks is judged from one: what it says must not stand in the
// way of what both say.
func TestVerdictOfTheSecondLook(t *testing.T) {
	type verdict struct {
		status backlog.Status
		cause  backlog.Cause
	}
	for name, tt := range map[string]struct {
		looks []*backlog.Listener
		want  verdict
	}{
		"all threads busy, for want of CPU": {
			[]*backlog.Listener{shown(8192, 200, 100, 0), with(shown(8192, 200, 100, 0), func(l *backlog.Listener) { l.Process.RunDelay = new(150 * time.Second) })},
			verdict{backlog.StatusSaturated, backlog.CauseCPUSaturated},
		},
		"slots of connections that clients reset are counted from the second look on": {
			[]*backlog.Listener{shown(20, 8, 0, 6), with(shown(20, 8, 0, 6), func(l *backlog.Listener) { l.Connections.Reset = new(12) })},
			verdict{backlog.StatusSaturated, backlog.CauseMaxConnections},
		},
		"a healthy server caught with busy threads": {
			[]*backlog.Listener{shown(8192, 190, 1, 0), shown(8192, 90, 0, 0)}, verdict{status: backlog.StatusOK},
		},
		"a healthy server caught with a full queue": {
			[]*backlog.Listener{shown(8192, 90, 0, 6), shown(8192, 90, 0, 0)}, verdict{status: backlog.StatusOK},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Sampler{opt: Defaults(), looping: true, spaces: []*space{{}}}
			a := newAccount(tt.looks[0].ID, time.Minute)
			now := time.Unix(1_700_000_000, 0)
			for i, l := range tt.looks {
				s.judge(l, a, &backlog.Snapshot{Time: now.Add(time.Duration(i) * time.Second), Interval: time.Second})
			}
			require.Equal(t, backlog.StatusOK, tt.looks[0].Verdict.Status, tt.looks[0].Verdict.Summary)
			last := tt.looks[len(tt.looks)-1].Verdict
			require.Equal(t, tt.want, verdict{last.Status, last.Cause}, last.Summary)
		})
	}
}

// Where no other look follows, the one there is must do.
func TestVerdictOfTheOnlyLook(t *testing.T) {
	s := &Sampler{opt: Defaults(), spaces: []*space{{}}}
	l := shown(8192, 200, 100, 0)
	s.judge(l, newAccount(l.ID, time.Minute), &backlog.Snapshot{Time: time.Unix(1_700_000_000, 0)})
	require.Equal(t, backlog.StatusSaturated, l.Verdict.Status)
}
