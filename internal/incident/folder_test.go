package incident

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

func testContext(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func namesIn(t *testing.T, dir string) []string {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	var out []string
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}

func TestLongTenThousandOldFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 10_000 {
		name := fmt.Sprintf("%06d-20250102T030405Z-8080.tcpdiag", i+1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("nothing\n"), 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	d, tracker := newDirect(t, dir, someLimits())
	v := newLife(1)
	v.seconds(5, connectionsFull, tracker, d)
	require.Zero(t, d.failures.Load())
	names := namesIn(t, dir)
	require.Contains(t, names, "notes.txt", "what is not ours is left alone")
	require.Len(t, names, 200+2) // and the lock
	require.Equal(t, "010001", d.shelf.list()[0].ID[:6])
}

func TestReadOnlyDirectoryIsMemory(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(parent, nil, 0o600))
	d, tracker := newDirect(t, filepath.Join(parent, "incidents"), someLimits()) // also for root no directory
	require.Equal(t, uint64(1), d.failures.Load())
	v := newLife(1)
	v.seconds(5, connectionsFull, tracker, d)
	in, err := d.open(d.shelf.list()[0].ID)
	require.NoError(t, err)
	_, frames := readAll(t, in)
	require.Len(t, frames, len(d.frames))
}

func TestDirectoryThatEverybodyWritesToIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is the test
	_, err := openFolder(dir, nil)
	require.ErrorContains(t, err, "everybody may write to it")
}

// A volume of Kubernetes (an emptyDir: 0777, with fsGroup the group's, too) is
// everybody's; a directory in it is the agent's own, also at its next start.
func TestDirectoryInOneThatEverybodyWritesTo(t *testing.T) {
	for _, mode := range []os.FileMode{0o777, 0o777 | os.ModeSetgid} {
		volume := t.TempDir()
		require.NoError(t, os.Chmod(volume, mode))
		for range 2 {
			f, err := openFolder(filepath.Join(volume, "tcpdiag"), nil)
			require.NoError(t, err)
			f.close()
		}
		info, err := os.Stat(filepath.Join(volume, "tcpdiag"))
		require.NoError(t, err)
		require.Zero(t, info.Mode().Perm()&0o027)
	}
}

func TestOneAgentWrites(t *testing.T) {
	dir := t.TempDir()
	first, err := openFolder(dir, nil)
	require.NoError(t, err)
	_, err = openFolder(dir, nil)
	require.ErrorContains(t, err, "another agent writes to it")
	first.close()
	second, err := openFolder(dir, nil)
	require.NoError(t, err)
	second.close()
}

// What is put into the place of a recording is not followed and not waited for.
func TestPlantedFiles(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	link, pipe := "000001-20250102T030405Z-8080", "000002-20250102T030405Z-8080"
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, nameOf(link))))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, nameOf(pipe)), 0o600))
	f, err := openFolder(dir, nil)
	require.NoError(t, err)
	defer f.close()
	for _, id := range []string{link, pipe, "../secret"} {
		_, err := f.open(id)
		require.Error(t, err, id)
	}
	ids, err := f.ids()
	require.NoError(t, err)
	require.Empty(t, ids)
}

func TestFilesAreNotForEverybody(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "incidents")
	d, tracker := newDirect(t, dir, someLimits())
	v := newLife(1)
	tracker.record(v.next(calm), d)
	tracker.record(v.next(closed), d)
	info, err := os.Stat(filepath.Join(dir, nameOf(d.shelf.list()[0].ID)))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o137)
	info, err = os.Stat(dir)
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o027)
}

func TestOldAndLargeOnesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		name string
		l    Limits
		want int
	}{
		{"files", Limits{Files: 2, Bytes: 1 << 30, Age: time.Hour}, 2},
		{"bytes", Limits{Files: 99, Bytes: 1, Age: time.Hour}, 0},
		{"age", Limits{Files: 99, Bytes: 1 << 30, Age: time.Nanosecond}, 0},
		{"none", Limits{Files: 99, Bytes: 1 << 30, Age: time.Hour}, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(dir, test.name)
			d, tracker := newDirect(t, dir, test.l)
			v := newLife(1)
			for range 4 {
				v.seconds(3, connectionsFull, tracker, d)
				tracker.stop(v.now, d)
			}
			v.now = v.now.Add(time.Second)
			d.options.Now = func() time.Time { return v.now }
			d.prune()
			kept := 0
			for _, name := range namesIn(t, dir) {
				if strings.HasSuffix(name, ".tcpdiag") {
					kept++
				}
			}
			require.Equal(t, test.want, kept)
			require.Len(t, d.shelf.list(), test.want)
		})
	}
}

// The archiver is another user: it reads by a group of its own, whatever the agent's umask is.
func TestGroupMayReadAndNotWrite(t *testing.T) {
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 54321
	}
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := filepath.Join(t.TempDir(), "incidents")
	f, err := openFolder(dir, &group)
	require.NoError(t, err)
	defer f.close()
	file, err := f.create("000001-20260102T030405Z-8080")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	for path, mode := range map[string]os.FileMode{dir: 0o750, filepath.Join(dir, "000001-20260102T030405Z-8080.tcpdiag"): 0o640} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode().Perm(), path)
		require.EqualValues(t, group, info.Sys().(*syscall.Stat_t).Gid, path)
	}
	info, err := os.Stat(filepath.Join(dir, ".lock"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "nobody else takes the lock")
}

// A user who is not of the group cannot give it anything, and says what is missing.
func TestGroupOfOthersIsRefused(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may give a file to any group")
	}
	other := 54321
	_, err := openFolder(filepath.Join(t.TempDir(), "incidents"), &other)
	require.ErrorContains(t, err, "has to be of that group")
}

// Who may write to the directory can fill it: the latest recordings are listed, and names of others cost little.
func TestFilledFolder(t *testing.T) {
	dir := t.TempDir()
	touch := func(name string) { require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600)) }
	const most = 2000
	for i := range 3 * most {
		touch(nameOf(fmt.Sprintf("%06d-20250102T030405Z-8080", i+1)))
		if i%3 == 0 {
			touch(fmt.Sprintf("%d.tcpdiag", i))
		}
	}
	l, err := OpenLibrary(dir)
	require.NoError(t, err)
	defer l.Close()
	before := nettest.Heap()
	ids, err := l.folder.latest(most)
	require.NoError(t, err)
	require.Len(t, ids, most)
	require.Equal(t, "004001-20250102T030405Z-8080", ids[0])
	require.Equal(t, "006000-20250102T030405Z-8080", ids[most-1])
	require.Less(t, int64(nettest.Heap())-int64(before), int64(1<<20))
	require.Zero(t, testing.AllocsPerRun(10, func() { IsID(ids[0]) }), "it is asked for each name, and to sort them")
}

func TestIDs(t *testing.T) {
	for _, id := range []string{"000007-20260102T030405Z-8080", "999999999-20260102T030405Z-1"} {
		require.True(t, IsID(id), id)
	}
	for _, id := range []string{
		"", "-", "00007-20260102T030405Z-8080", "1000000000-20260102T030405Z-8080", "000007-20260102T030405Z-", "000007-20260102T030405Z-808080",
		"000007-20260102T030405-8080", "000007-2026010T030405Z-8080", "000007-20260102T03045Z-8080", "000007-20260102T030405Z-80-1", "+00007-20260102T030405Z-8080",
		"000007-20260102T030405Z-80\n", "000007-20260102T030405ZZ-80", "000007-2026T0102T030405Z-80", "../000007-20260102T030405Z-8080", "000007-20260102T030405Z-٨٠",
	} {
		require.False(t, IsID(id), "%q", id)
	}
}
