package cli

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The snapshots of the documents, of a server that stands in for the reader's: on port
// 8080, as process 4711.
func TestDocumentsSnapshots(t *testing.T) {
	all := usages(t)
	ns, addr := fullListener(t)
	t.Chdir(t.TempDir()) // --report writes there
	ran := 0
	for _, u := range all {
		if len(u.args) == 0 || u.args[0] != "snapshot" {
			continue
		}
		ran++
		replaced := strings.NewReplacer("8080", strconv.Itoa(int(addr.Port())), "4711", strconv.Itoa(os.Getpid()))
		var args []string
		for _, arg := range u.args {
			args = append(args, replaced.Replace(arg))
		}
		cmd := tcpdiag(ns, args...)
		out, err := cmd.CombinedOutput()
		if strings.Contains(strings.Join(args, " "), "--exit-status") {
			require.Equal(t, 11, cmd.ProcessState.ExitCode(), "%s: %v: %s", u.page, args, out)
			continue
		}
		require.NoError(t, err, "%s: %v: %s", u.page, args, out)
	}
	require.Greater(t, ran, 4)
}
