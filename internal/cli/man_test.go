package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
)

// pages writes the manual and returns it by file name.
func pages(t *testing.T, dir string) map[string]string {
	t.Helper()
	code, stdout, stderr := call("man", dir)
	require.Zero(t, code, stderr)
	require.Empty(t, stdout)
	return filesOf(t, dir)
}

// filesOf are the files of a folder, by their names.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	all := make(map[string]string, len(files))
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		all[f.Name()] = string(text)
	}
	return all
}

// Each command that --help shows has a page, with all of its flags.
func TestManHasEveryCommand(t *testing.T) {
	all := pages(t, filepath.Join(t.TempDir(), "new", "man1"))
	want := 1
	for _, cmd := range newRootCommand().Commands() {
		if cmd.Hidden {
			continue
		}
		want++
		page := all["tcpdiag-"+cmd.Name()+".1"]
		require.Contains(t, page, "tcpdiag-"+cmd.Name()+" - "+cmd.Short)
		require.Contains(t, all["tcpdiag.1"], "tcpdiag-"+cmd.Name()+"(1)")
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			require.Contains(t, page, "--"+f.Name, "%s", cmd.Name())
		})
	}
	require.Len(t, all, want)
}

func TestManBadInput(t *testing.T) {
	code, _, stderr := call("man")
	require.Equal(t, command.ExitUsage, code)
	require.Contains(t, stderr, "accepts 1 arg(s)")
	code, _, stderr = call("man", "/proc/nowhere")
	require.Equal(t, command.ExitFailure, code)
	require.Contains(t, stderr, "/proc/nowhere")
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	code, _, stderr = call("man", t.TempDir())
	require.Equal(t, command.ExitFailure, code)
	require.Contains(t, stderr, `SOURCE_DATE_EPOCH "yesterday"`)
}

func TestManKeepsMarks(t *testing.T) {
	require.Equal(t, "\\*\\_a\\_\\* \\<b\\>\n    *as it is*", markdown("*_a_* <b>\n    *as it is*"))
}

func TestManDate(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 3, 1, 0, 0, 0, 0, time.FixedZone("", 3600)) }
	date, err := manualDate("0", now)
	require.NoError(t, err)
	require.Equal(t, time.Unix(0, 0).UTC(), date)
	date, err = manualDate("", now) // a test's program has no commit
	require.NoError(t, err)
	require.Equal(t, now().UTC(), date)
}
