package hostproc

import (
	"bytes"
	"math"
	"strconv"

	"golang.org/x/sys/unix"
)

// SocketInodes calls fn with the inode of each socket descriptor of the
// process, in the order of descriptors; a duplicated descriptor comes twice.
// It takes the same user and group as the process, or CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH: else the error wraps fs.ErrPermission.
func (fs FS) SocketInodes(pid int, fn func(inode uint32)) error {
	dir, err := openDir(fs.path(pid, "fd"))
	if err != nil {
		return fs.wrap(pid, "fd", err)
	}
	defer func() { _ = unix.Close(dir) }()
	var link [64]byte
	name := make([]byte, 0, 20)
	listed := 0
	err = forEachNumber(dir, make([]byte, 8<<10), func(fd int) error {
		listed++
		name = strconv.AppendInt(name[:0], int64(fd), 10)
		n, err := unix.Readlinkat(dir, string(name), link[:])
		if vanished(err) {
			return nil
		}
		if inode, ok := socketInode(link[:max(n, 0)]); ok && err == nil {
			fn(inode)
		}
		return err
	})
	if err == nil && listed == 0 && fs.exited(pid) {
		err = unix.ESRCH
	}
	return fs.wrap(pid, "fd", err)
}

// socketInode parses the link of a socket's descriptor, "socket:[12345]".
func socketInode(link []byte) (uint32, bool) {
	rest, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0, false
	}
	digits, ok := bytes.CutSuffix(rest, []byte{']'})
	if !ok {
		return 0, false
	}
	n, ok := decimal(digits)
	return uint32(n), ok && n <= math.MaxUint32
}
