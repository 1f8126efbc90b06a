package threads

import (
	"encoding/binary"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// ListWorkers lists the worker threads of a process's connectors. before is the list
// of an earlier call, which is kept where the process has as many threads as then, and
// is rested else.
func ListWorkers(fs hostproc.FS, pid int, ports []uint16, names []string, before *Workers) (*Workers, error) {
	var st unix.Stat_t
	if err := unix.Stat(fs.Path(pid, "task"), &st); err != nil {
		before.Rest()
		return nil, fs.Wrap(pid, "worker threads", err)
	}
	if before != nil && before.PID == pid && before.threads == int(st.Nlink) {
		return before, nil
	}
	before.Rest()
	out := &Workers{PID: pid, threads: int(st.Nlink), sockets: make(map[int]uint32)}
	var pollers []int
	err := fs.ThreadNames(pid, func(tid int, comm string) {
		switch {
		case IsWorker(comm, ports, names):
			out.TIDs = append(out.TIDs, tid)
		case IsPoller(comm, ports):
			pollers = append(pollers, tid)
		}
	})
	if len(out.TIDs) > 0 {
		out.TIDs, out.pollers = append(out.TIDs, pollers...), len(pollers)
	}
	return out, err
}

// Calls reads the system call of each worker (task/TID/syscall: the same user and
// group, or CAP_SYS_PTRACE), and which socket it waits for. A thread that has ended
// is left out. live are the process's sockets at this moment, by inode: as long as a
// socket lives, the descriptor that it was found behind is its own, and is not
// followed again.
func Calls(fs hostproc.FS, w *Workers, live map[uint32]struct{}, fn func(WorkerCall)) error {
	numbers, known := callsOf(runtime.GOARCH)
	if !known {
		return hostproc.ErrNotSupported
	}
	task, err := procfile.OpenFolder(fs.Path(w.PID, "task"))
	if err != nil {
		return fs.Wrap(w.PID, "worker threads", err)
	}
	defer func() { _ = unix.Close(task) }()
	files, err := procfile.OpenFolder(fs.Path(w.PID, "fd"))
	if err != nil {
		return fs.Wrap(w.PID, "worker threads", err)
	}
	defer func() { _ = unix.Close(files) }()
	sockets := workerSockets{files: files, w: w, live: live, path: fs.Path(w.PID, "mem")}
	defer sockets.close()
	if w.files == nil {
		w.files = slices.Repeat([]int{closed}, len(w.TIDs))
	}
	var line [256]byte
	name := make([]byte, 0, 32)
	for i, tid := range w.TIDs {
		name = append(strconv.AppendInt(name[:0], int64(tid), 10), "/syscall"...)
		data, err := w.read(task, i, name, line[:])
		if procfile.Ended(err) {
			continue
		}
		if err != nil {
			return fs.Wrap(w.PID, "worker threads", err)
		}
		call, err := parseCall(data, numbers)
		if err != nil {
			return fs.Wrap(w.PID, "worker threads", err)
		}
		fn(WorkerCall{Call: call, Socket: sockets.of(&call), Poller: i >= len(w.TIDs)-w.pollers})
	}
	return nil
}

const closed = -1

// read reads the file of the worker at i. It stays open while there is room: it is that
// thread's, and answers that it has ended whichever thread has its id then.
func (w *Workers) read(task, i int, name, buf []byte) ([]byte, error) {
	fd := w.files[i]
	if fd == closed {
		var err error
		if fd, err = procfile.Retry(func() (int, error) { return unix.Openat(task, string(name), unix.O_RDONLY|unix.O_CLOEXEC, 0) }); err != nil {
			return nil, err
		}
		if w.Room == nil || w.Room.Files == 0 {
			defer func() { _ = unix.Close(fd) }()
		} else {
			w.Room.Files--
			w.files[i] = fd
		}
	}
	n, err := procfile.Retry(func() (int, error) { return unix.Pread(fd, buf, 0) })
	if err != nil {
		w.close(i)
		return nil, err
	}
	return buf[:n], nil
}

// Rest closes what stays open between readings, until the next one.
func (w *Workers) Rest() {
	if w == nil {
		return
	}
	for i := range w.files {
		w.close(i)
	}
}

func (w *Workers) close(i int) {
	if w.files[i] == closed {
		return
	}
	_ = unix.Close(w.files[i])
	w.files[i] = closed
	w.Room.Files++
}

// workerSockets finds the sockets that threads wait for.
type workerSockets struct {
	w      *Workers
	live   map[uint32]struct{}
	files  int    // the folder of descriptors
	path   string // of the process's memory, opened when it is needed
	memory *os.File
	err    error
	link   [64]byte
}

func (s *workerSockets) of(c *Call) uint32 {
	fd := c.FD
	switch c.Kind {
	case CallReceive, CallConnect, CallWrite:
	case CallPoll:
		var ok bool
		if fd, ok = s.polled(c.Polled); !ok {
			return 0
		}
	default:
		return 0
	}
	inode, ok := s.w.sockets[fd]
	if _, lives := s.live[inode]; ok && lives {
		return inode
	}
	n, err := unix.Readlinkat(s.files, strconv.Itoa(fd), s.link[:])
	if err != nil {
		return 0
	}
	inode, _ = hostproc.SocketInode(s.link[:n])
	s.w.sockets[fd] = inode
	return inode
}

// polled reads the descriptor of a struct pollfd in the memory of the process,
// which asks for the same permission as task/TID/syscall (PTRACE_MODE_ATTACH). A
// read with a timeout is a poll (NioSocketImpl.park, NET_ReadWithTimeout).
func (s *workerSockets) polled(at uint64) (int, bool) {
	if at == 0 || at > math.MaxInt64 {
		return 0, false
	}
	if s.memory == nil && s.err == nil {
		s.memory, s.err = os.Open(s.path)
	}
	if s.err != nil {
		return 0, false
	}
	var fd [4]byte
	if _, err := s.memory.ReadAt(fd[:], int64(at)); err != nil {
		return 0, false
	}
	return int(int32(binary.NativeEndian.Uint32(fd[:]))), true
}

func (s *workerSockets) close() {
	if s.memory != nil {
		_ = s.memory.Close()
	}
}
