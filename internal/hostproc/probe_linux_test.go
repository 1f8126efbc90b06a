package hostproc_test

import (
	"encoding/json"
	"errors"
	iofs "io/fs"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hsperf"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/memory"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/openfiles"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/threads"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// What cannot be read says which of the ways it is.
func TestProbe(t *testing.T) {
	everywhere := func(answer string) probeResult {
		return probeResult{
			"process": answer, "files": answer, "count": answer, "limit": answer, "cmdline": answer, "environ": answer,
			"counters": answer, "sockstat": answer, "delay": answer, "cgroup": answer, "jvm": answer, "open": answer,
			"listen": answer, "net": answer, "threads": answer, "sockets": answer, "sample": answer,
		}
	}
	t.Run("gone", func(t *testing.T) {
		c := proctest.Start(t, "wait", "")
		c.Stop()
		require.Equal(t, everywhere("gone"), probe(t, "probe", strconv.Itoa(c.PID())))
	})
	t.Run("other user", func(t *testing.T) {
		proctest.NeedRoot(t)
		c := proctest.Start(t, "wait", "")
		want := everywhere("ok")
		for _, private := range []string{"count", "environ", "jvm", "open", "sockets", "sample"} {
			want[private] = "permission"
		}
		if !countsOpenFiles(t) { // before 6.2 the directory must be read
			want["files"] = "permission"
		}
		require.Equal(t, want, probe(t, "probe", strconv.Itoa(c.PID()), proctest.AsNobody))
	})
	t.Run("own", func(t *testing.T) {
		c := proctest.Start(t, "wait", "")
		want := everywhere("ok")
		want["jvm"] = "noperfdata"
		require.Equal(t, want, probe(t, "probe", strconv.Itoa(c.PID())))
	})
	t.Run("hidden", func(t *testing.T) {
		proctest.NeedRoot(t)
		c := proctest.Start(t, "wait", "")
		dir, err := os.MkdirTemp("/tmp", "hostproc-test-")
		require.NoError(t, err)
		defer func() { _ = os.Remove(dir) }()
		require.NoError(t, os.Chmod(dir, 0o755))
		private := func(cmd *exec.Cmd) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		}
		arg := dir + ":" + strconv.Itoa(c.PID())
		require.Equal(t, everywhere("invisible"), probe(t, "hidepid", arg, private))
		c.Stop()
		require.Equal(t, everywhere("gone"), probe(t, "hidepid", arg, private))
	})
}

// probeResult is what a reader finds out about a process, by kind of error.
type probeResult map[string]string

func childProbe(mount, arg string) error {
	pid, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	fs, err := hostproc.NewFS(mount)
	if err != nil {
		return err
	}
	fs = fs.WithMemory(memory.Here{})
	_, processErr := fs.Process(pid)
	_, filesErr := openfiles.Count(fs, pid)
	_, countErr := openfiles.Count(fs.Listing(), pid)
	_, limitErr := openfiles.Limit(fs, pid)
	_, cmdErr := fs.Cmdline("", pid)
	environ, envErr := fs.OpenMemory("", pid, "environ")
	if envErr == nil {
		environ.Close()
	}
	counters, countersErr := netstat.OpenNetCounters(fs, pid)
	if countersErr == nil {
		_ = counters.Close()
	}
	sockstat, sockstatErr := netstat.OpenSockstat(fs, pid)
	if sockstatErr == nil {
		_ = sockstat.Close()
	}
	_, delayErr := threads.NewRunDelayCounter(fs, pid, &threads.Load{}).Read(time.Now())
	_, cgroupErr := cgroup.Of(fs, pid)
	_, jvmErr := hsperf.Read(fs, pid)
	_, openErr := fs.OpenRegular(pid, "/etc/hostname")
	listen, listenErr := netstat.OpenListenCounters(fs, pid)
	if listenErr == nil {
		_ = listen.Close()
	}
	_, netErr := fs.NetID(pid)
	_, sampleErr := openfiles.SubsetOfSockets(fs, pid, 1, func(uint32) {})
	return json.NewEncoder(os.Stdout).Encode(probeResult{
		"process": kind(processErr), "files": kind(filesErr), "count": kind(countErr), "limit": kind(limitErr),
		"cmdline": kind(cmdErr), "environ": kind(envErr), "counters": kind(countersErr), "sockstat": kind(sockstatErr),
		"delay": kind(delayErr), "cgroup": kind(cgroupErr), "jvm": kind(jvmErr), "open": kind(openErr),
		"listen": kind(listenErr), "net": kind(netErr),
		"threads": kind(fs.ThreadNames(pid, func(int, string) {})),
		"sockets": kind(fs.SocketInodes(pid, func(uint32) {})), "sample": kind(sampleErr),
	})
}

func kind(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, hostproc.ErrNoProcess):
		return "gone"
	case errors.Is(err, hostproc.ErrInvisible):
		return "invisible"
	case errors.Is(err, iofs.ErrPermission):
		return "permission"
	case errors.Is(err, hsperf.ErrNoPerfData):
		return "noperfdata"
	}
	return err.Error()
}

// childHidePID mounts a proc with hidepid=2, in a mount namespace that is
// its own, and looks through it as nobody.
func childHidePID(arg string) error {
	dir, pid, _ := strings.Cut(arg, ":")
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("proc", dir, "proc", 0, "hidepid=2"); err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(proctest.Nobody, proctest.Nobody, proctest.Nobody), syscall.Setresuid(proctest.Nobody, proctest.Nobody, proctest.Nobody)); err != nil {
		return err
	}
	return childProbe(dir, pid)
}

func probe(t *testing.T, mode, arg string, options ...func(*exec.Cmd)) probeResult {
	t.Helper()
	out, err := proctest.Command(t, mode, arg, options...).Output()
	require.NoError(t, err)
	var r probeResult
	require.NoError(t, json.Unmarshal(out, &r))
	return r
}

func countsOpenFiles(t *testing.T) bool {
	t.Helper()
	fs := hostfs.Real(t)
	return fs.CountsOpenFiles()
}
