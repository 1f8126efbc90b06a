package openfiles

import (
	"math/rand/v2"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// sparse is how many times longer than its use a table of descriptors may be:
// it never shrinks, and every empty place that is picked costs a call.
const sparse = 8

// SubsetOfSockets is SocketInodes for about size descriptors that are picked
// at random: each costs a microsecond and a half to read, so that all of 20,000
// take as long as a walk of a large table. read is how many descriptors there
// were among the picked ones, files included: of n open files about
// n × hits / read are what fn looks for, with a standard error of at most
// n / (2 × √read). Of a process with fewer it reads all.
//
// One is picked from each of size equal parts of the table of descriptors: a
// fixed step would meet a server's pairs (accepted, outgoing, accepted, …) always
// on one side.
func SubsetOfSockets(fs hostproc.FS, pid, size int, fn func(inode uint32)) (read int, err error) {
	open, err := Count(fs, pid)
	if err != nil {
		return 0, err
	}
	if open <= size {
		return open, fs.SocketInodes(pid, fn)
	}
	slots, err := descriptorSlots(fs, pid)
	if err != nil {
		return 0, err
	}
	if slots > sparse*open {
		return open, fs.SocketInodes(pid, fn)
	}
	dir, err := procfile.OpenFolder(fs.Path(pid, "fd"))
	if err != nil {
		return 0, fs.Wrap(pid, "fd", err)
	}
	defer func() { _ = unix.Close(dir) }()
	// As many picks as hit about size descriptors of a table that is half empty.
	parts := min(slots, size*slots/open)
	var link [64]byte
	for i := range parts {
		from, to := i*slots/parts, (i+1)*slots/parts
		n, err := unix.Readlinkat(dir, strconv.Itoa(from+rand.IntN(to-from)), link[:])
		if procfile.Ended(err) {
			continue
		}
		if err != nil {
			return read, fs.Wrap(pid, "fd", err)
		}
		read++
		if inode, ok := hostproc.SocketInode(link[:n]); ok {
			fn(inode)
		}
	}
	return read, nil
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
