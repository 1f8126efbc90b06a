package reader

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// accepting is a listener of ours with a thread in accept(2).
func accepting(tb testing.TB) Listener {
	tb.Helper()
	_, port, inode := proctest.Accepting(tb)
	return Listener{PID: os.Getpid(), Port: port, Inode: inode}
}

// clock is time that passes when a test says so.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// found opens a reader that has found the acceptor.
func found(tb testing.TB) (*Reader, *clock) {
	tb.Helper()
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	of := accepting(tb)
	r := Open(hostfs.Real(tb), jvmOf(tb, of.PID), of, c.now)
	tb.Cleanup(r.Close)
	require.Eventually(tb, func() bool {
		c.at = c.at.Add(retry) // the thread may not have been in accept yet
		return r.Read().Acceptor.Activity == evidence.Accepting
	}, time.Minute, time.Millisecond)
	return r, c
}

func TestReading(t *testing.T) {
	r, c := found(t)
	first := r.Read()
	require.Equal(t, evidence.Known(false), first.Stopped)
	require.True(t, first.Files.Known)
	require.Positive(t, first.FilesLimit.V)
	require.Contains(t, first.Missing[evidence.SubjectSafepoints], "no HotSpot JVM")
	require.Empty(t, first.Missing[evidence.SubjectAcceptor])
	require.Eventually(t, func() bool { // a busy machine may withhold the CPU from us, and the runtime may send a signal
		first = r.Read()
		c.at = c.at.Add(evidence.MinApart)
		j := judged(evidence.Phases{}, first, r.Read())
		return j.Cause == model.CauseSlowAccept && j.Strength == evidence.StrengthAcceptor
	}, time.Minute, time.Millisecond)
}

// A reading is made of few small files, whatever the process holds, and leaves
// nothing to collect.
func TestReadingIsCheap(t *testing.T) {
	r, _ := found(t)
	require.Zero(t, testing.AllocsPerRun(100, func() { r.Read() }))
	require.LessOrEqual(t, proctest.Reads(t, func() { r.Read() }), 6)
}

// The process that ends is said to have ended.
func TestReadingOfAProcessThatHasEnded(t *testing.T) {
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	r := Open(hostfs.Real(t), jvmOf(t, 1<<30), Listener{PID: 1 << 30, Port: 1}, c.now)
	defer r.Close()
	got := r.Read()
	require.Equal(t, evidence.Value[bool]{}, got.Stopped)
	for _, subject := range []evidence.Subject{evidence.SubjectProcess, evidence.SubjectAcceptor, evidence.SubjectFiles, evidence.SubjectSafepoints} {
		require.Equal(t, "the process has ended", got.Missing[subject], "%s", subject)
	}
}

func BenchmarkReading(b *testing.B) {
	r, _ := found(b)
	b.ReportAllocs()
	for b.Loop() {
		r.Read()
	}
}

// jvmOf opens a process's performance data the way the process that examines it does.
func jvmOf(tb testing.TB, pid int) func() (*hsperf.File, error) {
	return func() (*hsperf.File, error) {
		proc := hostfs.Real(tb)
		p, err := proc.Process(pid)
		if err != nil {
			return nil, err
		}
		h, err := proc.Handles(pid, p.StartTime)
		if err != nil {
			return nil, err
		}
		defer h.Close()
		return hsperf.Open(h)
	}
}

// Why a JVM's counters are missing is said, once its examination has ended.
func TestWhyThereAreNoCounters(t *testing.T) {
	process := func(comm string) *model.Process { return &model.Process{PID: 7, Comm: comm} }
	read := func(comm string, err error) []model.Unavailable {
		var m processReader
		var miss facts.Missing
		m.readJVM(func() (*hsperf.File, error) { return nil, err }, time.Now(), process(comm), "as root", &miss)
		return miss.List
	}
	for _, comm := range []string{"java", "jsvc", "jsvc.exec"} {
		require.Empty(t, read(comm, discovery.ErrUnexamined))
		require.Equal(t, []model.Unavailable{noPerfData(7)}, read(comm, hsperf.ErrNoPerfData))
		require.Equal(t, []model.Unavailable{{What: "JVM counters (hsperfdata) of pid 7", Why: "permission denied", How: "as root"}}, read(comm, fs.ErrPermission))
		require.Equal(t, []model.Unavailable{{What: "JVM counters (hsperfdata) of pid 7", Why: "broken"}}, read(comm, errors.New("broken")))
	}
	require.Empty(t, read("nginx", errors.New("nobody asks")))
}

// TestLongStarvedOfCPU: while another program takes all of its CPU, the acceptor
// that a connection woke does not get to run.
func TestLongStarvedOfCPU(t *testing.T) {
	needServers(t)
	javas := javas(t)
	s := start(t, javas[len(javas)-1], "10.1.59", nil)
	r := s.open(t, plain)
	s.settles(t, plain, r, model.CauseSlowAccept, evidence.StrengthAcceptor)

	hog := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	require.NoError(t, hog.Start())
	defer func() {
		_ = hog.Process.Kill()
		_ = hog.Wait()
	}()
	var one unix.CPUSet
	one.Set(0)
	require.NoError(t, unix.SchedSetaffinity(hog.Process.Pid, &one))
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(s.pid) + "/task/*")
	require.NoError(t, err)
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		require.NoError(t, err)
		_ = unix.SchedSetaffinity(tid, &one) // it may have ended
		_ = unix.SchedSetAttr(tid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
	}
	stop := s.visits(t, plain)
	defer stop()
	s.settles(t, plain, r, model.CauseCPUSaturated, evidence.StrengthProcess)
}
