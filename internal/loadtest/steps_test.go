package loadtest_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What is advised are the settings that would have served the whole run, and nothing is advised against that
// is part of them.
func TestStepsAreOfTheWholeRun(t *testing.T) {
	s := begin()
	s.seconds(6, 40, 4)
	s.listener.Verdict.Answer = model.Answer{
		Do: []model.Step{
			{Text: "see", Command: "jstack"},
			{Text: "let in", Setting: "maxConnections", Limit: reading.StageMaxConnections, From: "4", To: "4000"},
			{Text: "Let fewer wait", Setting: "acceptCount", Limit: reading.StageAcceptQueue, From: "5", To: "2"},
		},
		Not: "acceptCount: clients only wait longer.",
	}
	for range 5 {
		v := s.listener.Verdict.Answer
		s.listener.Verdict = model.Verdict{Status: model.StatusLosing, Cause: model.CauseMaxConnections, Answer: v}
		s.listener.Totals.Clients.Outcomes[model.ClientGaveUp] += 20
		s.second(40, 4)
	}
	r := s.result(t)
	require.NotNil(t, r.Settings, r.Unplanned)
	a := r.Worst.Verdict.Answer
	require.Equal(t, "jstack", a.Do[0].Command)
	raised := make(map[string]model.Step)
	for _, step := range a.Do[1:] {
		raised[step.Limit] = step
	}
	now := r.Settings.InForce()
	for _, c := range []struct {
		limit    string
		from, to int
	}{
		{reading.StageMaxThreads, now.Threads, r.Settings.Limits.Threads},
		{reading.StageMaxConnections, now.MaxConnections, r.Settings.Limits.MaxConnections},
		{reading.StageAcceptQueue, now.AcceptCount, r.Settings.Limits.AcceptCount},
	} {
		step, is := raised[c.limit]
		require.Equal(t, c.to > c.from, is, "%s from %d to %d", c.limit, c.from, c.to)
		if is {
			require.Equal(t, strconv.Itoa(c.to), step.To)
			require.Equal(t, strconv.Itoa(c.from), step.From)
		}
	}
	require.GreaterOrEqual(t, r.Settings.Limits.AcceptCount, 16, "a quarter of a second of 66 clients a second")
	require.Contains(t, raised, reading.StageAcceptQueue)
	require.NotContains(t, raised[reading.StageAcceptQueue].Text, "fewer")
	require.Empty(t, a.Not)
	require.Equal(t, "4000", s.listener.Verdict.Answer.Do[1].To, "the snapshot's own stays as it was")
}
