package discovery

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
)

// fakeVariable makes the test program a process that looks like another one:
// its command line, environment, threads and files are what a test wants.
const fakeVariable = "TCPDIAG_TEST_FAKE"

// fake is what such a process does before it waits.
type fake struct {
	Threads []string          // names of threads
	Mount   string            // a folder to mount a tmpfs on, in a mount namespace of its own
	Files   map[string]string // written then
	Links   map[string]string // symlinks made then
	Chroot  string
	Dir     string // working directory afterwards

	path string   // of the program, "" for this one's own
	args []string // with argv[0]
	env  []string
	ns   bool // new mount and pid namespaces
	uid  uint32
	held []*os.File // open in it, too
}

// childArgument makes the test program a child that examines a process.
const childArgument = "test-discover-child"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArgument {
		proc, err := hostproc.NewFS("/proc")
		if err == nil {
			err = examine.Serve(proc, os.Stdin, os.Stdout)
		}
		if err != nil {
			panic(err)
		}
		return
	}
	spec, ok := os.LookupEnv(fakeVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var f fake
	if err := json.Unmarshal([]byte(spec), &f); err != nil {
		panic(err)
	}
	if err := f.become(); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func (f *fake) become() error {
	if f.Mount != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""); err != nil {
			return err
		}
		if err := syscall.Mount("tmpfs", f.Mount, "tmpfs", 0, "size=1m"); err != nil {
			return err
		}
	}
	for name, text := range f.Files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return err
		}
	}
	for name, to := range f.Links {
		if err := os.Symlink(to, name); err != nil {
			return err
		}
	}
	if f.Chroot != "" {
		if err := syscall.Chroot(f.Chroot); err != nil {
			return err
		}
	}
	if f.Dir != "" {
		if err := os.Chdir(f.Dir); err != nil {
			return err
		}
	}
	named := make(chan struct{})
	for _, name := range f.Threads {
		go func() {
			runtime.LockOSThread()
			text := append([]byte(name), 0)
			_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
			named <- struct{}{}
			select {}
		}()
		<-named
	}
	return nil
}

// startFake starts such a process; it ends with the test.
func startFake(t testing.TB, f fake) *server {
	t.Helper()
	spec, err := json.Marshal(f)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), cmp.Or(f.path, "/proc/self/exe"))
	cmd.Args = f.args
	cmd.Env = append([]string{fakeVariable + "=" + string(spec)}, f.env...)
	cmd.Dir, cmd.ExtraFiles = f.Dir, f.held
	if f.Chroot != "" || f.Mount != "" {
		cmd.Dir = ""
	}
	if f.ns {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	}
	if f.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: f.uid, Gid: f.uid}}
	}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	p, err := hostfs.Real(t).Process(cmd.Process.Pid)
	require.NoError(t, err)
	return &server{pid: p.PID, start: p.StartTime}
}

// tomcatArgs is a command line of catalina.sh.
func tomcatArgs(base string, more ...string) []string {
	args := []string{"/usr/bin/java", "-Djava.util.logging.config.file=x", "-classpath", "/home/bin/bootstrap.jar", "-Dcatalina.base=" + base, "-Dcatalina.home=/nowhere/apache-tomcat-9.0.117"}
	return append(append(args, more...), "org.apache.catalina.startup.Bootstrap", "start")
}

const smallServer = `<Server><Service><Connector port="8080" maxThreads="42" acceptCount="50"/></Service></Server>`

// base is a catalina.base with that server.xml.
func base(t testing.TB, serverXML string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "conf", "server.xml"), serverXML)
	return dir
}

func write(t testing.TB, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
}

// fatJar is a small executable jar of Spring Boot.
func fatJar(t testing.TB, name, properties string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, entry := range []struct{ name, text string }{
		{"META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\nMain-Class: org.springframework.boot.loader.launch.JarLauncher\r\nStart-Class: app.Main\r\nSpring-Boot-Version: 3.5.16\r\nSpring-Boot-Classes: BOOT-INF/classes/\r\nSpring-Boot-Lib: BOOT-INF/lib/\r\n\r\n"},
		{"BOOT-INF/classes/application.properties", properties},
		{"BOOT-INF/lib/spring-boot-3.5.16.jar", "PK"},
		{"BOOT-INF/lib/tomcat-embed-core-10.1.55.jar", "PK"},
	} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: entry.name, Method: zip.Store})
		require.NoError(t, err)
		_, err = w.Write([]byte(entry.text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	write(t, name, b.String())
}

// clock stands still until a test moves it. An examination that outlasts the call
// that began it reads it meanwhile.
type clock struct {
	start time.Time
	ahead atomic.Int64 // ns
}

func newClock(ahead time.Duration) *clock {
	c := &clock{start: time.Now()}
	c.move(ahead)
	return c
}

func (c *clock) now() time.Time { return c.start.Add(time.Duration(c.ahead.Load())) }

func (c *clock) move(d time.Duration) { c.ahead.Add(int64(d)) }

func fmtInt(n int) string { return strconv.Itoa(n) }

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}
