package discovery

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// below opens a path the way the process does whose root or working folder dir
// is.
func below(dir, name string, how func(*hostproc.Root, string) (*os.File, error)) (*os.File, error) {
	root, err := hostproc.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return how(root, name)
}

func openRegular(dir, name string) (*os.File, error) {
	return below(dir, name, (*hostproc.Root).Regular)
}

func openFolder(dir, name string) (*os.File, error) {
	return below(dir, name, (*hostproc.Root).Folder)
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
	f, err := below(dir, name, (*hostproc.Root).Look)
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
