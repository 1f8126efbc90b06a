package hostproc

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// maxLinks bounds the symlinks of one path, as the kernel does (MAXSYMLINKS).
const maxLinks = 40

// found is a file on the way (O_PATH: found, but not opened).
type found struct {
	fd    int
	mount int
	mode  uint32
}

func (n found) is(kind uint32) bool { return n.mode&unix.S_IFMT == kind }

// resolution goes along one path, a component at a time. A component is read only
// after its mount was admitted, symlinks are read and followed here, and ".."
// goes back to the folder that was passed: there is no way out of the root, and
// no magic link, whatever is renamed or mounted meanwhile. It needs no openat2
// (Linux 5.6), whose flags a seccomp filter cannot check.
type resolution struct {
	root  *Root
	trail []found // folders passed, below the root
	links int
}

func (w *resolution) close() {
	for _, n := range w.trail {
		_ = unix.Close(n.fd)
	}
	w.trail = nil
}

// at is the folder or file reached so far.
func (w *resolution) at() found {
	if len(w.trail) == 0 {
		return w.root.top
	}
	return w.trail[len(w.trail)-1]
}

func (w *resolution) up() {
	if last := len(w.trail) - 1; last >= 0 {
		_ = unix.Close(w.trail[last].fd)
		w.trail = w.trail[:last]
	}
}

// to follows a path; its last symlink only with follow.
func (w *resolution) to(path string, follow bool) error {
	rest := strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if !w.at().is(unix.S_IFDIR) {
			return unix.ENOTDIR
		}
		switch name {
		case "", ".":
			continue
		case "..":
			w.up()
			continue
		}
		next, err := w.step(name)
		if err != nil {
			return err
		}
		if !next.is(unix.S_IFLNK) || len(rest) == 0 && !follow {
			w.trail = append(w.trail, next)
			continue
		}
		if rest, err = w.link(next, rest); err != nil {
			return err
		}
	}
	return nil
}

// step finds one name in the folder reached so far.
func (w *resolution) step(name string) (found, error) {
	dir := w.at()
	if w.root.everyone && (dir.mode&0o111 != 0o111 || hasACL(dir.fd)) {
		return found{}, fs.ErrPermission
	}
	fd, err := procfile.Retry(func() (int, error) {
		return unix.Openat(dir.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return found{}, err
	}
	next, err := w.root.admit(fd, dir.mount)
	if err != nil {
		_ = unix.Close(fd)
	}
	return next, err
}

// link puts a symlink's target in front of the rest of the path.
func (w *resolution) link(n found, rest []string) ([]string, error) {
	defer func() { _ = unix.Close(n.fd) }()
	if w.links++; w.links > maxLinks {
		return nil, unix.ELOOP
	}
	target, err := readlink(n.fd)
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(target, "/") {
		w.close()
	}
	return append(strings.Split(target, "/"), rest...), nil
}

// admit takes a file's mount, and its mode once the mount may be asked for it.
// before is a mount that was admitted already.
func (r *Root) admit(fd, before int) (found, error) {
	mount, err := mountOf(fd)
	if err != nil {
		return found{}, err
	}
	if mount != before {
		if err := r.mounts.admit(fd, mount); err != nil {
			return found{}, err
		}
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return found{}, err
	}
	return found{fd: fd, mount: mount, mode: st.Mode}, nil
}

func readlink(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	return string(buf[:max(n, 0)]), err
}

// take hands the file over that was reached.
func (w *resolution) take(name string) (*os.File, found, error) {
	at := w.at()
	if last := len(w.trail) - 1; last >= 0 {
		w.trail = w.trail[:last]
		return os.NewFile(uintptr(at.fd), name), at, nil
	}
	fd, err := unix.FcntlInt(uintptr(at.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, found{}, err
	}
	return os.NewFile(uintptr(fd), name), at, nil
}

// hasACL says that a file has access rules beyond its mode (acl(5)), or may have:
// they may shut somebody out whom the mode lets in. The attribute can only be asked
// for by name, and a descriptor with O_PATH only by its link. Only ENODATA and a file
// system without such lists mean that there are none.
func hasACL(fd int) bool {
	_, err := unix.Getxattr("/proc/self/fd/"+strconv.Itoa(fd), "system.posix_acl_access", nil)
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP)
}
