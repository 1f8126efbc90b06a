package threaddump

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// needVirtual has the program that starts virtual threads, and a Java that can.
func needVirtual(t *testing.T) (java, classes string) {
	t.Helper()
	needJDK(t)
	homes, err := filepath.Glob("/usr/lib/jvm/*/lib/jrt-fs.jar")
	require.NoError(t, err)
	for _, file := range homes {
		home := filepath.Dir(filepath.Dir(file))
		dir := t.TempDir()
		//nolint:gosec // a JDK that is installed here
		if exec.CommandContext(t.Context(), filepath.Join(home, "bin/javac"), "--release", "21", "-d", dir, "testdata/Virtual.java").Run() == nil {
			return filepath.Join(home, "bin/java"), dir
		}
	}
	t.Skip("needs a JDK of 21 or newer in /usr/lib/jvm")
	return "", ""
}

// Virtual threads that wait are asked for apart, and the JVM's /tmp is left as it was.
func TestVirtualThreadsThatWait(t *testing.T) {
	java, classes := needVirtual(t)
	t.Setenv("TCPDIAG_TEST_JAVA", java)
	for _, n := range []int{0, 50, maxThreads + 5000} {
		v := begin(t, nil, "-Xmx512m", "-Xrs", "-cp", classes, "Virtual", strconv.Itoa(n))
		v.up()
		stacks, err := v.asker().Ask(t.Context(), v.key())
		require.NoError(t, err)
		require.Equal(t, n > 0, stacks.VirtualShown)
		require.Equal(t, min(n, maxThreads), stacks.Virtual)
		require.Equal(t, n > maxThreads, stacks.Cut)
		if n > 0 {
			require.Equal(t, min(n, maxThreads), stacks.BusyGroup().Threads)
			require.Equal(t, "Virtual.find", stacks.BusyGroup().Application)
		}
		left, err := filepath.Glob("/tmp/.tcpdiag_" + strconv.Itoa(v.Process.Pid) + "_*")
		require.NoError(t, err)
		require.Empty(t, left)
		v.lives()
	}
}

// A JVM whose writing is not waited for fails at its pipe, and writes no file.
func TestWhoGivesUpLeavesNothingToWriteTo(t *testing.T) {
	java, classes := needVirtual(t)
	t.Setenv("TCPDIAG_TEST_JAVA", java)
	v := begin(t, nil, "-Xmx512m", "-Xrs", "-cp", classes, "Virtual", "20000")
	v.up()
	j, err := find(v.proc, v.key())
	require.NoError(t, err)
	d, err := j.openDoor()
	require.NoError(t, err)
	defer d.close()

	p, err := d.newPipe()
	require.NoError(t, err)
	conn, err := d.connect(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	p.remove()
	_, err = request(conn, "jcmd", "Thread.dump_to_file -overwrite -format=plain "+p.path)
	require.NoError(t, err, "the command is answered; that it failed is in the text")
	_, err = os.Lstat("/tmp/" + p.folder)
	require.ErrorIs(t, err, os.ErrNotExist)

	p, err = d.newPipe() // as before, in the middle of what it writes
	require.NoError(t, err)
	second, err := d.connect(t.Context())
	require.NoError(t, err)
	defer second.Close()
	go func() {
		_, _ = io.CopyN(io.Discard, p.out, 1<<20)
		p.remove()
	}()
	_, err = request(second, "jcmd", "Thread.dump_to_file -overwrite -format=plain "+p.path)
	require.NoError(t, err)

	stacks, err := v.asker().Ask(t.Context(), v.key())
	require.NoError(t, err)
	require.Equal(t, 20000, stacks.Virtual, "it answers the next one")
	v.lives()
}

// What is read of the scheduler is what the JVM's own bean says at the same time.
func TestCarriersByTheJVMsOwnAccount(t *testing.T) {
	java, classes := needVirtual(t)
	//nolint:gosec // the JDK's own
	out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(java), "javac"), "--release", "21", "-d", classes, "testdata/Carriers.java").CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Setenv("TCPDIAG_TEST_JAVA", java)
	v := begin(t, nil, "-Xrs", "-Djdk.virtualThreadScheduler.parallelism=2", "-Djdk.virtualThreadScheduler.maxPoolSize=2", "-cp", classes, "Carriers", "20")
	bean, err := v.out.ReadString('\n')
	require.NoError(t, err)
	v.up()
	stacks, err := v.asker().Ask(t.Context(), v.key())
	require.NoError(t, err)
	if strings.TrimSpace(bean) == "none" {
		require.Nil(t, stacks.Scheduler, "this JVM cannot say")
		return
	}
	s := stacks.Scheduler
	require.NotNil(t, s)
	require.Equal(t, strings.TrimSpace(bean), fmt.Sprintf("%d %d %d %d", s.Parallelism, s.Carriers, s.Mounted, s.Queued))
	require.True(t, s.Starved())
	v.lives()
}
