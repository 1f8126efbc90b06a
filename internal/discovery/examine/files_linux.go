package examine

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stamp distinguishes a file from its successor and from itself after a change.
type stamp struct {
	dev, ino uint64
	size     int64
	mtime    unix.Timespec
	failed   string // why there is nothing to read
	denied   bool   // because we may not
	folder   bool
}

func failedStamp(err error) stamp {
	return stamp{failed: err.Error(), denied: errors.Is(err, fs.ErrPermission)}
}

// content is the same as long as a file's content certainly is; a change of its
// owner or mode is none.
func (s stamp) content() string {
	if s.failed != "" {
		return ""
	}
	sum := sha256.Sum256(fmt.Append(nil, s.dev, s.ino, s.size, s.mtime.Nano()))
	return hex.EncodeToString(sum[:8])
}

func stampOf(f *os.File) stamp {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return stamp{failed: err.Error()}
	}
	return stamp{dev: st.Dev, ino: st.Ino, size: st.Size, mtime: st.Mtim, folder: st.Mode&unix.S_IFMT == unix.S_IFDIR}
}

// modifiedAfter says whether the file was written after the given time.
func (s stamp) modifiedAfter(t time.Time) bool {
	return s.failed == "" && time.Unix(s.mtime.Unix()).After(t)
}

// LinksOf is a folder's number of links.
func LinksOf(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // 32 bits wide on arm64
}

// maxMountInfo bounds what is read of a list of mounts.
const maxMountInfo = 4 << 20

// sharesRoot says that a process sees the same files as we do. Other than
// /proc/PID/root, its list of mounts may be read by any user, and a mount's id
// is one mount's in the whole system: two processes with the same mount at "/"
// are in one mount namespace and have one root. (A process in a chroot has no
// mount at "/" unless that is a mount point, which then has another id.)
func sharesRoot(procPID string) bool {
	theirs, ours := rootMount(path.Join(procPID, "mountinfo")), rootMount("/proc/self/mountinfo")
	return theirs != "" && theirs == ours
}

// rootMount is the id of the topmost mount at "/" (proc(5), mountinfo fields 1
// and 5).
func rootMount(mountinfo string) string {
	f, err := os.Open(mountinfo)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	id := ""
	lines := bufio.NewScanner(io.LimitReader(f, maxMountInfo))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && fields[4] == "/" {
			id = fields[0]
		}
	}
	return id
}
