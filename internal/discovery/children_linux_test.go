package discovery

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// stranger is a process of another user, in a folder of its own that it can reach.
func stranger(t *testing.T, args func(dir string) []string, files map[string]string) *server {
	t.Helper()
	nettest.Root(t)
	dir, err := os.MkdirTemp("", "stranger")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	java := filepath.Join(dir, "java")
	require.NoError(t, os.WriteFile(java, program, 0o755))
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, 12345, 12345)
	}))
	return startFake(t, fake{path: java, args: args(dir), Dir: dir, uid: 12345, Threads: []string{"http-nio-8080-e"}})
}

const secret = "TOPSECRET"

// rootOnly is a file of root's alone.
func rootOnly(t *testing.T, name, text string) string {
	t.Helper()
	dir := proctest.PublicDir(t)
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// What a process names is read with its own rights: its own private files are,
// root's are not, whatever names them.
func TestNothingIsReadForAStranger(t *testing.T) {
	nettest.Root(t)
	properties := rootOnly(t, "secret.properties", "server.tomcat.threads.max=77\nserver.tomcat.max-connections="+secret+"\n")
	xml := rootOnly(t, "server.xml", strings.ReplaceAll(smallServer, "42", "77"))
	tests := map[string]struct {
		args  func(dir string) []string
		files map[string]string
		own   int // maxThreads of its own file, read
	}{
		"its own":              {func(dir string) []string { return tomcatArgs(dir) }, map[string]string{"conf/server.xml": smallServer}, 42},
		"server.xml of root's": {func(dir string) []string { return append(tomcatArgs(dir), "-config", xml) }, nil, 0},
		"catalina.config": {
			func(dir string) []string { return tomcatArgs(dir, "-Dcatalina.config=file://"+properties) },
			map[string]string{"conf/server.xml": strings.Replace(smallServer, "42", "${server.tomcat.threads.max}", 1)},
			0,
		},
		"import": {func(string) []string {
			return []string{"java", "-cp", ".", "-jar", "app.jar", "--spring.config.import=file:" + properties, "--server.tomcat.accept-count=9"}
		}, nil, 0},
		"configtree of proc": {func(string) []string {
			return []string{"java", "-jar", "app.jar", "--spring.config.import=configtree:/proc/1/", "--server.tomcat.accept-count=9"}
		}, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := stranger(t, tt.args, tt.files)
			c, unavailable := only(t, inChildren(t), s, 8080)
			require.Equal(t, "tomcat", c.Server)
			if tt.own != 0 {
				require.Equal(t, tt.own, c.MaxThreads.Value)
				return
			}
			if c.MaxThreads != nil {
				require.NotEqual(t, 77, c.MaxThreads.Value)
			}
			text, err := json.Marshal([]any{c, unavailable})
			require.NoError(t, err)
			require.NotContains(t, string(text), secret)
		})
	}
}

// In the place of a file that is read there can be one that never answers.
func TestFileThatNeverAnswers(t *testing.T) {
	silent := nettest.SilentFileSystem(t)
	for name, path := range map[string]string{"FUSE": silent + "/server.xml", "kmsg": "/proc/kmsg", "console": "/dev/console"} {
		t.Run(name, func(t *testing.T) {
			s := startFake(t, fake{args: append(tomcatArgs(t.TempDir()), "-config", path), Threads: []string{"http-nio-8080-e"}})
			c, unavailable := only(t, inChildren(t), s, 8080)
			require.Equal(t, "tomcat", c.Server)
			require.Contains(t, fmt.Sprint(unavailable), "not a file system that is read")
		})
	}
}

// With capabilities to look anywhere, but not to become the process's user, only
// what every user may read is read, and that is said.
func TestChildHasNoPowersOfOurs(t *testing.T) {
	nettest.Root(t)
	for name, caps := range map[string][]uintptr{
		"SYS_ADMIN and SYS_PTRACE": {unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE},
		"DAC_READ_SEARCH as well":  {unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_DAC_READ_SEARCH},
	} {
		t.Run(name, func(t *testing.T) {
			private := stranger(t, func(dir string) []string { return tomcatArgs(dir) }, map[string]string{"conf/server.xml": smallServer})
			require.NoError(t, os.Chmod(fmt.Sprintf("/proc/%d/cwd/conf/server.xml", private.pid), 0o600))
			children := examine.StartedBy(time.Minute, func() *exec.Cmd {
				cmd := exec.Command("/proc/self/exe", childArgument)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: caps}
				return cmd
			})
			d := NewDiscoverer(hostfs.Real(t), WithExaminer(children))
			c, unavailable := only(t, d, private, 8080)
			require.Nil(t, c.MaxThreads)
			require.Contains(t, fmt.Sprint(unavailable), "files that not every user may read")
			require.Contains(t, fmt.Sprint(unavailable), "CAP_SETUID and CAP_SETGID")
		})
	}
}

// The numbers of a command line come from a child too.
func TestNumbers(t *testing.T) {
	s := stranger(t, func(string) []string {
		return []string{"java", "-jar", "app.jar", "--server.port=8443", "x65536y007", "0"}
	}, nil)
	d := inChildren(t)
	require.Eventually(t, func() bool { // nil while the child has not answered
		return slices.Equal([]uint16{8443, 7}, d.Numbers(s.pid, s.start))
	}, time.Minute, time.Millisecond)
	require.Nil(t, inChildren(t).Numbers(s.pid, s.start+1), "another process")
}
