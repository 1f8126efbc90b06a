package owner

import (
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// holdings is what is remembered of a process that is asked about by its pid.
type holdings struct {
	start   uint64
	fds     map[uint32]int       // the descriptor of a socket that it holds
	without map[uint32]time.Time // a socket that it does not hold: when to look again
	asked   time.Time
}

// OwnedBy says which of the listening sockets a process holds, though others may
// hold them too. A socket that is not known to be its takes a search of all its
// descriptors, the next one after a while only. The error wraps
// hostproc.ErrNoProcess or fs.ErrPermission.
func (f *Finder) OwnedBy(pid int, inodes []uint32) (map[uint32]Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := f.proc.Stat(pid)
	if err != nil {
		return nil, fmt.Errorf("owner: %w", err)
	}
	if st.Exited {
		return nil, fmt.Errorf("owner: pid %d: %w", pid, hostproc.ErrNoProcess)
	}
	now := f.now()
	h := f.recall(pid, st.StartTime, inodes, now)
	if err := f.searchDescriptors(pid, h, inodes, now); err != nil {
		return nil, err
	}
	found := make(map[uint32]Process, len(h.fds))
	for inode := range h.fds {
		found[inode] = Process{PID: pid, Comm: st.Comm, StartTime: st.StartTime}
	}
	return found, nil
}

// recall keeps of a process's holdings what is asked for and still true.
func (f *Finder) recall(pid int, start uint64, inodes []uint32, now time.Time) *holdings {
	for pid, h := range f.byPID {
		if now.Sub(h.asked) > forgetAfter {
			delete(f.byPID, pid)
		}
	}
	next := &holdings{start: start, asked: now, fds: map[uint32]int{}, without: map[uint32]time.Time{}}
	last := f.byPID[pid]
	f.byPID[pid] = next
	if last == nil || last.start != start {
		return next
	}
	for _, inode := range inodes {
		if fd, ok := last.fds[inode]; ok && f.at(pid, fd, inode) {
			next.fds[inode] = fd
		}
		if retry, ok := last.without[inode]; ok && now.Before(retry) {
			next.without[inode] = retry
		}
	}
	return next
}

// searchDescriptors looks at a process's descriptors for the sockets of which it is not
// known whether it holds them.
func (f *Finder) searchDescriptors(pid int, h *holdings, inodes []uint32, begin time.Time) error {
	fresh := make(map[uint32]struct{})
	for _, inode := range inodes {
		_, with := h.fds[inode]
		_, without := h.without[inode]
		if !with && !without && inode != 0 {
			fresh[inode] = struct{}{}
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	_, err := f.proc.SocketFiles(pid, 0, 0, func(fd int, inode uint32) bool {
		if _, ok := fresh[inode]; ok {
			h.fds[inode] = fd
			delete(fresh, inode)
		}
		return len(fresh) > 0
	})
	if err != nil {
		return fmt.Errorf("owner: %w", err)
	}
	end := f.now()
	for inode := range fresh {
		h.without[inode] = end.Add(max(retryAfter, restRatio*end.Sub(begin)))
	}
	return nil
}

// at reports whether a process still has a socket at a descriptor.
func (f *Finder) at(pid, fd int, socket uint32) bool {
	inode, ok := f.proc.SocketAt(pid, fd)
	return ok && inode == socket
}
