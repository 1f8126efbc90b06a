package discovery

import (
	"bytes"
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

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// shell are children that do what a script says.
func shell(script string) *Children {
	return &Children{deadline: time.Minute, command: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }}
}

// Whatever a child does, it is over within its deadline, and what it said is
// believed only if it has the agreed form.
func TestChildrenThatFail(t *testing.T) {
	valid := `{"Known":true,"Server":"jvm","Version":{},"Management":"","Connectors":null,"Missing":null,"Unavailable":null,"Files":null,"Numbers":[8080],"Failure":""}`
	_, _, err := shell("cat >/dev/null; echo '"+valid+"'").Examine(t.Context(), Request{PID: 1, StartTime: 1})
	require.NoError(t, err)
	for script, want := range map[string]string{
		"exit 3":                         "exit status 3",
		"kill -9 $$":                     "signal: killed",
		"true":                           "it is empty",
		"echo hello":                     "not of the form",
		"echo '" + valid + "{}'":         "something follows",
		"head -c 1000000 /dev/zero":      "more than",
		"cat /dev/zero":                  "more than",
		`echo '{"Server":"ssh"}'`:        "no such kind",
		`echo '{"Pot":1}'`:               "not of the form",
		`echo '{"Failure":"gone away"}'`: "gone away",
		"echo fatal error: runtime: out of memory >&2; exit 2": "MiB of memory",
	} {
		_, _, err := shell(script).Examine(t.Context(), Request{PID: 1, StartTime: 1})
		require.ErrorContains(t, err, want, script)
		require.NotContains(t, err.Error(), "ssh", "what it said is not repeated")
	}
}

// A child that says nothing is killed at the deadline, with nothing left of it.
func TestChildThatIsSilent(t *testing.T) {
	before := openFiles(t)
	children := shell("echo $$ >&2; exec sleep 600")
	children.deadline = 100 * time.Millisecond
	_, _, err := children.Examine(t.Context(), Request{PID: 1, StartTime: 1})
	require.ErrorIs(t, err, errDeadline)
	all, _ := children.abandoned.Of("")
	require.Zero(t, all)
	require.Eventually(t, func() bool { return openFiles(t) <= before }, time.Minute, time.Millisecond, "those of other tests may be closed meanwhile")
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}

// When too many have not ended, no more are started.
func TestAbandonedChildrenAreBounded(t *testing.T) {
	children := &Children{command: func() *exec.Cmd { panic("started") }}
	children.abandoned.Add("uid 1", ofOneOwner)
	_, _, err := children.Examine(t.Context(), Request{1, 1, "uid 1"})
	require.ErrorIs(t, err, errAbandoned)
	require.NoError(t, mayBegin(&children.abandoned, "uid 2"), "others' are begun")
	children.abandoned.Add("uid 2", ofOneOwner)
	_, _, err = children.Examine(t.Context(), Request{1, 1, "uid 3"})
	require.ErrorIs(t, err, errOthersHang, "and it is not said that its own files hang")
	children.abandoned.Add("uid 2", -ofOneOwner)
	require.NoError(t, mayBegin(&children.abandoned, "uid 3"))
}

func TestAnswerCrossesWhole(t *testing.T) {
	e := &Examination{
		Known: true, missing: []model.Unavailable{{What: "environ of pid 7", Why: "permission denied", How: "run as root"}},
		found: found{
			server: model.ServerJVM().Name, version: catalina.Version{Major: 9, Minor: 0, Patch: 117}, management: "http://[::1]:8081/actuator",
			jvmPorts:    map[uint16]bool{5005: true, 9010: true},
			unavailable: []model.Unavailable{{What: "x", Why: "y"}},
			connectors: []catalina.Connector{{
				Port: 8080, Scheme: "http", Endpoint: "nio", NamePrefix: "exec-", Line: 7,
				Connector: model.Connector{
					Server: model.ServerTomcat().Name, Framework: "spring-boot", Version: "9.0.117", FrameworkVersion: "3", Protocol: "http-nio", Executor: "e",
					TLS: true, HTTP2: true,
					MaxConnections:    &model.Setting[int]{Value: -1, Kind: model.SourceFile, Source: "a", Note: "b", Uncertain: true},
					ConnectionTimeout: &model.Setting[time.Duration]{Value: time.Second, Kind: model.SourceDefault, Source: "default"},
					VirtualThreads:    &model.Setting[bool]{Value: true, Kind: model.SourceEnv, Source: "env X"},
				},
			}},
		},
		files:   []fileStamp{{Name: "/x", Content: "ab"}, {Name: "/y", Denied: true}},
		numbers: []uint16{8443, 1},
	}
	text, err := e.encode()
	require.NoError(t, err)
	got, err := decode(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, e, got)
}

