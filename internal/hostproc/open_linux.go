package hostproc

import (
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Root is a process's root or working folder. Symlinks are followed the way the
// process would, never out of it: opening /proc/PID/root/PATH by hand would
// follow an absolute one into our own files. What a path names is the process's
// choice, so nothing is opened before it is known to be harmless: to open a
// device can be to act on it (/dev/watchdog), and to ask a FUSE file system for
// anything is to wait for the process behind it.
type Root struct {
	top      found
	mounts   *Mounts
	everyone bool
}

// FindFolder finds /proc/PID/root or /proc/PID/cwd without asking the file
// system behind it for anything.
func FindFolder(dir string) (*os.File, error) {
	fd, err := procfile.Retry(func() (int, error) {
		return unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: dir, Err: err}
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// NewRoot makes a Root of a folder that was found, which it closes. With
// everyone it opens only what every user of the machine may open: folders that
// all may search, files that all may read.
func NewRoot(folder *os.File, mounts *Mounts, everyone bool) (*Root, error) {
	defer func() { _ = folder.Close() }()
	return newRoot(folder, mounts, everyone)
}

func newRoot(folder *os.File, mounts *Mounts, everyone bool) (*Root, error) {
	fd, err := unix.FcntlInt(folder.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "dup", Path: folder.Name(), Err: err}
	}
	r := &Root{mounts: mounts, everyone: everyone}
	if r.top, err = r.admit(fd, -1); err != nil {
		_ = unix.Close(fd)
		return nil, &os.PathError{Op: "open", Path: folder.Name(), Err: err}
	}
	return r, nil
}

// OpenRoot takes a process's "root" or "cwd".
func (fs FS) OpenRoot(pid int, link string, reader Reader) (*Root, error) {
	mounts, err := fs.mounts(pid, reader)
	if err != nil {
		return nil, err
	}
	folder, err := FindFolder(fs.Path(pid, link))
	if err != nil {
		return nil, err
	}
	return NewRoot(folder, mounts, false)
}

// Admit refuses a file that somebody else opened when the file system it lies on is
// not read for the process. Nothing is asked of that before.
func (fs FS) Admit(pid int, file *os.File) error {
	mounts, err := fs.mounts(pid, Agent)
	if err != nil {
		return err
	}
	mount, err := mountOf(int(file.Fd()))
	if err != nil {
		return err
	}
	return mounts.admit(int(file.Fd()), mount)
}

// mounts are those of the process and our own, among which is that of a chroot's
// folder in our own mount namespace: a process's list begins below its root.
func (fs FS) mounts(pid int, reader Reader) (*Mounts, error) {
	var lists []io.Reader
	for _, name := range []string{"/proc/self/mountinfo", fs.Path(pid, "mountinfo")} {
		f, err := os.Open(name)
		if errors.Is(err, iofs.ErrNotExist) {
			continue // nothing of it is then listed
		}
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		lists = append(lists, f)
	}
	return ReadMounts(reader, fs.foreign(pid), lists...)
}

// Close closes the folder.
func (r *Root) Close() { _ = unix.Close(r.top.fd) }

// OpenPath finds what a path names without opening it (O_PATH).
func (r *Root) OpenPath(path string) (*os.File, error) {
	f, _, err := r.find(path, true)
	return f, err
}

// Folder opens a folder for listing it.
func (r *Root) Folder(path string) (*os.File, error) {
	f, n, err := r.find(path, true)
	if err != nil {
		return nil, err
	}
	if !n.is(unix.S_IFDIR) {
		_ = f.Close()
		return nil, &os.PathError{Op: "open", Path: path, Err: unix.ENOTDIR}
	}
	return r.reopen(f, n, unix.O_DIRECTORY)
}

// Regular opens a regular file and refuses anything else.
func (r *Root) Regular(path string) (*os.File, error) { return r.regular(path, true) }

// NotLinked is Regular of a path that ends in no symlink.
func (r *Root) NotLinked(path string) (*os.File, error) { return r.regular(path, false) }

func (r *Root) regular(path string, follow bool) (*os.File, error) {
	f, n, err := r.find(path, follow)
	if err != nil {
		return nil, err
	}
	if !n.is(unix.S_IFREG) {
		info, err := f.Stat()
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%q is not a regular file but %s: %w", path, info.Mode().Type(), os.ErrInvalid)
	}
	// A lease on the file is not waited for.
	return r.reopen(f, n, unix.O_NONBLOCK)
}

// reopen opens what was found, whatever its path names by now.
func (r *Root) reopen(f *os.File, n found, flags int) (*os.File, error) {
	defer func() { _ = f.Close() }()
	if r.everyone && (n.mode&0o444 != 0o444 || hasACL(n.fd)) {
		return nil, &os.PathError{Op: "open", Path: f.Name(), Err: iofs.ErrPermission}
	}
	link := "/proc/self/fd/" + strconv.Itoa(n.fd)
	fd, err := procfile.Retry(func() (int, error) {
		return unix.Open(link, flags|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (r *Root) find(path string, follow bool) (*os.File, found, error) {
	w := resolution{root: r}
	defer w.close()
	if len(path) >= unix.PathMax {
		return nil, found{}, &os.PathError{Op: "open", Path: path[:64], Err: unix.ENAMETOOLONG}
	}
	if err := w.to(path, follow); err != nil {
		return nil, found{}, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return w.take(path)
}
