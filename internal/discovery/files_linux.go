package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// linksOf is a folder's number of links.
func linksOf(info fs.FileInfo) uint64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Nlink) //nolint:unconvert // 32 bits wide on arm64
}
