package tomcat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxTries bounds how often a name is resolved again.
const maxTries = 32

// openIn opens a path the way the process does whose root or working folder
// dir is: symlinks, also those that begin with "/", stay below it
// (RESOLVE_IN_ROOT of openat2, Linux 5.6). Opening /proc/PID/root/PATH by hand
// would follow an absolute symlink into the reader's own files.
func openIn(dir, name string, flags int) (*os.File, error) {
	root, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { _ = unix.Close(root) }()
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for range maxTries {
		var fd int
		if fd, err = unix.Openat2(root, name, &how); err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) { // a rename raced with ".."
			break
		}
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		// An older kernel, or a seccomp filter that does not know the call.
		return openBelow(dir, name, flags)
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: err}
}

// openBelow is openIn without openat2: a symlink that begins with "/" is an
// error instead of being followed.
func openBelow(dir, name string, flags int) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	name = strings.TrimLeft(path.Clean(name), "/")
	if name == "" {
		name = "."
	}
	if flags&unix.O_PATH != 0 { // os.Root has its own way to look without opening
		flags &^= unix.O_PATH
		if info, err := root.Stat(name); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
			return nil, errors.Join(err, fs.ErrInvalid)
		}
	}
	return root.OpenFile(name, flags, 0)
}

// openRegular opens a file for reading, without waiting for the other end of a
// fifo, and refuses what is not a regular file.
func openRegular(dir, name string) (*os.File, error) {
	f, err := openIn(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file but %s: %w", name, info.Mode().Type(), fs.ErrInvalid)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func openFolder(dir, name string) (*os.File, error) {
	return openIn(dir, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// stamp tells a file from its successor and from itself after a change.
type stamp struct {
	dev, ino     uint64
	size         int64
	mtime, ctime unix.Timespec
	failed       string // why there is nothing to look at
	denied       bool   // because we may not
	folder       bool
}

// sameContent leaves out when the file's owner, mode or links changed.
func (s stamp) sameContent(t stamp) bool {
	s.ctime, t.ctime = unix.Timespec{}, unix.Timespec{}
	return s == t
}

// lookAt takes the stamp of a path without opening what it names.
func lookAt(dir, name string) stamp {
	f, err := openIn(dir, name, unix.O_PATH)
	if err != nil {
		return stamp{failed: err.Error(), denied: errors.Is(err, fs.ErrPermission)}
	}
	defer func() { _ = f.Close() }()
	return stampOf(f)
}

func stampOf(f *os.File) stamp {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return stamp{failed: err.Error()}
	}
	return stamp{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim, ctime: st.Ctim, folder: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

// modifiedAfter says whether the file was written after the given time.
func (s stamp) modifiedAfter(t time.Time) bool {
	return s.failed == "" && time.Unix(s.mtime.Unix()).After(t)
}

// linksOf is a folder's number of links.
func linksOf(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // 32 bits wide on arm64
}
