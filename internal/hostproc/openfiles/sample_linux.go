package openfiles

import (
	"math/rand/v2"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// sparse is how many times longer than its use a table of descriptors may be:
// it never shrinks, and every empty place that is picked costs a call. No more calls than that
// are made for each descriptor that is wanted, to read all and to pick some.
const sparse = 8

// SubsetOfSockets is SocketInodes for about size descriptors that are picked
// at random: each costs a microsecond and a half to read, so that all of 20,000
// take as long as a walk of a large table. Each that fn is called for stands for that number of them,
// with a standard error of the sum of about the sum / √(size × its part of all). Of a process with fewer it
// reads all, and of none it makes more than some 16 × size calls, however long its table is.
//
// One is picked from each of equal parts of the table of descriptors: a
// fixed step would meet a server's pairs (accepted, outgoing, accepted, …) always
// on one side.
func SubsetOfSockets(fs hostproc.FS, pid, size int, fn func(inode uint32)) (each float64, err error) {
	slots, err := descriptorSlots(fs, pid)
	if err != nil {
		return 0, err
	}
	most := size // that are all read
	open := 0
	if fs.CountsOpenFiles() { // others would list them all
		if open, err = Count(fs, pid); err != nil {
			return 0, err
		}
	}
	if open > 0 && slots > sparse*open || open == 0 && slots > sparse*sparse*size { // few would be met
		most = sparse * size
	}
	if open <= most {
		if complete, err := readAll(fs, pid, most, fn); err != nil || complete {
			return 1, err
		}
	}
	parts := min(slots, sparse*size)
	if open > 0 { // as many as hit about size descriptors
		parts = min(parts, max(size, size*slots/open))
	}
	return float64(slots) / float64(parts), pick(fs, pid, slots, parts, fn)
}

// readAll calls fn for the sockets of a process, where it has no more than most descriptors, else for none.
func readAll(fs hostproc.FS, pid, most int, fn func(inode uint32)) (complete bool, err error) {
	var inodes []uint32
	next, err := fs.SocketFiles(pid, 0, most, func(_ int, inode uint32) bool {
		inodes = append(inodes, inode)
		return true
	})
	if err != nil || next > 0 {
		return false, err
	}
	for _, inode := range inodes {
		fn(inode)
	}
	return true, nil
}

// pick calls fn for the sockets among one descriptor of each part of the table.
func pick(fs hostproc.FS, pid, slots, parts int, fn func(inode uint32)) error {
	dir, err := procfile.OpenFolder(fs.Path(pid, "fd"))
	if err != nil {
		return fs.Wrap(pid, "fd", err)
	}
	defer func() { _ = unix.Close(dir) }()
	var link [64]byte
	for i := range parts {
		from, to := i*slots/parts, (i+1)*slots/parts
		n, err := unix.Readlinkat(dir, strconv.Itoa(from+rand.IntN(to-from)), link[:])
		if procfile.Ended(err) {
			continue
		}
		if err != nil {
			return fs.Wrap(pid, "fd", err)
		}
		if inode, ok := hostproc.SocketInode(link[:n]); ok {
			fn(inode)
		}
	}
	return nil
}

// descriptorSlots is the length of a process's table of descriptors: FDSize of
// its status, which the kernel rounds up to a power of two (alloc_fdtable).
func descriptorSlots(fs hostproc.FS, pid int) (int, error) {
	line, err := fs.StatusLine(pid, "FDSize")
	if err != nil {
		return 0, err
	}
	n, ok := procfile.Decimal(line)
	if !ok || n <= 0 {
		return 0, fs.Wrap(pid, "status", hostproc.ErrMalformed)
	}
	return n, nil
}
