package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const root = "../../../.."

// The list has what the runs have written, of each proof, and nothing else.
func TestListIsOfTheRuns(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, list))
	require.NoError(t, err)
	want, err := drawn(root)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, page), "%s is not of %s: make stale draws it again", list, runs)
	names, err := os.ReadDir(filepath.Join(root, runs))
	require.NoError(t, err)
	for _, entry := range names {
		require.Contains(t, string(page), "<td>"+entry.Name()+"</td>", "a run of a proof that there is")
	}
}

// A run is read as it was written; one that cannot be read is none.
func TestStamp(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, runs), 0o750))
	p := proof.Proof{Name: "deployments"}
	_, found := last(dir, p)
	require.False(t, found)
	want := stamp{"2026-11-28", "bd5d4a2ca1+", "4.2", "passed, skipped of its tests: 3"}
	require.NoError(t, os.WriteFile(filepath.Join(dir, runs, p.Name), []byte(want.String()+"\n"), 0o600))
	got, found := last(dir, p)
	require.True(t, found)
	require.Equal(t, want, got)
	require.Contains(t, table(dir), "<tr><td>deployments</td>\n<td>passed, skipped of its tests: 3</td><td>2026-11-28</td><td>4.2</td><td>bd5d4a2ca1+</td></tr>\n")
	require.Equal(t, len(proof.All())-1, strings.Count(table(dir), "never run whole"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, runs, p.Name), []byte("<<<<<<<\n"), 0o600))
	_, found = last(dir, p)
	require.False(t, found)
}

// A test that was skipped has shown nothing: how many were stands beside the outcome.
func TestSkipped(t *testing.T) {
	var s skips
	for _, part := range []string{"--- PASS: TestA (1s)\n    --- SK", "IP: TestA/b (0.00s)\n        why: --- SKIP: no\n", "--- SKIP: TestC (0.00s)\n"} {
		n, err := s.Write([]byte(part))
		require.NoError(t, err)
		require.Len(t, part, n)
	}
	require.Equal(t, 2, s.n)
	require.Equal(t, "0.4", minutes(24*time.Second))
	require.Equal(t, "40", minutes(40*time.Minute+8*time.Second))
}

// repository is an empty one, and git in it.
func repository(t *testing.T) (dir string, git func(args ...string)) {
	t.Helper()
	dir = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-C", dir}, args...)...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	git("init", "-q", "-b", "main")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, runs), 0o750))
	return dir, git
}

// Two branches that have each run another proof, the next one of the list, are merged.
func TestRunsMerge(t *testing.T) {
	dir, git := repository(t)
	ran := func(p proof.Proof) {
		t.Helper()
		s := stamp{"2026-11-28", "bd5d4a2ca1", "40", "passed"}
		require.NoError(t, os.WriteFile(filepath.Join(dir, runs, p.Name), []byte(s.String()+"\n"), 0o600))
		require.NoError(t, draw(dir))
		git("add", ".")
		git("commit", "-q", "-m", p.Name)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, list), []byte(listBegins+listEnds), 0o600))
	ran(proof.All()[0])
	git("branch", "other")
	ran(proof.All()[1])
	git("checkout", "-q", "other")
	ran(proof.All()[2])
	git("rebase", "-q", "main")
	page, err := os.ReadFile(filepath.Join(dir, list))
	require.NoError(t, err)
	want, err := drawn(dir)
	require.NoError(t, err)
	require.Equal(t, string(want), string(page))
	require.Equal(t, 3, strings.Count(string(page), "bd5d4a2ca1"))
}

// A run is of the commit that has the code: those with results are moved onto others', and are then
// no longer there.
func TestRunIsOfTheCodesCommit(t *testing.T) {
	dir, git := repository(t)
	t.Chdir(dir)
	commit := func(file string) {
		t.Helper()
		require.NoError(t, os.WriteFile(file, []byte(file), 0o600))
		git("add", ".")
		git("commit", "-q", "-m", file)
	}
	commit("main.go")
	code := head(t.Context())
	require.Len(t, code, 10)
	commit(filepath.Join(runs, "deployments"))
	require.Equal(t, code, head(t.Context()))
	changed, known := changedSince(t.Context(), code, []string{"."})
	require.True(t, known)
	require.Equal(t, []string{filepath.Join(runs, "deployments")}, changed)
	require.NoError(t, os.WriteFile("main.go", nil, 0o600))
	require.Equal(t, code+"+", head(t.Context()))
	_, known = changedSince(t.Context(), "1234567890", []string{"."})
	require.False(t, known)
}
