package diagnosis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestHysteresis(t *testing.T) {
	v := func(s model.Status, c model.Cause) model.Verdict {
		return model.Verdict{Status: s, Cause: c, Summary: "Text."}
	}
	fine, full, cpu := v(ok, ""), v(saturated, threads), v(saturated, model.CauseCPUSaturated)
	pool := v(saturated, model.CauseConnectionPool)
	lost, gone := v(losing, maxConns), v(down, model.CauseNoListener)
	slow, front := v(losing, model.CauseCPUSaturated), v(losing, model.CauseBeforeListener)
	type step struct {
		second int
		in     model.Verdict
		want   model.Verdict
	}
	for name, steps := range map[string][]step{
		"worse at once":         {{0, fine, fine}, {1, full, full}, {2, lost, lost}, {3, gone, gone}},
		"better after it lasts": {{0, full, full}, {1, fine, full}, {5, fine, full}, {6, fine, fine}},
		"no flapping":           {{0, full, full}, {1, fine, full}, {2, full, full}, {3, fine, full}, {4, full, full}, {8, fine, full}, {12, fine, full}, {13, fine, fine}},
		"losing is damped by what it is counted in": {
			{0, lost, lost}, {1, full, full}, {2, lost, lost}, {3, fine, fine},
		},
		"another cause settles first":                {{0, full, full}, {1, cpu, full}, {3, cpu, full}, {4, cpu, cpu}},
		"what the threads wait for is known at once": {{0, full, full}, {1, pool, pool}, {2, full, pool}, {5, full, full}},
		"nobody reads, as nobody accepts": {
			{0, v(losing, model.CauseNotReading), v(losing, model.CauseNotReading)}, {1, v(losing, model.CauseNotAccepting), v(losing, model.CauseNotAccepting)},
		},
		"two others in turn": {
			{0, lost, lost}, {1, slow, lost}, {2, front, lost}, {3, slow, lost}, {4, front, front}, {5, slow, front},
		},
		"causes that alternate": {{0, full, full}, {1, cpu, full}, {2, full, full}, {3, cpu, full}, {4, full, full}},
		"a better look in between: the cause starts anew": {
			{0, full, full}, {1, cpu, full}, {2, fine, full}, {4, cpu, full}, {6, cpu, full}, {7, cpu, cpu},
		},
		"another cause in between: the better status starts anew": {
			{0, full, full}, {1, fine, full}, {2, cpu, full}, {3, fine, full}, {6, fine, full}, {8, fine, fine},
		},
		"down is a fact":                      {{0, gone, gone}, {1, fine, fine}, {2, gone, gone}, {3, full, full}},
		"the first verdict is taken as it is": {{0, lost, lost}},
	} {
		t.Run(name, func(t *testing.T) {
			var h Hysteresis
			start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			for _, s := range steps {
				got := h.Apply(start.Add(time.Duration(s.second)*time.Second), s.in)
				require.Equal(t, s.want.Status, got.Status, "second %d", s.second)
				require.Equal(t, s.want.Cause, got.Cause, "second %d", s.second)
			}
		})
	}
}

func TestHysteresisSaysHowOldAVerdictIs(t *testing.T) {
	var h Hysteresis
	start := time.Unix(1000, 0)
	h.Apply(start, model.Verdict{Status: saturated, Summary: "All threads are busy."})
	got := h.Apply(start.Add(3*time.Second), model.Verdict{Summary: "Fine."})
	require.Equal(t, "All threads are busy. (As of 3 s ago: it may be over.)", got.Summary)
	got = h.Apply(start.Add(4*time.Second), model.Verdict{Status: saturated, Summary: "All threads are busy."})
	require.Equal(t, "All threads are busy.", got.Summary)
}

func TestHysteresisTimesCanBeSet(t *testing.T) {
	h := Hysteresis{Hold: time.Minute}
	start := time.Unix(1000, 0)
	h.Apply(start, model.Verdict{Status: saturated})
	require.Equal(t, saturated, h.Apply(start.Add(time.Second), model.Verdict{}).Status)
	require.Equal(t, saturated, h.Apply(start.Add(time.Minute), model.Verdict{}).Status)
	require.Equal(t, ok, h.Apply(start.Add(61*time.Second), model.Verdict{}).Status)
}
