package watch

import (
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// lookAt is a snapshot, this long after the first, of a listener whose queue had peaked
// at peak and which had dropped this many packets by then.
func lookAt(after time.Duration, peak int, dropped uint64) *model.Snapshot {
	return &model.Snapshot{
		Time: time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC).Add(after),
		Listeners: []model.Listener{{
			ID:          model.ListenerID{Address: netip.MustParseAddrPort("[::]:8080")},
			Port:        8080,
			AcceptQueue: &model.AcceptQueue{Limit: 100, Recent: peak},
			Totals:      model.Totals{Dropped: map[model.DropKey]uint64{{Cause: model.CauseMaxConnections}: dropped}},
		}},
	}
}

func TestHistoryByInterval(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name    string
		looks   []*model.Snapshot
		queue   []int
		dropped []int
	}{
		{"one look", []*model.Snapshot{lookAt(0, 5, 2)}, []int{term.Unknown, term.Unknown, 5}, []int{term.Unknown, term.Unknown, 2}},
		{
			"looks within an interval are one moment: the highest, and all that was dropped",
			[]*model.Snapshot{lookAt(0, 1, 0), lookAt(s, 2, 0), lookAt(s+s/4, 9, 4), lookAt(s+s/2, 3, 6)},
			[]int{term.Unknown, 1, 9},
			[]int{term.Unknown, 0, 6},
		},
		{
			"looks that come a little early or late are one an interval",
			[]*model.Snapshot{lookAt(0, 1, 0), lookAt(s+s/20, 2, 0), lookAt(2*s, 3, 0), lookAt(3*s+s/20, 4, 0)},
			[]int{2, 3, 4},
			[]int{0, 0, 0},
		},
		{
			"what was not looked at is not known",
			[]*model.Snapshot{lookAt(0, 1, 0), lookAt(2*s, 3, 7)},
			[]int{1, term.Unknown, 3},
			[]int{0, term.Unknown, 7},
		},
		{
			"a counter that begins anew has dropped nothing",
			[]*model.Snapshot{lookAt(0, 1, 9), lookAt(s, 1, 0), lookAt(2*s, 1, 2)},
			[]int{1, 1, 1},
			[]int{9, 0, 2},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHistory(s)
			for _, look := range tt.looks {
				h.add(look)
			}
			p := identityOf(&tt.looks[0].Listeners[0])
			require.Equal(t, tt.queue, h.of(p, 3, func(m *moment) int { return m.queue }))
			require.Equal(t, tt.dropped, h.of(p, 3, func(m *moment) int { return m.dropped }))
		})
	}
}

// A sampler that samples rarely, because samples are expensive, leaves no holes.
func TestHistoryOfStretchedLooks(t *testing.T) {
	h := newHistory(time.Second)
	for i, peak := range []int{1, 3, 7} {
		look := lookAt(time.Duration(i)*2*time.Second, peak, uint64(10*i))
		if i == 1 {
			look.Self.ScanInterval = 2 * time.Second
		}
		h.add(look)
	}
	p := identityOf(&lookAt(0, 0, 0).Listeners[0])
	require.Equal(t, []int{1, 3, 3, term.Unknown, 7}, h.of(p, 5, func(m *moment) int { return m.queue }))
	require.Equal(t, []int{0, 0, 10, term.Unknown, 10}, h.of(p, 5, func(m *moment) int { return m.dropped }))
}

// What a listener lost at its end, after the latest snapshot of it, is its own.
func TestHistoryOfOneThatIsGone(t *testing.T) {
	h := newHistory(time.Second)
	up := lookAt(0, 5, 2)
	id := up.Listeners[0].ID
	h.add(up)
	for i := range 2 {
		gone := lookAt(time.Duration(i+1)*time.Second, 0, 9)
		totals := gone.Listeners[0].Totals
		totals.QueueResets = 6
		gone.Listeners, gone.Retired = nil, []model.RetainedTotals{{ID: id, Totals: totals}}
		h.add(gone)
	}
	p := identityOf(&up.Listeners[0])
	require.Equal(t, []int{2, 7, term.Unknown}, h.of(p, 3, func(m *moment) int { return m.dropped }))
	require.Equal(t, []int{5, term.Unknown, term.Unknown}, h.of(p, 3, func(m *moment) int { return m.queue }))
	require.Equal(t, uint64(6), h.byAddress()[0].totals.QueueResets)
}

