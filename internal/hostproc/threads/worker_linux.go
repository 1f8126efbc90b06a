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
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
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
	if w.files == nil {
		w.files = slices.Repeat([]int{closed}, len(w.TIDs))
	}
	r := reading{task: task, numbers: numbers, w: w, fs: fs}
	w.calls, w.Unread = w.calls[:0], nil
	for i := range w.TIDs {
		call, ok, err := r.call(i)
		if err != nil {
			return err
		}
		if ok {
			w.calls = append(w.calls, numbered{i, call})
		}
	}
	polled := r.polled()
	sockets := workerSockets{files: files, w: w, live: live}
	for _, c := range w.calls {
		fn(WorkerCall{Call: c.Call, Socket: sockets.of(&c.Call, polled[c.at]), Poller: c.at >= len(w.TIDs)-w.pollers})
	}
	return nil
}

// reading is one call of Calls.
type reading struct {
	fs      hostproc.FS
	task    int
	numbers callNumbers
	w       *Workers
	line    [256]byte
	name    []byte
}

// call is that of the worker at i; false when it has ended.
func (r *reading) call(i int) (Call, bool, error) {
	r.name = append(strconv.AppendInt(r.name[:0], int64(r.w.TIDs[i]), 10), "/syscall"...)
	data, err := r.w.read(r.task, i, r.name, r.line[:])
	if procfile.Ended(err) {
		return Call{}, false, nil
	}
	var call Call
	if err == nil {
		call, err = parseCall(data, r.numbers)
	}
	return call, err == nil, r.fs.Wrap(r.w.PID, "worker threads", err)
}

// polled are the descriptors of those that poll one, by worker: the first word of the struct
// pollfd in the memory of the process, which asks for the same permission as
// task/TID/syscall (PTRACE_MODE_ATTACH). A read with a timeout is a poll
// (NioSocketImpl.park, NET_ReadWithTimeout). Who does something else by then has left it.
func (r *reading) polled() map[int]int {
	var at []int64
	var who []int
	for _, c := range r.w.calls {
		if c.Kind == CallPoll && c.Polled != 0 && c.Polled <= math.MaxInt64 {
			at, who = append(at, int64(c.Polled)), append(who, c.at)
		}
	}
	if len(at) == 0 {
		return nil
	}
	memory, err := os.Open(r.fs.Path(r.w.PID, "mem"))
	if err != nil {
		return nil
	}
	defer func() { _ = memory.Close() }()
	words, err := r.fs.ReadAt(r.owner(), memory, at, 4)
	if r.w.Unread = err; err != nil {
		return nil
	}
	out := make(map[int]int, len(at))
	for n, word := range words {
		if len(word) != 4 {
			continue
		}
		if now, ok, err := r.call(who[n]); err == nil && ok && now.Kind == CallPoll && now.Polled == uint64(at[n]) {
			out[who[n]] = int(int32(binary.NativeEndian.Uint32(word)))
		}
	}
	return out
}

// owner is whose process it is, which does not change.
func (r *reading) owner() string {
	if r.w.owner == "" {
		r.w.owner = cgroup.Owner(r.fs, r.w.PID)
	}
	return r.w.owner
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
	w     *Workers
	live  map[uint32]struct{}
	files int // the folder of descriptors
	link  [64]byte
}

// of is the socket of a call. polled is the descriptor of one that polls, 0 where that is not known.
func (s *workerSockets) of(c *Call, polled int) uint32 {
	fd := c.FD
	switch c.Kind {
	case CallReceive, CallConnect, CallWrite:
	case CallPoll:
		if fd = polled; fd == 0 {
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