// What an examination has too much of is left out by the child.
func TestAnswerIsBounded(t *testing.T) {
	e := &Examination{found: found{server: model.ServerTomcat().Name}}
	for i := range 10_000 {
		e.missing = append(e.missing, model.Unavailable{What: fmt.Sprint(i, strings.Repeat("x", 10_000)), Why: "\x1b[31m\u202e\x00"})
		e.files = append(e.files, fileStamp{Name: fmt.Sprint("/", i, strings.Repeat("y", 400))})
		e.found.connectors = append(e.found.connectors, catalina.Connector{Connector: model.Connector{Server: model.ServerTomcat().Name, Executor: "\u009b\xff" + strings.Repeat("é", 1000)}})
	}
	text, err := e.encode()
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), maxAnswer)
	got, err := decode(bytes.NewReader(text))
	require.NoError(t, err)
	require.Len(t, got.found.connectors, maxConnectorsN)
	require.NotContains(t, fmt.Sprint(got), "\x1b")
}

func TestInvalidAnswers(t *testing.T) {
	setting := func(kind model.SourceKind, value int, source string) wireConnector {
		return wireConnector{Server: model.ServerTomcat().Name, MaxThreads: &model.Setting[int]{Value: value, Kind: kind, Source: source}}
	}
	for name, a := range map[string]answer{
		"control":     {Server: model.ServerJVM().Name, Missing: []model.Unavailable{{What: "a\x1bb"}}},
		"long":        {Server: model.ServerJVM().Name, Missing: []model.Unavailable{{Why: strings.Repeat("x", maxText+1)}}},
		"bidi":        {Server: model.ServerJVM().Name, Files: []fileStamp{{Name: "\u202e"}}},
		"many":        {Server: model.ServerJVM().Name, Missing: make([]model.Unavailable, maxUnavailable+2)},
		"numbers":     {Server: model.ServerJVM().Name, Numbers: make([]uint16, maxNumbers+1)},
		"connectors":  {Server: model.ServerJVM().Name, Connectors: make([]wireConnector, maxConnectorsN+1)},
		"range":       {Server: model.ServerJVM().Name, Connectors: []wireConnector{setting(model.SourceFile, 1<<40, "x")}},
		"kind":        {Server: model.ServerJVM().Name, Connectors: []wireConnector{setting(model.SourceActuator, 1, "x")}},
		"source":      {Server: model.ServerJVM().Name, Connectors: []wireConnector{setting(model.SourceFile, 1, "a\nb")}},
		"server":      {Server: model.ServerJVM().Name, Connectors: []wireConnector{{Server: "nginx"}}},
		"credentials": {Server: model.ServerJVM().Name, Management: "http://user:secret@127.0.0.1:80/"},
		"name":        {Server: model.ServerJVM().Name, Management: "http://localhost:80/"},
		"scheme":      {Server: model.ServerJVM().Name, Management: "file:///etc/passwd"},
		"version":     {Server: model.ServerJVM().Name, Version: catalina.Version{Major: -1}},
	} {
		text, err := json.Marshal(a)
		require.NoError(t, err)
		_, err = decode(bytes.NewReader(text))
		require.ErrorIs(t, err, errAnswer, name)
	}
}

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
	dir, err := os.MkdirTemp("", "root")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
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
			children := &Children{deadline: time.Minute, command: func() *exec.Cmd {
				cmd := exec.Command("/proc/self/exe", childArgument)
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, AmbientCaps: caps}
				return cmd
			}}
			d := NewDiscoverer(procFS(t), WithExaminer(children))
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
	require.Len(t, numbersIn([]string{strings.Repeat("1 ", 1000)}), maxNumbers)
}
