package diagnosis

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func TestQuiet(t *testing.T) {
	now := time.Unix(2000, 0)
	ended := now.Add(-55 * time.Second)
	for _, tt := range []struct {
		in   model.Recent
		want string
	}{
		{model.Recent{Packets: 147, ClientsTurnedAway: new(uint64(34))}, "Quiet now. 34 clients were turned away, the last one 55 s ago: max_connections."},
		{model.Recent{Packets: 147, ClientsTurnedAway: new(uint64(34)), Proxies: 2}, "Quiet now. 34 connections were turned away, the last one 55 s ago: max_connections."},
		{model.Recent{Packets: 2, ClientsTurnedAway: new(uint64(1))}, "Quiet now. 1 client was turned away, 55 s ago: max_connections."},
		{model.Recent{Packets: 9, ClientsTurnedAway: new(uint64(0))}, "Quiet now. 9 packets of clients were dropped, of none is it known that it was turned away; the last packet 55 s ago: max_connections."},
		{model.Recent{Packets: 147}, "Quiet now. 147 packets of clients were dropped, the last one 55 s ago: max_connections."},
		{model.Recent{QueueResets: 3}, "Quiet now. 3 queued connections were reset, 55 s ago: max_connections."},
	} {
		tt.in.Ended, tt.in.Cause = ended, model.CauseMaxConnections
		l := &model.Listener{Recent: &tt.in}
		require.Empty(t, Quiet(l, now), "it lasts")
		tt.in.Over = true
		require.Equal(t, tt.want, Quiet(l, now))
		l.Verdict.Status = saturated
		require.Equal(t, strings.Replace(tt.want, "Quiet now. ", "Before: ", 1), Quiet(l, now))
		l.Verdict.Status = losing
		require.Empty(t, Quiet(l, now))
	}
	require.Empty(t, Quiet(&model.Listener{}, now))

	l := &model.Listener{Recent: &model.Recent{ClientsTurnedAway: new(uint64(34)), Ended: ended, Over: true}, Losses: &model.Losses{Clients: &model.Clients{Stalling: 9}}}
	require.Equal(t, "Quiet now. 34 clients were turned away, the last one 55 s ago. 9 more have had no answer, and may have left: that is known within two minutes.", Quiet(l, now))
}

// The status is of what was lost lately, whatever the minute before had.
func TestTheVerdictIsOfTheLastSeconds(t *testing.T) {
	l := tomcat(20, 60, 20).inService(20).waiting(40).queue(21, time.Second).lost(model.CauseMaxConnections, model.PacketSYN, 900)
	l.Lately = &model.Lately{Span: 10 * time.Second}
	seen := symptoms.Input{Now: l.Listener, Before: l.Listener, Elapsed: time.Second, Interval: time.Minute, Sysctl: sysctls()}
	require.Equal(t, saturated, Judge(seen, reading.DefaultThresholds()).Status)

	l.Lately.Losses = model.Losses{DroppedPackets: 7, By: []model.Drops{{DropKey: model.DropKey{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}, Packets: 7}}}
	v := Judge(seen, reading.DefaultThresholds())
	require.Equal(t, losing, v.Status)
	require.Contains(t, v.Summary, "7 packets were dropped in the last 10 s")
}

// Clients that leave without an answer when their load ends had waited for what was full then, and is empty now.
func TestWhoLeavesWaitedForWhatWasFull(t *testing.T) {
	judge := func(now, before look, shown *model.Shown) model.Verdict {
		return Judge(symptoms.Input{Now: now.Listener, Before: before.Listener, Elapsed: time.Second, Interval: 10 * time.Second, Sysctl: sysctls(), Shown: shown}, reading.DefaultThresholds())
	}
	full := tomcat(200, 100, 50).inService(2).idle(98).queue(50, 14*time.Second)
	was := judge(full, tomcat(200, 100, 50).inService(2).idle(98).queue(50, 13*time.Second), nil)
	require.Equal(t, model.CauseKeepAliveIdle, was.Cause)
	gone := func(begun uint64) look {
		return tomcat(200, 100, 50).do(answers(100, 47)).do(func(l *model.Listener) { l.Losses.Clients.Begun = begun })
	}
	v := judge(gone(0), full, &model.Shown{Verdict: was, Started: true})
	require.Equal(t, model.StatusLosing, v.Status)
	require.Equal(t, model.CauseKeepAliveIdle, v.Cause)
	require.Equal(t, "As of a moment ago: "+was.Answer.Why, v.Answer.Why)
	require.Equal(t, was.Answer.Do, v.Answer.Do)
	again := judge(gone(0), gone(0), &model.Shown{Verdict: v, Started: true})
	require.Equal(t, v.Answer, again.Answer, "the moment after")

	require.Equal(t, model.CauseNone, judge(gone(3), full, &model.Shown{Verdict: was, Started: true}).Cause, "others came since")
	require.Equal(t, model.CauseNone, judge(gone(0), full, nil).Cause, "nothing was shown before")
}
