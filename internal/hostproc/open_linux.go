package hostproc

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a file by the absolute path it has for the process, in
// whatever mount namespace that is. Symlinks are followed the way the process
// would, never out of its root: opening /proc/PID/root/PATH by hand would
// follow an absolute one into our own files. Anything but a regular file is
// refused, without waiting for the other end of a fifo.
func (fs FS) OpenRegular(pid int, path string) (*os.File, error) {
	root, err := fs.openRoot(pid)
	if err != nil {
		return nil, fs.wrap(pid, "root", err)
	}
	defer root.Close()
	f, err := root.regular(path, 0)
	if err != nil {
		return nil, fmt.Errorf("hostproc: %q of pid %d: %w", path, pid, err)
	}
	return f, nil
}

// processRoot is the root folder of a process.
type processRoot struct {
	fd  int
	dir string
	// plain opens without openat2 (Linux 5.6; some seccomp filters refuse it):
	// symlinks that start with "/" are then an error.
	plain bool
}

func (fs FS) openRoot(pid int) (*processRoot, error) {
	dir := fs.Root(pid)
	fd, err := retry(func() (int, error) {
		return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	return &processRoot{fd: fd, dir: dir}, nil
}

func (r *processRoot) Close() { _ = unix.Close(r.fd) }

// regular opens a regular file; flags may add O_NOFOLLOW.
func (r *processRoot) regular(path string, flags int) (*os.File, error) {
	f, err := r.open(path, flags|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("not a regular file but %s: %w", info.Mode().Type(), os.ErrInvalid)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func (r *processRoot) open(path string, flags int) (*os.File, error) {
	flags |= unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NOCTTY
	if r.plain {
		return r.openPlain(path, flags)
	}
	how := unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := retry(func() (int, error) { return unix.Openat2(r.fd, path, &how) })
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		r.plain = true
		return r.openPlain(path, flags)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func (r *processRoot) openPlain(path string, flags int) (*os.File, error) {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	path = strings.TrimLeft(path, "/")
	if path == "" {
		path = "."
	}
	return root.OpenFile(path, flags&^unix.O_CLOEXEC, 0)
}
