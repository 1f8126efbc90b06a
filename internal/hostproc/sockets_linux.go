package hostproc

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// SocketInodes calls fn with the inode of each socket descriptor of the
// process, in the order of descriptors; a duplicated descriptor comes twice.
// Of one that has more than MostDescriptors it is ErrManyDescriptors, after these.
func (fs FS) SocketInodes(pid int, fn func(inode uint32)) error {
	_, err := fs.SocketInodesOf(pid, MostDescriptors, fn)
	return err
}

// SocketInodesOf is SocketInodes with another bound. It returns how many descriptors it has followed.
func (fs FS) SocketInodesOf(pid, most int, fn func(inode uint32)) (read int, err error) {
	read, next, err := fs.socketFiles(pid, 0, most, func(_ int, inode uint32) bool {
		fn(inode)
		return true
	})
	if err == nil && next > 0 {
		err = fs.Wrap(pid, "fd", ErrManyDescriptors)
	}
	return read, err
}

// errStop ends a listing early.
var errStop = errors.New("stop")

// SocketFiles calls fn for the sockets among up to limit descriptors of the
// process (0: all), in ascending order and beginning with from, until fn returns
// false. next is the first descriptor that was not read, 0 at the end. It takes
// the same user and group as the process, or CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH, else the error wraps fs.ErrPermission: the same user with
// another group may list the folder, which is its own by mode, but not follow
// the links (ptrace_may_access).
func (fs FS) SocketFiles(pid, from, limit int, fn func(fd int, inode uint32) bool) (next int, err error) {
	_, next, err = fs.socketFiles(pid, from, limit, fn)
	return next, err
}

// socketFiles says how many were read, too.
func (fs FS) socketFiles(pid, from, limit int, fn func(fd int, inode uint32) bool) (read, next int, err error) {
	dir, err := procfile.OpenFolder(fs.Path(pid, "fd"))
	if err != nil {
		return 0, 0, fs.Wrap(pid, "fd", err)
	}
	defer func() { _ = unix.Close(dir) }()
	var link [64]byte
	name := make([]byte, 0, 20)
	err = eachDescriptor(dir, from, func(fd int) error {
		if limit > 0 && read == limit {
			next = fd
			return errStop
		}
		name = strconv.AppendInt(name[:0], int64(fd), 10)
		n, err := unix.Readlinkat(dir, string(name), link[:])
		if err != nil {
			return err
		}
		read++
		if inode, ok := SocketInode(link[:n]); ok && !fn(fd, inode) {
			return errStop
		}
		return nil
	})
	switch {
	case errors.Is(err, errStop):
		err = nil
	case err == nil && read == 0 && fs.exited(pid):
		err = unix.ESRCH
	}
	return read, next, fs.Wrap(pid, "fd", err)
}

// gap is how many descriptors are listed at a time, behind one that is free.
const gap = 64

// eachDescriptor calls fn for the descriptors in an opened fd folder, in ascending order
// and beginning with from, until it fails with anything else than that there is no such
// one. The kernel gives the lowest free number to a new descriptor, so most processes
// have theirs close together: the next number is tried first, and the kernel is asked
// for a list, which costs a quarter of what reading its links does, behind a free one.
func eachDescriptor(dir, from int, fn func(fd int) error) error {
	var list []int
	for fd := from; ; fd++ {
		err := fn(fd)
		if err == nil {
			continue
		}
		if !procfile.Ended(err) {
			return err
		}
		if list, err = descriptorsFrom(dir, fd+1, list); err != nil || len(list) == 0 {
			return err
		}
		for _, fd = range list {
			if err := fn(fd); err != nil && !procfile.Ended(err) {
				return err
			}
		}
	}
}

// descriptorsFrom lists the lowest ones in an opened fd folder, beginning with from. It
// uses list's memory.
func descriptorsFrom(dir, from int, list []int) ([]int, error) {
	const dirent = 24 // bytes of a linux_dirent64 with up to four digits
	if list = list[:0]; cap(list) == 0 {
		list = make([]int, 0, gap)
	}
	// The offset is the descriptor + 2 (proc_readfd_common).
	if _, err := unix.Seek(dir, int64(from)+2, unix.SEEK_SET); err != nil {
		return nil, err
	}
	err := procfile.EachNumber(dir, make([]byte, gap*dirent), func(fd int) error {
		if fd >= from {
			list = append(list, fd)
		}
		if len(list) == cap(list) {
			return errStop
		}
		return nil
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return list, err
}

// SocketAt is the socket behind one descriptor; false if it is none, or not ours
// to read.
func (fs FS) SocketAt(pid, fd int) (inode uint32, ok bool) {
	var link [64]byte
	n, err := unix.Readlink(fs.Path(pid, "fd", strconv.Itoa(fd)), link[:])
	if err != nil {
		return 0, false
	}
	return SocketInode(link[:n])
}

// SocketInode parses the link of a socket's descriptor, "socket:[12345]".
func SocketInode(link []byte) (uint32, bool) {
	rest, ok := bytes.CutPrefix(link, []byte("socket:["))
	if !ok {
		return 0, false
	}
	digits, ok := bytes.CutSuffix(rest, []byte{']'})
	if !ok {
		return 0, false
	}
	n, ok := procfile.Decimal(digits)
	return uint32(n), ok && n <= math.MaxUint32
}
