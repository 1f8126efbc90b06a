package hostproc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenRegular opens a file by the absolute path it has for the process, in
// whatever mount namespace that is; see Root.
func (fs FS) OpenRegular(pid int, path string) (*os.File, error) {
	root, err := fs.openRoot(pid)
	if err != nil {
		return nil, fs.wrap(pid, "root", err)
	}
	defer root.Close()
	f, err := root.Regular(path)
	if err != nil {
		return nil, fmt.Errorf("hostproc: %q of pid %d: %w", path, pid, err)
	}
	return f, nil
}

// Root is a process's root or working folder. Symlinks are followed the way the
// process would, never out of it: opening /proc/PID/root/PATH by hand would
// follow an absolute one into our own files. What a path names is the process's
// choice, so nothing is opened before it is known to be harmless: to open a
// device can be to act on it (/dev/watchdog).
type Root struct {
	fd  int
	dir string
	// plain opens without openat2 (Linux 5.6; some seccomp filters refuse it):
	// symlinks that start with "/" are then an error.
	plain bool
}

// OpenRoot takes /proc/PID/root or /proc/PID/cwd.
func OpenRoot(dir string) (*Root, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return &Root{fd: fd, dir: dir}, nil
}

func (fs FS) openRoot(pid int) (*Root, error) { return OpenRoot(fs.Root(pid)) }

// Close closes the folder.
func (r *Root) Close() { _ = unix.Close(r.fd) }

// Look finds what a path names without opening it (O_PATH).
func (r *Root) Look(path string) (*os.File, error) { return r.find(path, 0) }

// Folder opens a folder for listing it.
func (r *Root) Folder(path string) (*os.File, error) {
	f, err := r.find(path, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return reopen(f, unix.O_DIRECTORY)
}

// Regular opens a regular file and refuses anything else.
func (r *Root) Regular(path string) (*os.File, error) { return r.regular(path, 0) }

// regular takes O_NOFOLLOW, too.
func (r *Root) regular(path string, flags int) (*os.File, error) {
	f, err := r.find(path, flags)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file but %s: %w", path, info.Mode().Type(), os.ErrInvalid)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	// A lease on the file is not waited for.
	return reopen(f, unix.O_NONBLOCK)
}

// reopen opens what was found, whatever its path names by now.
func reopen(found *os.File, flags int) (*os.File, error) {
	defer func() { _ = found.Close() }()
	link := "/proc/self/fd/" + strconv.Itoa(int(found.Fd()))
	fd, err := retry(func() (int, error) {
		return unix.Open(link, flags|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: found.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), found.Name()), nil
}

// maxTries bounds how often a name is resolved again, and how many symlinks are
// followed without openat2.
const maxTries = 40

func (r *Root) find(path string, flags int) (*os.File, error) {
	if r.plain {
		return r.findPlain(path, flags)
	}
	how := unix.OpenHow{
		Flags:   uint64(flags | unix.O_PATH | unix.O_CLOEXEC),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	var err error
	for range maxTries {
		var fd int
		if fd, err = unix.Openat2(r.fd, path, &how); err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.EAGAIN) { // a rename raced with ".."
			break
		}
	}
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		r.plain = true
		return r.findPlain(path, flags)
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: err}
}

// findPlain follows a path's last symlink by itself: with O_PATH it is what
// os.Root finds.
func (r *Root) findPlain(path string, flags int) (*os.File, error) {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	name := strings.TrimLeft(path, "/")
	if name == "" {
		name = "."
	}
	for range maxTries {
		f, err := root.OpenFile(name, unix.O_PATH|flags, 0)
		if err != nil || flags&unix.O_NOFOLLOW != 0 {
			return f, err
		}
		target, ok := linkOf(f)
		if !ok {
			return f, nil
		}
		_ = f.Close()
		if strings.HasPrefix(target, "/") {
			return nil, &os.PathError{Op: "open", Path: path, Err: fmt.Errorf("%w: symlink to %q", os.ErrInvalid, target)}
		}
		name = name[:strings.LastIndexByte(name, '/')+1] + target
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: unix.ELOOP}
}

// linkOf is where a symlink leads that was opened itself.
func linkOf(f *os.File) (target string, ok bool) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(int(f.Fd()), "", buf)
	return string(buf[:max(n, 0)]), err == nil
}
