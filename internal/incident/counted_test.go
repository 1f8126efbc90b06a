package incident

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What became of a client is known late, when the trouble is over and where a recording has no
// room for frames any more. It is counted all the same, in the list and in what is told.
func TestClientsThatAreKnownLateAreCounted(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		d, tracker := newDirect(t, dir, someLimits())
		v := newLife(1)
		var turnedAway uint64
		record := func(kind trouble, open int) {
			s := v.next(kind)
			l := &s.Listeners[0]
			totals := model.ClientTotals{}
			totals.Outcomes[model.ClientStalled] = turnedAway
			l.Totals.Clients = &totals
			if l.Losses != nil {
				l.Losses.Clients = &model.Clients{ClientTotals: totals, Stalling: open}
			}
			tracker.record(s, d)
		}
		record(calm, 0)
		for range 600 {
			turnedAway++
			record(connectionsFull, 30)
		}
		for range 90 {
			record(calm, 30)
		}
		require.Len(t, tracker.cases, 1, "of 30 clients it is not known whether they have left")
		turnedAway += 30
		for range 3 {
			record(calm, 0)
		}
		require.Empty(t, tracker.cases)
		s := d.shelf.list()[0]
		require.EqualValues(t, 630, *s.TurnedAway)
		story := d.story(t, s.ID)
		require.EqualValues(t, 630, *story.Summary.TurnedAway)
	}
}

// Nobody keeps a recording open for ever.
func TestARecordingEndsWhateverStillTries(t *testing.T) {
	d, tracker := newDirect(t, "", someLimits())
	v := newLife(1)
	record := func(kind trouble) {
		s := v.next(kind)
		if l := s.Listeners[0].Losses; l != nil {
			l.Clients = &model.Clients{Stalling: 5}
		}
		tracker.record(s, d)
	}
	record(calm)
	record(connectionsFull)
	for range 130 {
		record(calm)
	}
	require.Empty(t, tracker.cases)
	require.Equal(t, recording.EndOver, d.shelf.list()[0].Reason)
}
