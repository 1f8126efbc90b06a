package assemble

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/connections"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Of a burst that is larger than the room in front of and behind the acceptor most packets fall
// because the connections are taken, if they were: however fast it is, it could let no more in.
func TestBurstBeyondTheRoom(t *testing.T) {
	now := time.Unix(1000, 0)
	held := func(n int, at time.Time) *model.Listener {
		return &model.Listener{
			AcceptQueue: &model.AcceptQueue{Length: 11, Limit: 10},
			Connector:   &model.Connector{MaxConnections: &model.Setting[int]{Value: 20}},
			Connections: &model.Connections{At: at, Accepted: n, Phases: [model.NumPhases]int{model.InService: n}},
		}
	}
	slow := evidence.Judgement{Cause: model.CauseSlowAccept, Strength: evidence.StrengthAcceptor}
	starved := evidence.Judgement{Cause: model.CauseCPUSaturated, Strength: evidence.StrengthProcess}
	counts := func(n int, at time.Time) []facts.Reading[*connections.Found] {
		return []facts.Reading[*connections.Found]{{At: at, Value: &connections.Found{Counts: *held(n, at).Connections}}}
	}
	tests := map[string]struct {
		before, after int // connections held
		counted       time.Duration
		packets       uint64
		lasts         time.Duration
		says          evidence.Judgement
		want          model.Cause // "": not known yet
	}{
		"all taken, and many more than the room": {0, 20, 50 * time.Millisecond, 269, 0, slow, model.CauseMaxConnections},
		"the acceptor lacked a CPU as well":      {0, 20, 50 * time.Millisecond, 269, 0, starved, model.CauseMaxConnections},
		"room is left":                           {0, 12, 50 * time.Millisecond, 288, 0, slow, model.CauseSlowAccept},
		"room is left, without a CPU":            {0, 12, 50 * time.Millisecond, 288, 0, starved, model.CauseCPUSaturated},
		"no more than there was room for":        {0, 20, 50 * time.Millisecond, 30, 0, slow, model.CauseSlowAccept},
		"half of the room was taken before":      {10, 20, 50 * time.Millisecond, 30, 0, slow, model.CauseMaxConnections},
		"they came over some time":               {0, 20, 50 * time.Millisecond, 269, time.Second, slow, model.CauseSlowAccept},
		"not counted since":                      {0, 20, -time.Millisecond, 269, 0, slow, ""},
		"room is left, and no acceptor was seen": {0, 12, 50 * time.Millisecond, 288, 0, evidence.Judgement{Cause: model.CauseSlowAccept, Strength: evidence.StrengthPhases}, ""},
		"counted late":                           {0, 12, time.Second, 288, 0, evidence.Judgement{Cause: model.CauseSlowAccept, Strength: evidence.StrengthPhases}, model.CauseAcceptQueue},
		"another cause stays":                    {0, 20, 50 * time.Millisecond, 269, 0, evidence.Judgement{Cause: model.CauseJVMPause, Strength: evidence.StrengthProcess}, model.CauseJVMPause},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := &witness{
				now: now.Add(max(100*time.Millisecond, tt.counted)), t: reading.DefaultThresholds(), listener: held(tt.after, now.Add(tt.counted)),
				before:     moment{Listener: held(tt.before, now.Add(-time.Second)), at: now.Add(-time.Second)},
				counted:    counts(tt.after, now.Add(tt.counted)),
				judgements: []facts.Reading[evidence.Judgement]{{At: now, Value: tt.says}},
			}
			c, _, known := w.cause(losses.Drop{Since: now, Until: now.Add(tt.lasts), Packets: tt.packets})
			require.Equal(t, tt.want != "", known)
			require.Equal(t, tt.want, c)
		})
	}
}

// Where a worker accepts (NIO2), and all were busy in both readings near a drop, these are the limit behind it; of
// readings that are not near it is not known.
func TestDropForWantOfWorkers(t *testing.T) {
	now := time.Unix(1000, 0)
	busy := func(at time.Time) *model.Listener {
		return &model.Listener{
			AcceptQueue: &model.AcceptQueue{Length: 3, Limit: 2},
			Connector:   &model.Connector{Server: "tomcat", Protocol: "http-nio2", MaxThreads: &model.Setting[int]{Value: 6}, MaxConnections: &model.Setting[int]{Value: 60}},
			Connections: &model.Connections{At: at, Accepted: 7, Phases: [model.NumPhases]int{model.InService: 6, model.Waiting: 1}},
		}
	}
	for name, tt := range map[string]struct {
		before, after time.Duration // of the drop
		want          model.Cause
	}{
		"around it":       {-time.Second, 300 * time.Millisecond, model.CauseMaxThreads},
		"both before it":  {-1300 * time.Millisecond, -300 * time.Millisecond, model.CauseMaxThreads},
		"one long before": {-5 * time.Second, 300 * time.Millisecond, model.CauseAcceptQueue},
		"one long after":  {-time.Second, 5 * time.Second, model.CauseAcceptQueue},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{
				now: now.Add(max(time.Second, tt.after)), t: reading.DefaultThresholds(), listener: busy(now.Add(tt.after)),
				before: moment{Listener: busy(now.Add(tt.before)), at: now.Add(tt.before)},
			}
			c, e, known := w.cause(losses.Drop{Since: now, Until: now.Add(10 * time.Millisecond), Packets: 30})
			require.True(t, known)
			require.Equal(t, tt.want, c)
			require.Equal(t, tt.want == model.CauseMaxThreads, e == model.EvidencePhases)
		})
	}
}
