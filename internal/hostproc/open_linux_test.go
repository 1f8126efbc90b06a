package hostproc

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// What a process has at a path is what it sees there itself, not we.
func TestOpenRegular(t *testing.T) {
	proctest.NeedRoot(t)
	fs := realProc(t)
	dir := t.TempDir()
	proctest.WriteTree(t, dir, map[string]string{"etc/passwd": "inside", "srv/app/config.yml": "config"})
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("../../../../etc/passwd", filepath.Join(dir, "srv/up")))
	require.NoError(t, os.Symlink("app", filepath.Join(dir, "srv/current")))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	c := proctest.Start(t, "chroot", dir)

	for path, want := range map[string]string{
		"/etc/passwd":             "inside",
		"/absolute":               "inside",
		"/srv/up":                 "inside",
		"/srv/current/config.yml": "config",
		"/../etc/passwd":          "inside",
	} {
		f, err := fs.OpenRegular(c.PID(), path)
		require.NoError(t, err, path)
		data, err := io.ReadAll(f)
		require.NoError(t, err, path)
		require.Equal(t, want, string(data), path)
		require.NoError(t, f.Close())
	}
	for _, path := range []string{"/fifo", "/etc", "/", ""} {
		_, err := fs.OpenRegular(c.PID(), path)
		require.Error(t, err, path)
	}
	_, err := fs.OpenRegular(c.PID(), "/loop")
	require.ErrorIs(t, err, syscall.ELOOP)
	_, err = fs.OpenRegular(c.PID(), "/nothing")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NotErrorIs(t, err, ErrNoProcess)
}

// Every component is found by itself: symlinks are followed inside the folder.
func TestWalk(t *testing.T) {
	dir := t.TempDir()
	proctest.WriteTree(t, dir, map[string]string{"etc/passwd": "inside"})
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")))
	require.NoError(t, os.Symlink("etc/passwd", filepath.Join(dir, "relative")))
	require.NoError(t, os.Symlink("near/../relative", filepath.Join(dir, "up")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "near"), 0o700))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "loop")))
	require.NoError(t, os.Symlink("../../x", filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink("/proc/self/fd/0", filepath.Join(dir, "magic")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	before := proctest.OpenFiles(t)
	root, err := fakeRoot(t, dir).OpenRoot(7, "root", Agent)
	require.NoError(t, err)
	for _, path := range []string{"/etc/passwd", "/absolute", "/relative", "/up", "etc/../../etc//./passwd"} {
		data, err := contents(root, path)
		require.NoError(t, err, path)
		require.Equal(t, "inside", string(data), path)
	}
	for _, path := range []string{"/fifo", "/", "", "/../x", "/nothing", "/out", "/etc/passwd/x", "/etc/passwd/..", "/etc/passwd/"} {
		_, err := contents(root, path)
		require.Error(t, err, path)
	}
	_, err = root.OpenPath("/loop")
	require.ErrorIs(t, err, syscall.ELOOP)
	_, err = root.OpenPath("/" + strings.Repeat("x/", 4096))
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	for _, path := range []string{"/etc/passwd", "/relative", "/fifo", "/"} {
		f, err := root.OpenPath(path)
		require.NoError(t, err, path)
		require.NoError(t, f.Close())
	}
	f, err := root.Folder("/etc")
	require.NoError(t, err)
	names, err := f.Readdirnames(-1)
	require.NoError(t, err)
	require.Equal(t, []string{"passwd"}, names)
	require.NoError(t, f.Close())
	_, err = root.Folder("/etc/passwd")
	require.ErrorIs(t, err, syscall.ENOTDIR)
	root.Close()
	require.Eventually(t, func() bool { return proctest.OpenFiles(t) <= before }, time.Minute, time.Millisecond, "those of other tests may be closed meanwhile")
}

// To open a device may be to act on it.
func TestOpensNothingButRegularFiles(t *testing.T) {
	dir := t.TempDir()
	proctest.WriteTree(t, dir, map[string]string{"file": "x"})
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
	want := map[string]int{"file": 1, "fifo": 0, "folder": 0}
	if os.Geteuid() == 0 {
		const devFull = 1<<8 | 7
		require.NoError(t, syscall.Mknod(filepath.Join(dir, "device"), syscall.S_IFCHR|0o666, devFull))
		want["device"] = 0
	}
	fs := fakeRoot(t, dir)
	for name, n := range want {
		require.NoError(t, os.Symlink(name, filepath.Join(dir, "link")))
		for _, path := range []string{"/" + name, "/link"} {
			root, err := fs.OpenRoot(7, "root", Agent)
			require.NoError(t, err)
			opens := nettest.Opens(t, filepath.Join(dir, name))
			_, err = contents(root, path)
			require.Equal(t, n == 1, err == nil, "%s: %v", name, err)
			require.Equal(t, n, opens(), name)
			root.Close()
		}
		require.NoError(t, os.Remove(filepath.Join(dir, "link")))
	}
}
