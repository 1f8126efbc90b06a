package owner

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// proc reads the little that is needed of a proc file system.
type proc struct {
	mount string
	// What a search costs: tests hold it to a bound.
	readlinks, listings int
}

func (p *proc) path(pid int, name string) string {
	return filepath.Join(p.mount, strconv.Itoa(pid), name)
}

// pids lists all processes that are visible.
func (p *proc) pids() []int {
	p.listings++
	dir, err := openDir(p.mount)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(dir) }()
	pids := make([]int, 0, 512)
	_ = eachNumber(dir, func(pid int) bool {
		pids = append(pids, pid)
		return true
	})
	slices.Sort(pids)
	return pids
}

func (p *proc) stat(pid int) (stat, error) {
	data, err := os.ReadFile(p.path(pid, "stat"))
	if err != nil {
		return stat{}, err
	}
	st, ok := parseStat(data)
	if !ok {
		return stat{}, fmt.Errorf("owner: stat of pid %d: malformed: %q", pid, data)
	}
	return st, nil
}

// uid is the process's effective uid, by which the kernel marks the sockets it
// makes. It owns /proc/PID, except that root owns those of processes that are
// not dumpable (started by root and then given away, as jsvc does; or started
// with file capabilities): those need status read.
func (p *proc) uid(pid int) (uint32, bool) {
	var st unix.Stat_t
	err := unix.Stat(p.path(pid, ""), &st)
	if err != nil || st.Uid != 0 {
		return st.Uid, err == nil
	}
	data, err := os.ReadFile(p.path(pid, "status"))
	if err != nil {
		return 0, false
	}
	return effectiveUID(data)
}

// net identifies the process's network namespace by the inode of its own
// /proc/PID/net/tcp, which differs in each (proc_create_net_data gives every
// entry its own). Unlike ns/net any user may ask for it. 0 is unknown.
func (p *proc) net(pid int) uint64 { return inodeOf(p.path(pid, "net/tcp")) }

// ownNet is that of the calling thread; 0 when the mount shows another pid
// namespace.
func (p *proc) ownNet() uint64 { return inodeOf(filepath.Join(p.mount, "thread-self/net/tcp")) }

func inodeOf(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return 0
	}
	return st.Ino
}

// hidden says that processes of others cannot be listed: everybody sees pid 1
// unless proc is mounted with hidepid.
func (p *proc) hidden() bool {
	var st unix.Stat_t
	if unix.Lstat(filepath.Join(p.mount, "self"), &st) != nil {
		return false // not a proc at all
	}
	err := unix.Stat(p.path(1, ""), &st)
	return errors.Is(err, iofs.ErrNotExist) && errors.Is(unix.Kill(1, 0), syscall.EPERM)
}

// link reads one descriptor; 0 if it is not a socket, or not ours to read.
func (p *proc) link(pid, fd int) uint32 {
	p.readlinks++
	var link [64]byte
	n, err := unix.Readlink(p.path(pid, "fd/"+strconv.Itoa(fd)), link[:])
	if err != nil {
		return 0
	}
	return socketInode(link[:n])
}

// sockets calls fn for the sockets among up to limit descriptors (0: all),
// in ascending order and beginning with from, until fn returns false. next is
// the first descriptor that was not looked at, 0 at the end.
func (p *proc) sockets(pid, from, limit int, fn func(fd int, inode uint32) bool) (next int, err error) {
	dir, err := openDir(p.path(pid, "fd"))
	if err != nil {
		return 0, p.explain(pid, err)
	}
	defer func() { _ = unix.Close(dir) }()
	if from > 0 { // the offset is the descriptor + 2 (proc_readfd_common)
		_, _ = unix.Seek(dir, int64(from)+2, unix.SEEK_SET)
	}
	var link [64]byte
	var denied error
	seen := 0
	err = eachNumber(dir, func(fd int) bool {
		if fd < from {
			return true
		}
		if seen++; limit > 0 && seen > limit {
			next = fd
			return false
		}
		p.readlinks++
		n, err := unix.Readlinkat(dir, strconv.Itoa(fd), link[:])
		if errors.Is(err, iofs.ErrPermission) {
			// The same user with another group may list the folder, which is
			// its own by mode, but not follow the links (ptrace_may_access).
			denied = err
			return false
		}
		if err != nil {
			return true // closed meanwhile
		}
		inode := socketInode(link[:n])
		return inode == 0 || fn(fd, inode)
	})
	return next, p.explain(pid, cmp.Or(denied, err))
}

// explain tells a process that has ended, or is a zombie, from a missing
// permission.
func (p *proc) explain(pid int, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, iofs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		err = ErrGone
		if pid > 0 && p.hidden() && errors.Is(unix.Kill(pid, 0), unix.EPERM) {
			err = ErrInvisible
		}
	}
	return fmt.Errorf("owner: fd of pid %d: %w", pid, err)
}

// threadNames calls fn with each thread's name until it returns false.
func (p *proc) threadNames(pid int, fn func(comm []byte) bool) {
	dir, err := openDir(p.path(pid, "task"))
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(dir) }()
	var buf [32]byte
	_ = eachNumber(dir, func(tid int) bool {
		fd, err := unix.Openat(dir, strconv.Itoa(tid)+"/comm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return true // the thread has ended
		}
		n, err := unix.Read(fd, buf[:])
		_ = unix.Close(fd)
		if err != nil {
			return true
		}
		return fn(bytes.TrimSuffix(buf[:n], []byte{'\n'}))
	})
}

func (p *proc) cmdline(pid int) []byte {
	data, err := os.ReadFile(p.path(pid, "cmdline"))
	if err != nil {
		return nil
	}
	return data
}

func openDir(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// Offsets in struct linux_dirent64 (getdents64(2)).
const (
	direntReclen = 16
	direntName   = 19
)

// eachNumber calls fn for the names of a folder that are numbers, in the
// kernel's order, until it returns false.
func eachNumber(dir int, fn func(n int) bool) error {
	buf := make([]byte, 8<<10)
	for {
		n, err := unix.Getdents(dir, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 || !eachDirent(buf[:n], fn) {
			return err
		}
	}
}

func eachDirent(b []byte, fn func(n int) bool) bool {
	for len(b) > direntName {
		length := int(binary.NativeEndian.Uint16(b[direntReclen:]))
		if length <= direntName || length > len(b) {
			return false
		}
		name, _, _ := bytes.Cut(b[direntName:length], []byte{0})
		if n, err := strconv.Atoi(string(name)); err == nil && n >= 0 && !fn(n) {
			return false
		}
		b = b[length:]
	}
	return true
}
