package command

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	document "github.com/tcpdiag/tcpdiag/internal/api"
)

// What was counted between the first answer and the last is the load test's.
func TestRunCountsTheLoadTestsClients(t *testing.T) {
	c := newCluster(t)
	pod := c.add("orders-1", "n1", "app", "tcpdiag")
	began := time.Now()
	counted := func(after time.Duration, turnedAway uint64) []byte {
		return overloaded(t, pod, func(s *document.Snapshot) {
			s.Time = began.Add(after)
			s.Listeners[0].Totals = &document.Totals{
				DroppedBy: map[string]uint64{"max_connections": 100 + 3*turnedAway},
				Clients:   &document.ClientTotals{Begun: 1000 + 2*turnedAway, Connected: 900 + turnedAway, LetIn: 900 + turnedAway, GaveUp: 100 + turnedAway},
			}
		})
	}
	c.answer("shop/orders-1:10889", snapshotPath, counted(0, 0))
	dir := t.TempDir()
	file := filepath.Join(dir, "run.json")
	started := filepath.Join(dir, "started")
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		c.answer("shop/orders-1:10889", snapshotPath, counted(2*time.Second, 40))
	}()
	_, stderr, code := c.run("run", "orders-1", "--fail-on", "losing", "--settle", "0s", "--json", file, "--", "sh", "-c", "touch "+started+"; sleep 2.5")
	require.Equal(t, 12, code, stderr)
	doc, err := document.ReadRun(file)
	require.NoError(t, err)
	l := doc.Listeners[0]
	require.NotNil(t, l.Clients, stderr)
	require.EqualValues(t, 80, l.Clients.Offered)
	require.EqualValues(t, 40, l.Clients.GaveUp)
	require.EqualValues(t, 120, l.DroppedPackets)
	require.Contains(t, stderr, "40 of 80 clients got no answer")
}

// The load test runs whatever becomes of the observing, and its exit code is its own.
func TestRunNeverLosesTheLoadTest(t *testing.T) {
	c := newCluster(t)
	marker := filepath.Join(t.TempDir(), "ran")
	for name, tt := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no such pod":            {[]string{"nobody", "--", "touch", marker}, 0, "nothing is observed, the command runs all the same"},
		"asked for its result":   {[]string{"nobody", "--fail-on", "losing", "--", "touch", marker}, exitRunFailed, "nothing was observed"},
		"its own code":           {[]string{"nobody", "--", "sh", "-c", "touch " + marker + "; exit 7"}, 7, ""},
		"a signal":               {[]string{"nobody", "--", "sh", "-c", "touch " + marker + "; kill -9 $$"}, 137, ""},
		"no such command":        {[]string{"nobody", "--", "no-such-command"}, 127, "command not found"},
		"no command":             {[]string{"nobody"}, exitRunFailed, "run needs the command"},
		"no status to fail on":   {[]string{"nobody", "--fail-on", "slow", "--", "true"}, exitRunFailed, "give warning, saturated, losing or down"},
		"nowhere for its result": {[]string{"nobody", "--json", "/no/such/folder/x", "--", "touch", marker}, exitRunFailed, "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			_ = os.Remove(marker)
			_, stderr, code := c.run(append([]string{"run"}, tt.args...)...)
			require.Equal(t, tt.code, code, stderr)
			require.Contains(t, stderr, tt.says)
			if tt.code != exitRunFailed && tt.code != 127 {
				require.FileExists(t, marker)
			}
		})
	}
}
