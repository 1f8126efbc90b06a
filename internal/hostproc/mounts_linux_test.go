package hostproc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestReadMounts(t *testing.T) {
	m, err := ReadMounts(Agent, false, strings.NewReader(`36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
1009 36 0:31 / /a\040b rw - fuse.sshfs - rw
not a mount
7 6 0:3 / /nothing rw
`))
	require.NoError(t, err)
	require.Equal(t, map[int]string{36: "ext3", 1009: "fuse.sshfs"}, m.types)
	require.NoError(t, m.admit(-1, 36))
	err = m.admit(-1, 1009)
	require.ErrorIs(t, err, ErrFileSystem)
	require.NotContains(t, err.Error(), "sshfs", "whoever mounts it chooses the name")
	require.ErrorIs(t, m.admit(-1, 7), ErrFileSystem, "a mount nobody lists")

	m.types[5] = "overlay"
	require.NoError(t, m.admit(-1, 5))
	m.foreign = true
	require.ErrorIs(t, m.admit(-1, 5), ErrFileSystem, "whoever has a user namespace may have mounted it")
	require.NoError(t, m.admit(-1, 36))
	m.reader = Disposable
	require.NoError(t, m.admit(-1, 5))
}

func TestWhoMayReadWhat(t *testing.T) {
	for kind, want := range map[string][3]bool{
		"ext4":       {true, true, true},
		"overlay":    {true, true, true},
		"nfs4":       {false, false, true},
		"cgroup2":    {false, true, false},
		"proc":       {false, false, false},
		"sysfs":      {false, true, false},
		"fuse":       {false, false, false},
		"debugfs":    {false, false, false},
		"devtmpfs":   {false, false, false},
		"mqueue":     {false, false, false},
		"hugetlbfs":  {false, false, false},
		"binfmt_msc": {false, false, false},
	} {
		require.Equal(t, want, [3]bool{Agent.may(kind), Cgroups.may(kind), Disposable.may(kind)}, kind)
	}
}

