package evidence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStandstillFromScanToScan: seconds apart, and whatever the clock is set to.
func TestStandstillFromScanToScan(t *testing.T) {
	const ms = time.Millisecond
	born := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	type reading struct {
		at                   time.Duration // since the JVM started
		safepoints           int64
		application, stopped time.Duration
		collecting           bool
		synced               time.Duration
		want                 any // the length of the safepoint under way, nil without
	}
	for name, readings := range map[string][]reading{
		"runs":                           {{at: 1000 * ms}, {at: 2000 * ms}},
		"short safepoints between scans": {{at: 1000 * ms}, {at: 2000 * ms, safepoints: 3, application: 1900 * ms, stopped: 3 * ms}},
		"a collection, seen by the first scan": {
			{at: 1300 * ms, safepoints: 7, application: 950 * ms, stopped: 50 * ms, collecting: true, want: 300 * ms},
		},
		"a safepoint that is no collection": {
			{at: 1000 * ms},
			{at: 1300 * ms, safepoints: 1, application: 1100 * ms, want: 200 * ms},
			{at: 2300 * ms, safepoints: 1, application: 1100 * ms, want: 1200 * ms},
			{at: 2400 * ms, safepoints: 1, application: 1100 * ms, stopped: 1250 * ms},
			{at: 2500 * ms, safepoints: 1, application: 1100 * ms, stopped: 1250 * ms},
		},
		"the rest of the safepoint behind a collection": {
			{at: 1000 * ms},
			{at: 1300 * ms, safepoints: 2, application: 1080 * ms, stopped: 20 * ms, collecting: true, want: 200 * ms},
			{at: 1400 * ms, safepoints: 2, application: 1080 * ms, stopped: 20 * ms, want: 300 * ms},
			{at: 1500 * ms, safepoints: 3, application: 1085 * ms, stopped: 340 * ms},
		},
		"its threads are waited for": {
			{at: 1000 * ms},
			{at: 1300 * ms, safepoints: 1, application: 1100 * ms, want: 200 * ms},
			{at: 2300 * ms, safepoints: 1, application: 1100 * ms, want: 1200 * ms},
			{at: 2400 * ms, safepoints: 1, application: 1100 * ms, synced: 1250 * ms, want: 1300 * ms},
			{at: 2500 * ms, safepoints: 1, application: 1100 * ms, synced: 1250 * ms, stopped: 100 * ms},
			{at: 2700 * ms, safepoints: 2, application: 1200 * ms, synced: 1270 * ms, stopped: 100 * ms, want: 150 * ms},
		},
		"one follows the other": {
			{at: 1000 * ms},
			{at: 1300 * ms, safepoints: 1, application: 1100 * ms, want: 200 * ms},
			{at: 1700 * ms, safepoints: 2, application: 1200 * ms, stopped: 250 * ms, collecting: true, want: 250 * ms},
		},
		"the clock was set by an hour": {
			{at: time.Hour},
			{at: time.Hour + 300*ms, safepoints: 1, application: 200 * ms, want: 300 * ms},
			{at: time.Hour + 1300*ms, safepoints: 1, application: 200 * ms, want: 1300 * ms},
			{at: time.Hour + 2300*ms, safepoints: 1, application: 200 * ms, stopped: 1400 * ms},
			{at: time.Hour + 3300*ms, safepoints: 2, application: 1700 * ms, stopped: 1400 * ms, want: 400 * ms},
		},
		"and back": {
			{at: 100 * ms},
			{at: 400 * ms, safepoints: 1, application: time.Hour, want: time.Duration(0)},
			{at: 1400 * ms, safepoints: 1, application: time.Hour, want: 1000 * ms},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var s Standstill
			require.False(t, s.MayStand())
			for _, r := range readings {
				got := s.Next(born.Add(r.at), Counters{
					Started: born, Begun: r.safepoints, Ran: r.application, Stood: r.stopped, Synced: r.synced, Collecting: r.collecting,
				})
				require.Equal(t, r.want != nil, got.UnderWay, r.at)
				require.Equal(t, got.UnderWay || got.Unclear, s.MayStand(), r.at)
				if r.want != nil {
					require.Equal(t, r.want, got.Lasted, r.at)
				}
			}
		})
	}
}
