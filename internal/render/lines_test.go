package render_test

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/watch"
)

func TestLinesGolden(t *testing.T) {
	var b bytes.Buffer
	lines := watch.NewLines(&b, time.Second)
	looks := filling()
	gone := down()
	gone.Time = looks[len(looks)-1].Time.Add(time.Second)
	empty := snapshotOf()
	empty.Time = gone.Time.Add(time.Second)
	for _, look := range append(looks, gone, empty) {
		require.NoError(t, lines.Add(look))
	}
	checkGolden(t, "watch_lines.txt", b.Bytes())
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 151)
	}
}

// What was seen between two lines is in the second: the highest, and all losses.
func TestLinesLeaveNothingOut(t *testing.T) {
	var b bytes.Buffer
	lines := watch.NewLines(&b, time.Second)
	for _, look := range []struct {
		after   time.Duration
		recent  int
		dropped uint64
	}{{0, 0, 5}, {300 * time.Millisecond, 77, 6}, {600 * time.Millisecond, 3, 8}, {time.Second, 1, 9}} {
		s := okIdle()
		s.Time = at().Add(look.after)
		s.Listeners[0].AcceptQueue.Recent = look.recent
		s.Listeners[0].Totals = model.Totals{
			Dropped:           map[model.DropKey]uint64{{Cause: model.CauseMaxConnections}: look.dropped},
			AbandonedRequests: 2 * look.dropped,
		}
		require.NoError(t, lines.Add(s))
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, rows, 3, "a heading and two lines")
	require.Equal(t, []string{"03:00:12", "[::]:8080", "ok", "-", "0/101", "0", "12/8192", "0", "2/200", "5", "10", "n/a", "n/a"}, strings.Fields(rows[1]))
	require.Equal(t, []string{"03:00:13", "[::]:8080", "ok", "-", "0/101", "77", "12/8192", "0", "2/200", "4", "8", "n/a", "n/a"}, strings.Fields(rows[2]))
}

// A listener that goes drops up to its end: its port's line says so, and it is not
// shown again when another one is there.
func TestLinesTellTheLastDrops(t *testing.T) {
	var b bytes.Buffer
	lines := watch.NewLines(&b, time.Second)
	up, gone, back := okIdle(), down(), okIdle()
	totals := func(n uint64) model.Totals {
		clients := &model.ClientTotals{}
		clients.Outcomes[model.ClientGaveUp], clients.Outcomes[model.ClientDelayed] = n, 3*n
		return model.Totals{
			Dropped:           map[model.DropKey]uint64{{Cause: model.CauseMaxConnections}: n},
			AbandonedRequests: 2 * n,
			Clients:           clients,
		}
	}
	up.Listeners[0].Totals = totals(5)
	id := up.Listeners[0].ID
	gone.Listeners = slices.DeleteFunc(gone.Listeners, func(l model.Listener) bool { return l.Listening() })
	gone.Listeners[0].Port, gone.Listeners[0].ID.NetNS = id.Address.Port(), id.NetNS
	other := id
	other.NetNS++
	gone.Retired = []model.RetainedTotals{{ID: other, Totals: totals(100)}, {ID: id, Totals: totals(9)}}
	back.Listeners[0].Totals = totals(10)
	for i, look := range []*model.Snapshot{up, gone, gone, back} {
		next := *look
		next.Time = at().Add(time.Duration(i) * time.Second)
		require.NoError(t, lines.Add(&next))
	}
	var dropped [][]string
	for row := range strings.Lines(b.String()) {
		dropped = append(dropped, strings.Fields(row)[9:])
	}
	require.Equal(t, [][]string{
		{"dropped", "abandoned", "turned_away", "late"},
		{"5", "10", "5", "15"},
		{"4", "8", "4", "12"},
		{"0", "0", "0", "0"},
		{"1", "2", "1", "3"},
	}, dropped)
}

// What no socket accounts for is this listener's as long as the losses say so: an
// old kernel has no counter for each socket.
func TestDropsThatOnlyTheNamespaceCounts(t *testing.T) {
	var looks []*model.Snapshot
	for i, n := range []struct{ namespace, unattributed uint64 }{{3, 0}, {4, 1}, {9, 6}, {9, 6}, {11, 0}, {12, 1}} {
		s := okIdle()
		l := &s.Listeners[0]
		s.Time = at().Add(time.Duration(i) * time.Second)
		s.NetNS = []model.NetNS{{ID: l.ID.NetNS + 1, Unattributed: 1000}, {ID: l.ID.NetNS, Unattributed: n.namespace}}
		l.Losses = &model.Losses{DroppedPackets: n.unattributed, Unattributed: n.unattributed}
		l.Verdict.Status = model.StatusLosing
		looks = append(looks, s)
	}
	looks[0].Listeners[0].Losses = nil
	var b bytes.Buffer
	lines := watch.NewLines(&b, time.Second)
	for _, look := range looks {
		require.NoError(t, lines.Add(look))
	}
	var dropped []string
	for row := range strings.Lines(b.String()) {
		dropped = append(dropped, strings.Fields(row)[9])
	}
	require.Equal(t, []string{"dropped", "0", "1", "5", "0", "0", "1"}, dropped)
	f := framesOf(100, 44, looks...)
	require.Regexp(t, `dropped .* ·▂█··▂ +5\n`, f.View())
	b.Reset()
	require.NoError(t, f.End(&b))
	require.Contains(t, b.String(), "Since the start: 7 packets dropped")
}

