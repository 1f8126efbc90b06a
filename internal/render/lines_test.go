package render_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

func TestLinesGolden(t *testing.T) {
	var b bytes.Buffer
	lines := render.NewLines(&b, time.Second)
	looks := filling()
	gone := down()
	gone.Time = looks[len(looks)-1].Time.Add(time.Second)
	empty := snapshotOf()
	empty.Time = gone.Time.Add(time.Second)
	for _, look := range append(looks, gone, empty) {
		require.NoError(t, lines.Look(look))
	}
	checkGolden(t, "watch_lines.txt", b.Bytes())
	for line := range strings.Lines(b.String()) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 132)
	}
}

// What was seen between two lines is in the second: the highest, and all losses.
func TestLinesLeaveNothingOut(t *testing.T) {
	var b bytes.Buffer
	lines := render.NewLines(&b, time.Second)
	for _, look := range []struct {
		after   time.Duration
		recent  int
		dropped uint64
	}{{0, 0, 5}, {300 * time.Millisecond, 77, 6}, {600 * time.Millisecond, 3, 8}, {time.Second, 1, 9}} {
		s := okIdle()
		s.Time = at().Add(look.after)
		s.Listeners[0].AcceptQueue.Recent = look.recent
		s.Listeners[0].Totals = backlog.Totals{
			Dropped:           map[backlog.DropKey]uint64{{Cause: backlog.CauseMaxConnections}: look.dropped},
			AbandonedRequests: 2 * look.dropped,
		}
		require.NoError(t, lines.Look(s))
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, rows, 3, "a heading and two lines")
	require.Equal(t, []string{"03:00:12", "[::]:8080", "ok", "-", "0/101", "0", "12/8192", "0", "2/200", "5", "10"}, strings.Fields(rows[1]))
	require.Equal(t, []string{"03:00:13", "[::]:8080", "ok", "-", "0/101", "77", "12/8192", "0", "2/200", "4", "8"}, strings.Fields(rows[2]))
}

func TestLinesSayWhatIsNotKnown(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, render.NewLines(&b, time.Second).Look(down()))
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Equal(t, []string{"03:00:12", ":9090", "down", "no_listener", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a", "n/a"}, strings.Fields(rows[2]))
	require.Error(t, render.NewLines(failing{io.ErrShortWrite}, time.Second).Look(okIdle()))
}

func TestJSONLines(t *testing.T) {
	var b bytes.Buffer
	lines := render.NewJSONLines(&b, time.Second)
	for i := range 5 {
		s := overload()
		s.Time = at().Add(time.Duration(i) * time.Second / 2)
		require.NoError(t, lines.Look(s))
	}
	rows := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, rows, 3)
	for _, row := range rows {
		var doc struct{ Schema string }
		require.NoError(t, json.Unmarshal([]byte(row), &doc))
		require.Equal(t, render.SnapshotSchema, doc.Schema)
	}
	require.Error(t, render.NewJSONLines(failing{io.ErrShortWrite}, time.Second).Look(okIdle()))
}
