//go:build unix

package incident

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// userOf are a file's user and group.
func userOf(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// lockedByAnother takes the lock unless another agent has it. A file system without locks has none.
func lockedByAnother(file *os.File) bool {
	return errors.Is(syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
