package threaddump

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A JVM with -Xrs does not catch SIGQUIT. It listens from its start, and is asked
// without a signal; where that is switched off, or its socket was removed, it is not
// asked, and lives.
func TestAJVMThatDiesOfSIGQUIT(t *testing.T) {
	asked := start(t, "3", "-Xrs")
	stacks, err := asked.asker().Ask(t.Context(), asked.key())
	require.NoError(t, err)
	require.Equal(t, 5, stacks.Workers)
	require.NoError(t, os.Remove("/tmp/.java_pid"+strconv.Itoa(asked.Process.Pid)))
	a := asked.asker()
	a.patience = 100 * time.Millisecond
	require.False(t, asked.refused(a).Signalled)
	asked.lives()

	mute := start(t, "3", "-Xrs", "-XX:+DisableAttachMechanism")
	r := mute.refused(mute.asker())
	require.Contains(t, r.Why, "-XX:+DisableAttachMechanism")
	require.False(t, r.Signalled)
	mute.lives()
}

// The signal itself is not sent either, whatever else were to say that it may be.
func TestQuitRefusesAJVMThatDiesOfIt(t *testing.T) {
	v := start(t, "3", "-Xrs", "-XX:+DisableAttachMechanism", "-XX:-UsePerfData")
	j, err := find(v.proc, v.key())
	require.NoError(t, err)
	require.ErrorContains(t, j.quit(t.Context(), 0), "does not handle SIGQUIT")
	v.lives()
}

// One that is young is not signalled, however ready it is.
func TestAYoungJVMIsNotSignalled(t *testing.T) {
	v := start(t, "3")
	a := v.asker()
	a.settled = 365 * 24 * time.Hour
	require.Contains(t, v.refused(a).Why, "starting")
	left, err := filepath.Glob("/tmp/.*_pid" + strconv.Itoa(v.Process.Pid))
	require.NoError(t, err)
	require.Empty(t, left)
	v.lives()
}

// JVMs that start are asked at many moments, without the age that they are given
// else: none ends, and each answers in the end. How often one refuses before is the
// machine's: on a busy one the first request may come when the JVM is up.
func TestStartingJVMsLive(t *testing.T) {
	classes := needJDK(t)
	for round := range 4 {
		v := begin(t, nil, "-cp", classes, "Waiting", "3", "5")
		a := v.asker()
		time.Sleep(time.Duration(round) * 7 * time.Millisecond)
		require.Eventually(t, func() bool {
			stacks, err := a.Ask(t.Context(), v.key())
			return err == nil && stacks.Workers == 5
		}, 2*time.Minute, time.Millisecond)
		v.up()
		v.lives()
	}
}

func TestAStoppedJVMIsNotAsked(t *testing.T) {
	v := start(t, "3")
	stop := func(signal syscall.Signal, stopped bool) {
		require.NoError(t, v.Process.Signal(signal))
		require.Eventually(t, func() bool {
			p, err := v.proc.Process(v.Process.Pid)
			return err == nil && p.Stopped() == stopped
		}, time.Minute, time.Millisecond)
	}
	stop(syscall.SIGSTOP, true)
	r := v.refused(v.asker())
	require.Contains(t, r.Why, "stopped")
	require.Contains(t, r.How, "kill -CONT")
	require.False(t, r.Signalled)
	stop(syscall.SIGCONT, false)
	stacks, err := v.asker().Ask(t.Context(), v.key())
	require.NoError(t, err)
	require.Equal(t, 5, stacks.Workers)
	v.lives()
}

// Root does not become the JVM's user to ask it.
func TestAJVMOfAnotherUserIsNotAsked(t *testing.T) {
	nettest.Root(t)
	v := startAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "3")
	r := v.refused(v.asker())
	require.Contains(t, r.Why, "it runs as uid 65534 and gid 65534, tcpdiag as uid 0 and gid 0")
	require.Equal(t, "run tcpdiag as uid 65534 and gid 65534", r.How)
	v.lives()
	group := startAs(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 0, Gid: 65534}}, "3")
	require.Contains(t, group.refused(group.asker()).Why, "gid 65534")
	group.lives()
}

// A container: process 1 of its own, with a /tmp of its own.
func TestAJVMInAContainer(t *testing.T) {
	nettest.Root(t)
	classes := needJDK(t)
	java, err := exec.LookPath("java")
	require.NoError(t, err)
	script := "exec 3<" + classes + "; mount --make-rprivate / && mount -t tmpfs tmpfs /tmp && exec " + java + " -Xmx64m -cp /proc/self/fd/3 Waiting 3 5"
	v := run(t, exec.CommandContext(t.Context(), "sh", "-c", script), &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS})
	v.up()
	stacks, err := v.asker().Ask(t.Context(), v.key())
	require.NoError(t, err)
	require.Equal(t, 5, stacks.Workers)
	_, err = os.Lstat(v.proc.Path(v.Process.Pid, "root", "tmp", ".java_pid1"))
	require.NoError(t, err, "by the id that it sees itself")
	v.lives()
}

// Two containers that share a /tmp both have a process 1: what listens there is one of
// them, and the other is not taken for it.
func TestContainersThatShareAFolder(t *testing.T) {
	nettest.Root(t)
	classes := needJDK(t)
	container := func() *target {
		v := begin(t, &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, "-cp", classes, "Waiting", "3", "5")
		v.up()
		return v
	}
	quiet, asked := container(), container()
	stacks, err := asked.asker().Ask(t.Context(), asked.key())
	require.NoError(t, err)
	require.Equal(t, 5, stacks.Workers)
	r := quiet.refused(quiet.asker())
	require.Contains(t, r.Why, "another process listens")
	require.Contains(t, r.Why, strconv.Itoa(asked.Process.Pid))
	require.False(t, r.Signalled)
	quiet.lives()
	asked.lives()
}

