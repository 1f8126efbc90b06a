package threads

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// waiter is a program whose threads have workers' names: each waits for its own
// socket, in recv, in poll, in connect, or parks.
const waiter = `
import ctypes, select, socket, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
address = ("127.0.0.1", int(sys.argv[1]))
def named(name, what):
    def run():
        libc.prctl(15, name.encode(), 0, 0, 0)
        what()
    threading.Thread(target=run, daemon=True).start()
def connected():
    s = socket.create_connection(address)
    return s
kept = [connected() for _ in range(%d)]
fds = (ctypes.c_byte * 8)
for i, s in enumerate(kept):
    if i %% 2:
        named("http-nio-8080-exec-%%d" %% i, lambda s=s: libc.recv(s.fileno(), ctypes.create_string_buffer(8), 8, 0))
    else:
        def poll(s=s):
            p = fds()
            ctypes.cast(p, ctypes.POINTER(ctypes.c_int))[0] = s.fileno()
            ctypes.cast(p, ctypes.POINTER(ctypes.c_short))[2] = 1
            libc.poll(p, 1, 3600000)
        named("http-nio-8080-exec-%%d" %% i, poll)
lock = threading.Lock(); lock.acquire()
named("http-nio-8080-exec-x", lock.acquire)
named("subscription", lambda: libc.recv(kept[1].fileno(), ctypes.create_string_buffer(8), 8, 0))
print("ready", flush=True)
sys.stdin.read()
`

// startWaiter starts it with n workers that wait for a socket each.
func startWaiter(t testing.TB, n int) int {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	cmd := exec.Command(python, "-c", fmt.Sprintf(waiter, n), fmt.Sprint(listener.Addr().(*net.TCPAddr).Port))
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	_, err = out.Read(make([]byte, 16))
	require.NoError(t, err)
	return cmd.Process.Pid
}

// callsOfWorkers reads until each worker is in its call.
func callsOfWorkers(t testing.TB, fs hostproc.FS, pid, n int) (receiving, polling, parked int, sockets map[uint32]int) {
	t.Helper()
	var list *Workers
	require.Eventually(t, func() bool {
		var err error
		list, err = ListWorkers(fs, pid, []uint16{8080}, nil, nil)
		require.NoError(t, err)
		receiving, polling, parked, sockets = 0, 0, 0, make(map[uint32]int)
		require.NoError(t, Calls(fs, list, nil, func(c WorkerCall) {
			switch c.Kind {
			case CallReceive:
				receiving++
			case CallPoll:
				polling++
			case CallFutex:
				parked++
			}
			if c.Socket != 0 {
				sockets[c.Socket]++
			}
		}))
		return len(list.TIDs) == n+1 && receiving+polling == n && parked == 1
	}, time.Minute, 10*time.Millisecond)
	again, err := ListWorkers(fs, pid, []uint16{8080}, nil, list)
	require.NoError(t, err)
	require.Same(t, list, again, "as many threads as before")
	return receiving, polling, parked, sockets
}

// Each worker waits for a socket of its own; the thread of another name is none.
func TestCallsOfWorkers(t *testing.T) {
	fs := hostfs.Real(t)
	pid := startWaiter(t, 6)
	receiving, polling, _, sockets := callsOfWorkers(t, fs, pid, 6)
	require.Equal(t, []int{3, 3}, []int{receiving, polling})
	require.Len(t, sockets, 6)
	live := make(map[uint32]struct{})
	require.NoError(t, fs.SocketInodes(pid, func(inode uint32) { live[inode] = struct{}{} }))
	for inode := range sockets {
		require.Contains(t, live, inode)
	}
	list, err := ListWorkers(fs, pid, []uint16{8080}, nil, nil)
	require.NoError(t, err)
	list.Room = &Room{Files: 4}
	for range 2 { // the second reading follows no descriptor, and opens what there was no room for
		again := make(map[uint32]int)
		require.NoError(t, Calls(fs, list, live, func(c WorkerCall) {
			if c.Socket != 0 {
				again[c.Socket]++
			}
		}))
		require.Equal(t, sockets, again)
		require.Zero(t, list.Room.Files)
	}
	_, err = ListWorkers(fs, 1<<23, []uint16{8080}, nil, list)
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
	require.Equal(t, 4, list.Room.Files, "what is not used any more is closed")
	list.Rest()
	require.Equal(t, 4, list.Room.Files)
	require.ErrorIs(t, Calls(fs, &Workers{PID: 1 << 23}, nil, nil), hostproc.ErrNoProcess)
}

