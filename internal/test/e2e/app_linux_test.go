package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// appDir is an empty folder that every user can reach.
func appDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(artifacts(t).Jar), "app-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// write makes a file that every user can read.
func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

// appUser is the name of uid 1001 in the files of namedApp: another one in each
// run of the tests, for two may use the same /tmp at the same time.
func appUser() string { return "tcpdiag-e2e-" + strconv.Itoa(os.Getpid()) }

// namedApp gives uid 1001 a name, in the tests' own mount namespace: a JVM
// writes its counters to /tmp/hsperfdata_NAME, and nowhere without a name.
func namedApp(t *testing.T) {
	t.Helper()
	passwd, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	named := write(t, filepath.Join(appDir(t), "passwd"),
		string(passwd)+appUser()+":x:"+appID+":"+appID+"::/nonexistent:/usr/sbin/nologin\n")
	require.NoError(t, unix.Mount(named, "/etc/passwd", "", unix.MS_BIND, ""))
	t.Cleanup(func() {
		_ = unix.Unmount("/etc/passwd", unix.MNT_DETACH)
		_ = os.RemoveAll("/tmp/hsperfdata_" + appUser())
	})
}

// asApp starts a program as the application's user.
func asApp() []string {
	return append(viewer{uid: appID, gid: appID}.setpriv(), "--")
}