// What is no HotSpot JVM gets no signal: this test's own process has no handler of its own.
func TestWhatIsNoJVMIsNotAsked(t *testing.T) {
	proc := hostfs.Real(t)
	p, err := proc.Process(os.Getpid())
	require.NoError(t, err)
	_, err = NewAsker(proc).Ask(t.Context(), hostproc.ProcessKey{PID: p.PID, StartTime: p.StartTime})
	require.ErrorContains(t, err, "no HotSpot JVM")
	_, err = NewAsker(proc).Ask(t.Context(), hostproc.ProcessKey{PID: p.PID, StartTime: p.StartTime + 1})
	require.ErrorContains(t, err, "another process has its id")
	_, err = NewAsker(proc).Ask(t.Context(), hostproc.ProcessKey{PID: 1 << 30, StartTime: 1})
	require.ErrorContains(t, err, "no such process")
}

// At a safepoint that one thread does not reach nobody answers: that is said at the
// deadline, and the JVM continues.
func TestAJVMThatStandsStillIsNotWaitedFor(t *testing.T) {
	classes := needJDK(t)
	v := begin(t, nil, "-cp", classes, "Waiting", "3", "5", "compute")
	v.up()
	main := 0
	require.NoError(t, v.proc.ThreadNames(v.Process.Pid, func(tid int, comm string) {
		if comm == "java" && tid != v.Process.Pid { // the process's first thread only waits for it
			main = tid
		}
	}))
	require.NotZero(t, main)
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	var r *Refusal
	for tries := 0; r == nil && tries < 60; tries++ { // it may be held where it keeps nobody from a safepoint
		if err := unix.PtraceSeize(main); err != nil {
			t.Skipf("it needs to trace its own child: %v", err)
		}
		require.NoError(t, unix.PtraceInterrupt(main))
		var status unix.WaitStatus
		_, err := unix.Wait4(main, &status, unix.WALL, nil)
		require.NoError(t, err)
		_, err = v.askWithin(time.Second)
		require.NoError(t, unix.PtraceDetach(main))
		_ = errors.As(err, &r)
	}
	require.ErrorContains(t, r, "did not answer in time")
	stacks, err := v.asker().Ask(t.Context(), v.key())
	require.NoError(t, err)
	require.Equal(t, 5, stacks.Workers)
}

func (v *target) askWithin(d time.Duration) (*model.Stacks, error) {
	ctx, cancel := context.WithTimeout(v.t.Context(), d)
	defer cancel()
	return v.asker().ask(ctx, v.key())
}

// A process that becomes another user's after it was looked at, with the same id and start time, is neither signalled nor
// connected to.
func TestAProcessThatBecomesAnothersIsNotAsked(t *testing.T) {
	nettest.Root(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", `import os,sys
print("own", flush=True); sys.stdin.readline()
os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
print("not", flush=True); sys.stdin.readline()`)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	said := func(want string) {
		got := make([]byte, 4)
		_, err := io.ReadFull(out, got)
		require.NoError(t, err)
		require.Equal(t, want+"\n", string(got))
	}
	said("own")
	proc := hostfs.Real(t)
	p, err := proc.Process(cmd.Process.Pid)
	require.NoError(t, err)
	j := &jvm{proc: proc, key: hostproc.ProcessKey{PID: p.PID, StartTime: p.StartTime}}
	j.seen, err = j.same()
	require.NoError(t, err)
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	said("not")
	const other = "it runs as uid 65534 and gid 65534"
	require.ErrorContains(t, j.quit(t.Context(), 0), other)
	_, err = j.openDoor()
	require.ErrorContains(t, err, other)
	require.NoError(t, cmd.Process.Signal(syscall.Signal(0)), "SIGQUIT would have ended it")
}

// A process that gets the id of a JVM which was looked at, and has ended, is neither signalled nor connected to.
func TestAnIDThatIsUsedAgainIsNotAsked(t *testing.T) {
	nettest.Root(t)
	v := start(t, "3")
	j, err := find(v.proc, v.key())
	require.NoError(t, err)
	pid := v.Process.Pid
	require.NoError(t, v.Process.Kill())
	require.Eventually(t, func() bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(pid))
		return os.IsNotExist(err)
	}, time.Minute, time.Millisecond)
	for range 200 { // another process or thread may be faster
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Skipf("ids cannot be chosen here: %v", err)
		}
		stranger := exec.CommandContext(t.Context(), "sleep", "600")
		require.NoError(t, stranger.Start())
		t.Cleanup(func() { _ = stranger.Process.Kill(); _ = stranger.Wait() })
		if stranger.Process.Pid != pid {
			continue
		}
		const other = "another process has its id by now"
		require.ErrorContains(t, j.quit(t.Context(), 0), other)
		_, err = j.openDoor()
		require.ErrorContains(t, err, other)
		_, err = v.asker().Ask(t.Context(), j.key)
		require.ErrorContains(t, err, other)
		p, err := v.proc.Process(pid)
		require.NoError(t, err)
		require.False(t, p.Exited(), "SIGQUIT would have ended it")
		return
	}
	t.Skip("the id was taken by others again and again")
}
