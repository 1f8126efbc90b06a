package hsperf

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

const sleeperJava = `public class Sleeper {
	public static void main(String[] args) throws Exception {
		while (true) { byte[] b = new byte[1 << 16]; System.gc(); Thread.sleep(20); }
	}
}
`

// startJVM starts a JVM that collects garbage fifty times a second.
func startJVM(t *testing.T, command func(java, source string) *exec.Cmd) *exec.Cmd {
	t.Helper()
	java := proctest.NeedJava(t)
	source := filepath.Join(t.TempDir(), "Sleeper.java")
	require.NoError(t, os.WriteFile(source, []byte(sleeperJava), 0o600))
	cmd := command(java, source)
	cmd.Env = append(os.Environ(), "JAVA_TOOL_OPTIONS=-Dfrom.tool=options")
	proctest.Run(t, cmd)
	return cmd
}

// jvmReady waits until the JVM publishes and its collector has run.
func jvmReady(t *testing.T, fs hostproc.FS, pid int) JVM {
	t.Helper()
	var jvm JVM
	require.Eventually(t, func() bool {
		var err error
		jvm, err = Read(fs, pid)
		if err != nil && !errors.Is(err, ErrNoPerfData) {
			t.Logf("not yet: %v", err)
		}
		return err == nil && jvm.GCTime != nil && *jvm.GCTime > 0
	}, time.Minute, 20*time.Millisecond)
	return jvm
}

func TestJVM(t *testing.T) {
	fs := hostfs.Real(t)
	cmd := startJVM(t, func(java, source string) *exec.Cmd {
		return exec.CommandContext(t.Context(), java, "-Xmx32m", "-Dmarker=here", source, "--server.port=8080")
	})
	pid := cmd.Process.Pid
	jvm := jvmReady(t, fs, pid)
	require.Contains(t, jvm.VMArgs, "-Dfrom.tool=options -Xmx32m -Dmarker=here")
	require.Contains(t, jvm.JavaCommand, "--server.port=8080")
	require.WithinDuration(t, time.Now(), *jvm.Started, 2*time.Minute)

	p, err := fs.Process(pid)
	require.NoError(t, err)
	h, err := fs.Handles(pid, p.StartTime)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	first, err := Open(h)
	require.NoError(t, err)
	adopted, err := Adopt(fs, hostproc.ProcessKey{PID: pid, StartTime: p.StartTime}, first.File())
	require.NoError(t, err)
	file, err := adopted.Again()
	require.NoError(t, err)
	require.NoError(t, adopted.Close())
	require.Eventually(t, func() bool {
		later, err := file.Read()
		return err == nil && *later.SafepointTime > *jvm.SafepointTime && *later.ApplicationTime > *jvm.ApplicationTime
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, file.Close())
	_, err = file.Read()
	require.ErrorIs(t, err, os.ErrClosed)
}

// Whoever opens the file for us may hand over anything.
func TestAdoptJVMRefuses(t *testing.T) {
	fs := hostfs.Real(t)
	us, err := fs.Process(os.Getpid())
	require.NoError(t, err)
	key := hostproc.ProcessKey{PID: us.PID, StartTime: us.StartTime}
	good := filepath.Join(t.TempDir(), "good")
	require.NoError(t, os.WriteFile(good, capture(t, "jdk25.hsperfdata"), 0o600))
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, make([]byte, maxPerfData+1), 0o600))
	pipe, _, err := os.Pipe()
	require.NoError(t, err)
	opened := func(path string) *os.File {
		f, err := os.Open(path)
		require.NoError(t, err)
		return f
	}
	for name, c := range map[string]struct {
		file *os.File
		key  hostproc.ProcessKey
		want error
	}{
		"a file of the process":   {file: opened(good), key: key},
		"a folder":                {file: opened(t.TempDir()), key: key, want: hostproc.ErrMalformed},
		"a large file":            {file: opened(large), key: key, want: hostproc.ErrMalformed},
		"a pipe":                  {file: pipe, key: key, want: hostproc.ErrFileSystem},
		"a file of proc":          {file: opened("/proc/self/status"), key: key, want: hostproc.ErrFileSystem},
		"of another process":      {file: opened(good), key: hostproc.ProcessKey{PID: us.PID, StartTime: 1}, want: hostproc.ErrNoProcess},
		"of one that has ended":   {file: opened(good), key: hostproc.ProcessKey{PID: 1 << 22, StartTime: 1}, want: hostproc.ErrNoProcess},
		"of nobody's mount lists": {file: os.NewFile(uintptr(memfd(t)), "memfd"), key: key, want: hostproc.ErrFileSystem},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Adopt(fs, c.key, c.file)
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				require.ErrorIs(t, c.file.Close(), os.ErrClosed, "it is closed")
				return
			}
			require.NoError(t, err)
			jvm, err := f.Read()
			require.NoError(t, err)
			require.Equal(t, "25.0.3", jvm.Version)
			require.NoError(t, f.Close())
		})
	}
}