// The pods of a node all listen on [::]:8080.
func TestLinesTellNamespacesApart(t *testing.T) {
	look := okIdle()
	second := look.Listeners[0]
	second.ID.NetNS++
	second.Process = &model.Process{PID: 77, Comm: "java"}
	look.Listeners = append(look.Listeners, second)
	look.NetNS = append(look.NetNS, model.NetNS{ID: second.ID.NetNS})
	require.Equal(t, []string{"listener", "[::]:8080/4242", "[::]:8080/77"}, column(t, time.Second, 1, look))
	look.Listeners[1].Process = nil
	require.Equal(t, []string{"listener", "[::]:8080/4242", "[::]:8080"}, column(t, time.Second, 1, look))
}

func TestPodsComeFirst(t *testing.T) {
	look := okIdle()
	l := &look.Listeners[0]
	l.Pod = &model.Pod{Namespace: "orders", Name: "orders-7d9c5b6f8d-x2x1k", Container: "app", UID: "0b51"}
	l.Process.Container = "3f2a9bb1c07de4a1"
	require.Equal(t, []string{"listener", "orders/orders-7d9c5b6f8d-x2x1k:8080"}, column(t, time.Second, 1, look))
	first, _, _ := strings.Cut(text(t, look, render.TextOptions{Width: 100}), "\n")
	require.Contains(t, first, "orders/orders-7d9c5b6f8d-x2x1k (app) · java 4242")
	require.NotContains(t, first, "3f2a", "an id is not what a person reads first")
	second := look.Listeners[0]
	second.ID.NetNS, second.Pod = second.ID.NetNS+1, &model.Pod{Namespace: "orders", Name: "orders-7d9c5b6f8d-77aaz"}
	look.Listeners = append(look.Listeners, second)
	for _, width := range []int{80, 120} {
		got := text(t, look, render.TextOptions{Width: width})
		require.Regexp(t, `orders/.*x2x1k`, got)
		require.Regexp(t, `orders/.*77aaz`, got)
	}
	gone := down()
	gone.Listeners[0].Last = &model.LastListener{Address: "[::]:8080", Comm: "java", PID: 77, Pod: second.Pod}
	require.Contains(t, text(t, gone, render.TextOptions{Width: 120}), "was java 77 of orders/orders-7d9c5b6f8d-77aaz")
}

func TestLinesWithinASecond(t *testing.T) {
	look := okIdle()
	look.Time = at().Add(340 * time.Millisecond)
	require.Equal(t, []string{"time", "03:00:12.340"}, column(t, 200*time.Millisecond, 0, look))
	require.Equal(t, []string{"time", "03:00:12"}, column(t, time.Second, 0, look))
	none := snapshotOf()
	none.Time = look.Time
	require.Equal(t, []string{"03:00:12.340"}, column(t, 200*time.Millisecond, 0, none))
}

// column is the n-th word of each row that the snapshot is written in.
func column(t *testing.T, interval time.Duration, i int, look *model.Snapshot) (words []string) {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, watch.NewLines(&b, interval).Add(look))
	for row := range strings.Lines(b.String()) {
		words = append(words, strings.Fields(row)[i])
	}
	return words
}

func TestLinesSayWhatIsNotKnown(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, watch.NewLines(&b, time.Second).Add(down()))
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Equal(t, []string{"03:00:12", ":9090", "down", "no_listener", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a"}, strings.Fields(rows[2]))
	require.Error(t, watch.NewLines(failing{io.ErrShortWrite}, time.Second).Add(okIdle()))
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	lines := watch.NewJSONLines(&b, time.Second)
	for i := range 5 {
		s := overload()
		s.Time = at().Add(time.Duration(i) * time.Second / 2)
		require.NoError(t, lines.Add(s))
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, rows, 3)
	for _, row := range rows {
		var doc struct{ Schema string }
		require.NoError(t, json.Unmarshal([]byte(row), &doc))
		require.Equal(t, api.SnapshotSchema, doc.Schema)
	}
	require.Error(t, watch.NewJSONLines(failing{io.ErrShortWrite}, time.Second).Add(okIdle()))
}