// Samples that are a little expensive come further apart than asked for, and the chart's
// scale must not say otherwise.
func TestHistorySpansTheTimeThatPassed(t *testing.T) {
	const s = time.Second
	tests := []struct {
		name  string
		apart time.Duration
		looks int
		spans time.Duration // of ten columns
	}{
		{"on time", s, 20, 10 * s},
		{"half as far again", s + s/2, 20, 9*(s+s/2) + s},
		{"none was before", s, 1, 10 * s},
		{"a few were", s + s/2, 3, 2*(s+s/2) + 8*s},
		{"with holes", 3 * s, 20, 10 * s},
		{"for long", s + s/2, 3 * depth, 9*(s+s/2) + s},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHistory(s)
			for i := range tt.looks {
				h.add(lookAt(time.Duration(i)*tt.apart, 0, 0))
			}
			held := h.clone()
			require.Equal(t, tt.spans, h.span(10))
			h.add(lookAt(time.Duration(tt.looks)*tt.apart+5*s, 0, 0))
			require.Equal(t, tt.spans, held.span(10))
			require.LessOrEqual(t, len(h.began), depth)
		})
	}
}

func TestHistoryIsBounded(t *testing.T) {
	h := newHistory(time.Second)
	for i := range 3 * depth {
		h.add(lookAt(time.Duration(i)*time.Second, i, 0))
	}
	p := identityOf(&lookAt(0, 0, 0).Listeners[0])
	require.Len(t, h.tracks[p].moments, depth)
	require.Equal(t, []int{3*depth - 2, 3*depth - 1}, h.of(p, 2, func(m *moment) int { return m.queue }))
}

func TestHistoryKeepsTheWorstLook(t *testing.T) {
	h := newHistory(time.Second)
	for i, status := range []model.Status{model.StatusOK, model.StatusLosing, model.StatusSaturated} {
		snap := lookAt(time.Duration(i)*time.Second, i, 0)
		snap.Listeners[0].Verdict.Status = status
		h.add(snap)
	}
	track := h.byAddress()[0]
	require.Equal(t, model.StatusLosing, track.worst.Verdict.Status)
	require.Equal(t, 1, track.worst.AcceptQueue.Recent)
	require.Equal(t, "03:00:01", track.worstAt.Format(time.TimeOnly))
}

// What the sampler still knows of one must not be shown twice when it comes back.
func TestLinesForgetWhomTheSamplerForgot(t *testing.T) {
	lines := NewLines(io.Discard, time.Second)
	up, kept, forgotten := lookAt(0, 1, 7), lookAt(time.Second, 0, 0), lookAt(2*time.Second, 0, 0)
	id := up.Listeners[0].ID
	kept.Listeners, forgotten.Listeners = nil, nil
	kept.Retired = []model.RetainedTotals{{ID: id, Totals: up.Listeners[0].Totals}}
	require.NoError(t, lines.Add(up))
	require.NoError(t, lines.Add(kept))
	require.Equal(t, uint64(7), lines.past[identityOf(&up.Listeners[0])].drops.attributed)
	require.NoError(t, lines.Add(forgotten))
	require.Empty(t, lines.past)
}

func TestHistoryForgetsWhoLeftInPeace(t *testing.T) {
	h := newHistory(time.Second)
	calm, bad := lookAt(0, 1, 0), lookAt(0, 1, 7)
	bad.Listeners[0].Port = 8443
	bad.Listeners[0].Verdict.Status = model.StatusLosing
	calm.Listeners = append(calm.Listeners, bad.Listeners...)
	h.add(calm)
	after := func(n int) {
		s := lookAt(time.Duration(n)*time.Second, 0, 0)
		s.Listeners = nil
		h.add(s)
	}
	after(depth)
	require.Len(t, h.tracks, 2, "still on the screen")
	after(depth + 1)
	require.Len(t, h.tracks, 1)
	require.Equal(t, model.StatusLosing, h.byAddress()[0].worst.Verdict.Status)
}

// Who is refused while nothing listens is counted at the port, and said of whoever listens there alone.
func TestRefusedInLinesAndAtTheEnd(t *testing.T) {
	var out strings.Builder
	lines, h := NewLines(&out, time.Second), newHistory(time.Second)
	look := func(after time.Duration, refused uint64, listens bool) string {
		s := lookAt(after, 1, 0)
		s.Targets = []model.Target{{Port: 8080, Up: listens, Refused: new(refused)}}
		if !listens {
			s.Listeners[0] = model.Listener{Port: 8080, Expected: true}
		}
		h.add(s)
		out.Reset()
		require.NoError(t, lines.Add(s))
		fields := strings.Fields(out.String())
		return fields[len(fields)-2]
	}
	require.Equal(t, "0", look(0, 0, true))
	require.Equal(t, "30", look(time.Second, 30, false))
	require.Equal(t, "4", look(2*time.Second, 34, true))
	require.Equal(t, "0", look(3*time.Second, 34, true))
	require.Len(t, h.tracks, 2)
	for id, track := range h.tracks {
		if id.id.Address.IsValid() {
			require.EqualValues(t, 4, track.refused)
		} else {
			require.EqualValues(t, 30, track.refused)
		}
	}
}