func memfd(t *testing.T) int {
	t.Helper()
	fd, err := unix.MemfdCreate("performance", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	return fd
}

// A container: pid 1 of its own, a /tmp of its own, and in it what a hostile
// or a dead neighbour may leave.
func TestJVMInAContainer(t *testing.T) {
	proctest.NeedRoot(t)
	fs := hostfs.Real(t)
	const script = `mount --make-rprivate / && mount -t tmpfs tmpfs /tmp || exit 1
mkdir /tmp/hsperfdata_a /tmp/hsperfdata_z /tmp/hsperfdata_zz; mkfifo /tmp/hsperfdata_a/1
ln -s /etc/passwd /tmp/hsperfdata_z/1; echo stale >/tmp/hsperfdata_zz/1
printf '%s' "$SOURCE" >/tmp/Sleeper.java; exec "$JAVA" -Xmx32m -Dinside=yes /tmp/Sleeper.java`
	cmd := startJVM(t, func(java, _ string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "JAVA='"+java+"'; SOURCE='"+sleeperJava+"'; "+script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		return cmd
	})
	jvm := jvmReady(t, fs, cmd.Process.Pid)
	require.Contains(t, jvm.VMArgs, "-Dinside=yes")
}

func TestJVMWithoutPerfData(t *testing.T) {
	fs := hostfs.Real(t)
	cmd := startJVM(t, func(java, source string) *exec.Cmd {
		return exec.CommandContext(t.Context(), java, "-XX:-UsePerfData", "-Xmx32m", source)
	})
	require.Eventually(t, func() bool {
		p, err := fs.Process(cmd.Process.Pid)
		return err == nil && p.Threads > 5
	}, time.Minute, 20*time.Millisecond)
	// A file of a dead JVM that had this pid proves nothing.
	require.NoError(t, os.MkdirAll("/tmp/hsperfdata_tcpdiag-test", 0o755))
	defer func() { _ = os.RemoveAll("/tmp/hsperfdata_tcpdiag-test") }()
	stale := filepath.Join("/tmp/hsperfdata_tcpdiag-test", filepath.Base(fs.Path(cmd.Process.Pid)))
	require.NoError(t, os.WriteFile(stale, capture(t, "jdk17.hsperfdata"), 0o600))
	_, err := Read(fs, cmd.Process.Pid)
	require.ErrorIs(t, err, ErrNoPerfData)
}

func TestFindPerfDataRefuses(t *testing.T) {
	dir := t.TempDir()
	proctest.WriteTree(t, dir, map[string]string{
		"tmp/hsperfdata_good/1":  string(capture(t, "jdk25.hsperfdata")),
		"tmp/hsperfdata_big/1":   strings.Repeat("x", maxPerfData+1),
		"tmp/hsperfdata_dir/1/x": "",
		"tmp/other/1":            "",
	})
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp/hsperfdata_fifo"), 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "tmp/hsperfdata_fifo/1"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "tmp/hsperfdata_link"), 0o700))
	require.NoError(t, os.Symlink("/tmp/hsperfdata_good/1", filepath.Join(dir, "tmp/hsperfdata_link/1")))
	fs := hostfs.At(t, proctest.FakeRoot(t, dir))
	us := hostproc.Process{PID: 7, NSpid: []int{7, 1}, UIDs: [4]uint32{uint32(os.Getuid())}}
	listed := nettest.Opens(t, filepath.Join(dir, "tmp"))
	root, err := fs.OpenRoot(7, "root", hostproc.Agent)
	require.NoError(t, err)
	listed()
	for name, want := range map[string]string{
		"good/1": "", "big/1": "malformed", "dir/1": "not a regular file", "fifo/1": "not a regular file", "link/1": "hsperfdata_link/1",
		"none/1": ErrNoPerfData.Error(),
	} {
		f, err := findPerfData(root, us, []string{"hsperfdata_" + name})
		if want == "" {
			require.NoError(t, err)
			jvm, err := f.Read()
			require.NoError(t, err)
			require.Equal(t, "25.0.3", jvm.Version)
			require.NoError(t, f.Close())
			continue
		}
		require.ErrorContains(t, err, want, name)
	}
	them := us
	them.UIDs = [4]uint32{12345, 12345, 12345, 12345}
	_, err = findPerfData(root, them, []string{"hsperfdata_good/1"})
	require.Error(t, err, "a file of another user")
	root.Close()
	require.Zero(t, listed(), "anybody may fill /tmp")
}

// FuzzMapped reads lists of mappings, whose paths are the process's choice: what
// is taken for performance data is the process's own pid, one folder deep.
func FuzzMapped(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /tmp/hsperfdata_root/42\n"))
	m.Add([]byte("7f00-7f01 rw-s 00000000 00:31 7 /tmp/hsperfdata_a/../../etc/42 (deleted)\n/hsperfdata_/hsperfdata_x/42\n"))
	m.Fuzz(func(t *testing.T, maps []byte) {
		found, err := mappedPerfData(bytes.NewReader(maps), hostproc.Process{PID: 42})
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(found), maxMapped)
		for _, name := range found {
			require.True(t, strings.HasPrefix(name, "hsperfdata_") && strings.HasSuffix(name, "/42"), name)
			require.Equal(t, 1, strings.Count(name, "/"), name)
		}
	})
}
