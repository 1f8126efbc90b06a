package assemble

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// shown is a Tomcat of 200 threads as a scan would deliver it.
func shown(connections, inService, waiting, queued int) *model.Listener {
	set := func(n int) *model.Setting[int] {
		return &model.Setting[int]{Value: n, Kind: model.SourceFile}
	}
	l := &model.Listener{
		ID:   model.ListenerID{Address: netip.MustParseAddrPort("127.0.0.1:8080")},
		Port: 8080, Inode: 7, Members: 1,
		Process:     &model.Process{PID: 42, StartTime: 1, RunDelay: new(time.Duration)},
		Connector:   &model.Connector{Server: "tomcat", MaxThreads: set(200), MaxConnections: set(connections), PoolThreads: new(200)},
		AcceptQueue: &model.AcceptQueue{Length: queued, Limit: 5},
		Connections: &model.Connections{Accepted: inService + waiting},
		Losses:      &model.Losses{},
	}
	l.Connections.Phases[model.InService], l.Connections.Phases[model.Waiting] = inService, waiting
	return l
}

func with(l *model.Listener, change func(*model.Listener)) *model.Listener {
	change(l)
	return l
}

// The first of two scans is judged from one: what it says must not stand in the
// way of what both say.
func TestVerdictOfTheSecondLook(t *testing.T) {
	type verdict struct {
		status model.Status
		cause  model.Cause
	}
	for name, tt := range map[string]struct {
		looks []*model.Listener
		want  verdict
	}{
		"all threads busy, for want of CPU": {
			[]*model.Listener{shown(8192, 200, 100, 0), with(shown(8192, 200, 100, 0), func(l *model.Listener) { l.Process.RunDelay = new(150 * time.Second) })},
			verdict{model.StatusSaturated, model.CauseCPUSaturated},
		},
		"slots of connections that clients reset are counted from the second look on": {
			[]*model.Listener{shown(20, 8, 0, 6), with(shown(20, 8, 0, 6), func(l *model.Listener) { l.Connections.Reset = new(12) })},
			verdict{model.StatusSaturated, model.CauseMaxConnections},
		},
		"a healthy server caught with busy threads": {
			[]*model.Listener{shown(8192, 190, 1, 0), shown(8192, 90, 0, 0)}, verdict{status: model.StatusOK},
		},
		"a healthy server caught with a full queue": {
			[]*model.Listener{shown(8192, 90, 0, 6), shown(8192, 90, 0, 0)}, verdict{status: model.StatusOK},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &history{}
			now := time.Unix(1_700_000_000, 0)
			for i, l := range tt.looks {
				s.judge(l, nil, &judged{
					now: now.Add(time.Duration(i) * time.Second), interval: time.Second, every: time.Second,
					first: true, t: reading.DefaultThresholds(),
				})
			}
			require.Equal(t, model.StatusOK, tt.looks[0].Verdict.Status, tt.looks[0].Verdict.Summary)
			last := tt.looks[len(tt.looks)-1].Verdict
			require.Equal(t, tt.want, verdict{last.Status, last.Cause}, last.Summary)
		})
	}
}

// Where no other look follows, the one there is must do.
func TestVerdictOfTheOnlyLook(t *testing.T) {
	l := shown(8192, 200, 100, 0)
	new(history).judge(l, nil, &judged{now: time.Unix(1_700_000_000, 0), every: time.Second, t: reading.DefaultThresholds()})
	require.Equal(t, model.StatusSaturated, l.Verdict.Status)
}

// TestNothingFollowsTheLastLook: what the last snapshot shows is not held back for one that
// would show it again; nor is, by whatever look, that the process is stopped.
func TestNothingFollowsTheLastLook(t *testing.T) {
	for name, tt := range map[string]struct {
		follows bool
		change  func(*model.Listener)
		want    model.Cause
	}{
		"another look may follow": {true, func(l *model.Listener) { l.Process.RunDelay = new(450 * time.Second) }, model.CauseMaxConnections},
		"the last":                {false, func(l *model.Listener) { l.Process.RunDelay = new(450 * time.Second) }, model.CauseCPUSaturated},
		"stopped":                 {true, func(l *model.Listener) { l.Process.Stopped = true }, model.CauseJVMPause},
	} {
		t.Run(name, func(t *testing.T) {
			s, now := &history{}, time.Unix(1_700_000_000, 0)
			var l *model.Listener
			for i := range 4 {
				l = shown(20, 20, 0, 6)
				if i == 3 {
					tt.change(l)
				}
				if i == 2 && tt.want == model.CauseJVMPause {
					l.Process.Stopped = true
				}
				s.judge(l, nil, &judged{
					now: now.Add(time.Duration(i) * time.Second), interval: time.Second, every: time.Second,
					first: tt.follows || i < 3, t: reading.DefaultThresholds(),
				})
			}
			require.Equal(t, tt.want, l.Verdict.Cause, l.Verdict.Summary)
		})
	}
}
