package examine

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// A process that ends while its files are read may be another one by then: what was
// read is given up, whatever has its number now.
func TestProcessThatEndsWhileItIsRead(t *testing.T) {
	dir := t.TempDir()
	jvmtest.WriteFiles(t, dir, map[string]string{"conf/server.xml": `<Server><Service><Connector port="8080"/></Service></Server>`})
	cmd, in := startJava(t, dir, "java", "-Dcatalina.base="+dir, BootstrapClass, "start")
	p, err := hostFS(t).Process(cmd.Process.Pid)
	require.NoError(t, err)

	s, err := newSubject(hostFS(t), Request{PID: p.PID, StartTime: p.StartTime})
	require.NoError(t, err)
	defer s.handles.Close()
	e, err := s.examine()
	require.NoError(t, err)
	require.NotEmpty(t, e.Found.Connectors)

	ending, err := newSubject(hostFS(t), Request{PID: p.PID, StartTime: p.StartTime})
	require.NoError(t, err)
	defer ending.handles.Close()
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	_, err = ending.examine()
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

// A pid with another start time is another process: nothing of it is opened.
func TestAnotherProcessWithThePID(t *testing.T) {
	p, err := hostFS(t).Process(os.Getpid())
	require.NoError(t, err)
	_, err = newSubject(hostFS(t), Request{PID: p.PID, StartTime: p.StartTime - 1})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

// TestUnreadableEnvironment: values from lower sources are said to be uncertain.
func TestUnreadableEnvironment(t *testing.T) {
	dir := t.TempDir()
	jvmtest.WriteZip(t, filepath.Join(dir, "app.jar"),
		[]string{jvmtest.Manifest, "BOOT-INF/classes/application.properties", "BOOT-INF/lib/tomcat-embed-core-10.1.55.jar"},
		map[string]string{
			jvmtest.Manifest: "Main-Class: org.springframework.boot.loader.launch.JarLauncher\nSpring-Boot-Version: 3.5.16\n",
			"BOOT-INF/classes/application.properties":    "server.tomcat.accept-count=11\n",
			"BOOT-INF/lib/tomcat-embed-core-10.1.55.jar": "PK",
		})
	cmd, _ := startJava(t, dir, "java", "-jar", "app.jar", "--server.tomcat.max-connections=99")
	p, err := hostFS(t).Process(cmd.Process.Pid)
	require.NoError(t, err)
	subject, err := newSubject(hostFS(t), Request{PID: p.PID, StartTime: p.StartTime})
	require.NoError(t, err)
	defer subject.handles.Close()
	target := observe(subject)
	target.env = nil
	f := identify(target)
	require.Len(t, f.Connectors, 1)
	require.Contains(t, f.Connectors[0].AcceptCount.Note, "uncertain")
	require.Contains(t, f.Connectors[0].MaxThreads.Note, "uncertain")
	require.Empty(t, f.Connectors[0].MaxConnections.Note)
}

// javaVariable makes this program a process that waits for the end of its input.
const javaVariable = "TCPDIAG_EXAMINED"

func TestMain(m *testing.M) {
	if os.Getenv(javaVariable) == "" {
		os.Exit(m.Run())
	}
	fmt.Print("!")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startJava starts a process that has a JVM's command line; it ends with its input, and
// with the test.
func startJava(t *testing.T, dir string, args ...string) (*exec.Cmd, io.Closer) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args, cmd.Dir, cmd.Env = args, dir, []string{javaVariable + "=1"}
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	proctest.Run(t, cmd)
	_, err = out.Read(make([]byte, 1)) // it is what it seems to be
	require.NoError(t, err)
	return cmd, in
}

func hostFS(t *testing.T) hostproc.FS {
	t.Helper()
	proc := hostfs.Real(t)
	return proc
}