// asked is who reads memory, and notes whose.
type asked []string

func (a *asked) ReadAt(owner string, f *os.File, at []int64, size int) ([][]byte, error) {
	*a = append(*a, fmt.Sprint(owner, " ", f.Name(), " ", at, " ", size))
	return nil, os.ErrDeadlineExceeded
}

// A worker polls in memory that never answers: it is not this process that reads it, and what
// else there is to know of the workers is known.
func TestCallsOfWorkersWhoseMemoryNeverAnswers(t *testing.T) {
	mapped := proctest.NewMappedFile(t, proctest.PollFD())
	c := proctest.Start(t, "mapped", mapped.Path, proctest.AsNobody)
	fs := hostfs.Real(t)
	var unread error
	polls := func(fs hostproc.FS) (sockets []uint32) {
		require.Eventually(t, func() bool {
			list, err := ListWorkers(fs, c.PID(), []uint16{8080}, nil, nil)
			require.NoError(t, err)
			sockets = nil
			require.NoError(t, Calls(fs, list, nil, func(c WorkerCall) {
				if c.Kind == CallPoll {
					sockets = append(sockets, c.Socket)
				}
			}))
			unread = list.Unread
			return len(sockets) == 1
		}, time.Minute, time.Millisecond)
		return sockets
	}
	require.NotZero(t, polls(fs)[0], "as long as it answers")
	require.NoError(t, unread)
	mapped.Silence(t)
	require.Zero(t, polls(fs.WithMemory(nil))[0])
	var who asked
	require.Zero(t, polls(fs.WithMemory(&who))[0])
	require.ErrorIs(t, unread, os.ErrDeadlineExceeded, "and it is known why")
	require.Equal(t, fmt.Sprintf("uid %d /proc/%d/mem [%s] 4", proctest.Nobody, c.PID(), c.Lines[0]), who[len(who)-1])
	require.Eventually(t, func() bool { return proctest.Blocked(os.Getpid()) == 0 }, time.Minute, time.Millisecond)
}

// A thread that has ended is left out, and its file is closed.
func TestCallsOfWorkersThatEnd(t *testing.T) {
	fs := hostfs.Real(t)
	ended, end := make(chan struct{}), make(chan struct{})
	tid := make(chan int)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		defer close(ended)
		tid <- unix.Gettid()
		<-end
	}()
	list := &Workers{PID: os.Getpid(), TIDs: []int{<-tid}, Room: &Room{Files: 1}}
	read := func() (n int) {
		require.NoError(t, Calls(fs, list, nil, func(WorkerCall) { n++ }))
		return n
	}
	require.Equal(t, 1, read())
	require.Zero(t, list.Room.Files)
	close(end)
	<-ended
	require.Eventually(t, func() bool { return read() == 0 }, time.Minute, time.Millisecond)
	require.Equal(t, 1, list.Room.Files)
}

// Half of the workers wait in recv and half in poll, each for a socket of its own:
// no reading is more expensive. A machine that is busy shows in ns/op, but not in
// the CPU time.
func BenchmarkCallsOfWorkers(b *testing.B) {
	fs := hostfs.Real(b)
	pid := startWaiter(b, 1000)
	callsOfWorkers(b, fs, pid, 1000)
	list, err := ListWorkers(fs, pid, []uint16{8080}, nil, nil)
	require.NoError(b, err)
	live := make(map[uint32]struct{})
	require.NoError(b, fs.SocketInodes(pid, func(inode uint32) { live[inode] = struct{}{} }))
	list.Room = &Room{Files: 2000}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := cpuTime(b)
	for b.Loop() {
		n := 0
		if err := Calls(fs, list, live, func(WorkerCall) { n++ }); err != nil || n != 1001 {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_THREAD, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