// Our own proc and sysfs stand below our own root: nothing in them is read, by
// whatever way.
func TestMountsAreNotEntered(t *testing.T) {
	fs := realProc(t)
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/proc/self/environ", filepath.Join(dir, "link")))
	for _, reader := range []Reader{Agent, Disposable} {
		root, err := fs.OpenRoot(os.Getpid(), "root", reader)
		require.NoError(t, err)
		defer root.Close()
		for _, path := range []string{"/proc/self/environ", "/proc/self/root/etc/passwd", filepath.Join(dir, "link"), "/proc"} {
			_, err := root.OpenPath(path)
			require.ErrorIs(t, err, ErrFileSystem, path)
		}
		f, err := root.Regular("/etc/passwd")
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
}

// What not everybody may read is not read for everybody.
func TestEveryone(t *testing.T) {
	dir := t.TempDir()
	proctest.WriteTree(t, dir, map[string]string{"public/file": "x", "public/private": "x", "public/group": "x", "closed/file": "x"})
	for name, mode := range map[string]os.FileMode{
		"": 0o755, "public": 0o755, "public/file": 0o644, "public/private": 0o600, "public/group": 0o604, "closed": 0o750, "closed/file": 0o644,
	} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	mounts, err := fakeRoot(t, dir).mounts(7, Agent)
	require.NoError(t, err)
	folder, err := FindFolder(dir)
	require.NoError(t, err)
	root, err := NewRoot(folder, mounts, true)
	require.NoError(t, err)
	defer root.Close()
	data, err := contents(root, "/public/file")
	require.NoError(t, err)
	require.Equal(t, "x", string(data))
	for _, path := range []string{"/public/private", "/public/group", "/closed/file"} {
		_, err := contents(root, path)
		require.ErrorIs(t, err, os.ErrPermission, path)
	}
	require.True(t, hasACL(-1), "what cannot be asked may have some")
}

// A file or folder whose list shuts somebody out is not for everybody, whatever its
// mode says.
func TestEveryoneWithAccessLists(t *testing.T) {
	dir := t.TempDir()
	proctest.WriteTree(t, dir, map[string]string{"folder/file": "x", "listed/file": "x", "plain": "x", "closed": "x"})
	for name, mode := range map[string]os.FileMode{"": 0o755, "folder": 0o755, "folder/file": 0o644, "listed": 0o755, "listed/file": 0o644, "plain": 0o644, "closed": 0o644} {
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	for name, others := range map[string]byte{"closed": 4, "listed": 5} {
		err := unix.Setxattr(filepath.Join(dir, name), "system.posix_acl_access", withoutUser99(others), 0)
		if errors.Is(err, unix.ENOTSUP) {
			t.Skipf("no access control lists in %s: %v", dir, err)
		}
		require.NoError(t, err)
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.EqualValues(t, others, info.Mode().Perm()&0o7, "the mode lets everybody in")
	}
	for _, everyone := range []bool{true, false} {
		mounts, err := fakeRoot(t, dir).mounts(7, Agent)
		require.NoError(t, err)
		folder, err := FindFolder(dir)
		require.NoError(t, err)
		root, err := NewRoot(folder, mounts, everyone)
		require.NoError(t, err)
		defer root.Close()
		for path, open := range map[string]bool{"/plain": true, "/folder/file": true, "/closed": !everyone, "/listed/file": !everyone} {
			_, err := contents(root, path)
			require.Equal(t, open, err == nil, "%s: %v", path, err)
			require.Equal(t, !open, errors.Is(err, os.ErrPermission), "%s: %v", path, err)
		}
	}
}

// withoutUser99 is an access list that gives its owner all, user 99 nothing, and
// everybody else what is given (posix_acl_xattr.h: version; then tag, permission, id).
func withoutUser99(others byte) []byte {
	return []byte{
		2, 0, 0, 0,
		1, 0, 7, 0, 255, 255, 255, 255,
		2, 0, 0, 0, 99, 0, 0, 0,
		4, 0, others, 0, 255, 255, 255, 255,
		16, 0, others, 0, 255, 255, 255, 255,
		32, 0, others, 0, 255, 255, 255, 255,
	}
}

// A file system of somebody's own is not asked for anything: a FUSE mount on
// which nobody answers would hold every reader for ever.
func TestSilentFileSystem(t *testing.T) {
	dir := nettest.SilentFileSystem(t)
	fs := realProc(t)
	root, err := fs.OpenRoot(os.Getpid(), "root", Disposable)
	require.NoError(t, err)
	defer root.Close()
	for _, path := range []string{dir, dir + "/file", dir + "/../" + filepath.Base(dir) + "/x"} {
		_, err := root.OpenPath(path)
		require.ErrorIs(t, err, ErrFileSystem)
	}
}

// contents are those of a regular file below a root.
func contents(root *Root, path string) ([]byte, error) {
	f, err := root.Regular(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(f)
}

// FuzzMounts reads lists of mounts, whose names are the mounter's choice: no list
// admits a file system that is not on the allow-list.
func FuzzMounts(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue\n"))
	m.Add([]byte("1009 36 0:31 / /a\\040b rw - fuse.sshfs - rw\n7 6 0:3 / /nothing rw\nnot a mount\n"))
	m.Add([]byte("40 36 0:31 / /x rw shared:3 - overlay overlay rw,lowerdir=/a - ext4\n"))
	m.Fuzz(func(t *testing.T, list []byte) {
		mounts, err := ReadMounts(Agent, false, bytes.NewReader(list))
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(mounts.types), 1+bytes.Count(list, []byte("\n")))
		for id, kind := range mounts.types {
			if err := mounts.admit(-1, id); err == nil {
				require.True(t, Agent.may(kind))
			} else {
				require.NotContains(t, err.Error(), "\x1b")
				require.Less(t, len(err.Error()), 100+4*maxKind)
			}
		}
	})
}
