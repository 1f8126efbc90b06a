package discovery

import (
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func ports(numbers ...uint16) []match.Listening {
	out := make([]match.Listening, len(numbers))
	for i, n := range numbers {
		out[i] = match.Listening{Port: n, Address: netip.IPv6Unspecified(), SendQ: 50}
	}
	return out
}

// byPorts are connectors bound to all addresses, by what listens there.
func byPorts(servers map[uint16]string) match.Connectors {
	out := match.Connectors{}
	for port, server := range servers {
		out[netip.AddrPortFrom(netip.IPv6Unspecified(), port)] = &model.Connector{Server: server}
	}
	return out
}

// only discovers one port.
func only(t *testing.T, d *Discoverer, s *server, port uint16) (*model.Connector, []model.Unavailable) {
	t.Helper()
	connectors, unavailable := d.Discover(t.Context(), s.pid, s.start, ports(port))
	return connectorOn(t, connectors, port), unavailable
}

func TestKindsOfProcess(t *testing.T) {
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), "server.tomcat.threads.max=7\n")
	program, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(program, filepath.Join(dir, "java")))
	tests := map[string]struct {
		fake      fake
		server    string
		framework string
		threads   int
	}{
		"another process":        {fake{args: []string{"nginx", "-g"}}, "other", "", 0},
		"another JVM":            {fake{args: []string{"/opt/jdk/bin/java", "-jar", "/nowhere.jar"}}, "jvm", "", 0},
		"a main class":           {fake{args: []string{"java", "-cp", "x", "com.example.Main"}}, "jvm", "", 0},
		"standalone":             {fake{args: tomcatArgs(base(t, smallServer))}, "tomcat", "", 42},
		"jsvc":                   {fake{args: append([]string{"jsvc.exec", "-user", "tomcat", "-pidfile", "/run/x"}, tomcatArgs(base(t, smallServer))[1:]...)}, "tomcat", "", 42},
		"bootstrap.jar":          {fake{args: []string{"java", "-Dcatalina.home=" + base(t, smallServer), "-jar", "bin/bootstrap.jar", "start"}}, "tomcat", "", 42},
		"Spring Boot":            {fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir}, "tomcat", "spring-boot", 7},
		"Spring Boot, argument":  {fake{args: []string{"java", "-jar", "app.jar", "--server.tomcat.threads.max=8"}, Dir: dir}, "tomcat", "spring-boot", 8},
		"Spring Boot, variable":  {fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir, env: []string{"SERVER_TOMCAT_THREADS_MAX=9"}}, "tomcat", "spring-boot", 9},
		"by another name":        {fake{path: filepath.Join(dir, "java"), args: []string{"shop", "-jar", "app.jar"}, Dir: dir}, "tomcat", "spring-boot", 7},
		"threads alone":          {fake{args: []string{"java", "x"}, Threads: []string{"http-nio-8080-e", "http-nio-8080-A"}}, "tomcat", "", 0},
		"threads of another":     {fake{args: []string{"java", "x"}, Threads: []string{"http-nio-8081-e"}}, "jvm", "", 0},
		"threads without a port": {fake{args: []string{"java", "x"}, Threads: []string{"https-jsse-nio-", "https-jsse-nio-", "https-jsse-nio-"}}, "tomcat", "", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := startFake(t, tt.fake)
			c, unavailable := only(t, inChildren(t), s, 8080)
			require.Equal(t, tt.server, c.Server)
			if tt.server != "tomcat" {
				require.Empty(t, unavailable, "nobody asked")
			}
			require.Equal(t, tt.framework, c.Framework)
			if tt.threads != 0 {
				require.NotNil(t, c.MaxThreads)
				require.Equal(t, tt.threads, c.MaxThreads.Value)
			} else {
				require.Nil(t, c.MaxThreads, "nothing is claimed that is not known")
			}
			if tt.server == "tomcat" && tt.threads == 0 {
				require.Equal(t, 1, *c.PoolThreads)
				require.Equal(t, model.SourceKernel, c.AcceptCount.Kind)
			}
		})
	}
}

func TestNothingIsReadAgain(t *testing.T) {
	for name, f := range map[string]func() fake{
		"standalone": func() fake { return fake{args: tomcatArgs(base(t, smallServer))} },
		"Spring Boot": func() fake {
			dir := t.TempDir()
			fatJar(t, filepath.Join(dir, "app.jar"), "")
			return fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startFake(t, f())
			counted := &counting{Here: examine.Here{Proc: hostfs.Real(t)}}
			d := NewDiscoverer(hostfs.Real(t), WithExaminer(counted))
			c, _ := only(t, d, s, 8080)
			e := d.entries[s.pid]
			for range 5 {
				again, _ := only(t, d, s, 8080)
				require.Equal(t, c, again)
			}
			require.Same(t, e, d.entries[s.pid])
			require.Equal(t, int32(1), counted.calls.Load())
		})
	}
}

func TestChangedFileOfAYoungProcess(t *testing.T) {
	dir := base(t, smallServer)
	s := startFake(t, fake{args: tomcatArgs(dir)})
	clock := newClock(0)
	d := inChildren(t, WithClock(clock.now))
	only(t, d, s, 8080)
	write(t, filepath.Join(dir, "conf/server.xml"), `<Server><Service><Connector port="8080" maxThreads="43"/></Service></Server>`)
	clock.move(youngEvery)
	c, unavailable := examinedAgain(t, d, s)
	require.Equal(t, 43, c.MaxThreads.Value, "it may still be starting")
	require.Empty(t, unavailable)
}

// TestChangedFileOfARunningServer: the server runs with what it has read.
func TestChangedFileOfARunningServer(t *testing.T) {
	dir := base(t, smallServer)
	s := startFake(t, fake{args: tomcatArgs(dir)})
	time := newClock(2 * examine.Settled)
	d := inChildren(t, WithClock(time.now))
	only(t, d, s, 8080)
	for _, change := range []func(){
		func() { write(t, filepath.Join(dir, "conf/server.xml"), `<Server/>`) },
		func() { require.NoError(t, os.Remove(filepath.Join(dir, "conf/server.xml"))) },
		func() { write(t, filepath.Join(dir, "conf/catalina.properties"), `x=y`) },
	} {
		change()
		for range 2 {
			time.move(settledEvery)
			c, unavailable := examinedAgain(t, d, s)
			require.Equal(t, 42, c.MaxThreads.Value)
			require.NotEmpty(t, unavailable)
			require.Contains(t, unavailable[0].What, "server.xml")
			require.Contains(t, unavailable[0].Why, "changed")
		}
	}

	write(t, filepath.Join(dir, "conf/server.xml"), `<Server><Service><Connector port="8080" maxThreads="44"/></Service></Server>`)
	connectors, _ := d.Discover(t.Context(), s.pid, s.start+1, ports(8080)) // another process by now
	require.Nil(t, connectorOn(t, connectors, 8080).MaxThreads, "what is known is of the process before")

	s = startFake(t, fake{args: tomcatArgs(dir)})
	c, unavailable := only(t, d, s, 8080)
	require.Equal(t, 44, c.MaxThreads.Value)
	require.Empty(t, unavailable)
}

// TestHarmlessChanges: neither another mode nor another file in a folder that
// was listed changes what a file says.
func TestHarmlessChanges(t *testing.T) {
	dir := t.TempDir()
	fatJar(t, filepath.Join(dir, "app.jar"), "")
	write(t, filepath.Join(dir, "config/a/application.properties"), "server.tomcat.threads.max=9")
	s := startFake(t, fake{args: []string{"java", "-jar", "app.jar"}, Dir: dir})
	clock := newClock(2 * examine.Settled)
	d := inChildren(t, WithClock(clock.now))
	only(t, d, s, 8080)
	require.NoError(t, os.Chmod(filepath.Join(dir, "app.jar"), 0o600))
	write(t, filepath.Join(dir, "config/a/other"), "")
	write(t, filepath.Join(dir, "config/b/other"), "")
	clock.move(settledEvery)
	c, unavailable := examinedAgain(t, d, s)
	require.Equal(t, 9, c.MaxThreads.Value)
	require.Empty(t, unavailable)
}

func TestForgottenProcesses(t *testing.T) {
	s := startFake(t, fake{args: tomcatArgs(base(t, smallServer)), env: []string{"SECRET=x"}})
	clock := newClock(0)
	d := inChildren(t, WithClock(clock.now))
	only(t, d, s, 8080)
	clock.move(forgotten + time.Second)
	d.Discover(t.Context(), 1<<30, 1, nil)
	require.NotContains(t, d.entries, s.pid)
}

func TestFileWrittenAfterTheStart(t *testing.T) {
	dir := base(t, smallServer)
	s := startFake(t, fake{args: tomcatArgs(dir)})
	later := time.Now().Add(2 * examine.Settled)
	require.NoError(t, os.Chtimes(filepath.Join(dir, "conf/server.xml"), later, later))
	c, _ := only(t, inChildren(t), s, 8080)
	require.Equal(t, "uncertain: server.xml was written after the process had started", c.MaxThreads.Note)
	require.Empty(t, c.MaxConnections.Note, "a default does not come from it")
}

// TestInThePlaceOfServerXML: what stands in the place of server.xml must not hang,
// exhaust or mislead.
func TestInThePlaceOfServerXML(t *testing.T) {
	tests := map[string]struct {
		put func(t *testing.T, path string)
		why string
	}{
		"fifo":   {func(t *testing.T, path string) { require.NoError(t, unix.Mkfifo(path, 0o644)) }, "not a regular file"},
		"folder": {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o755)) }, "not a regular file"},
		"device": {func(t *testing.T, path string) { require.NoError(t, os.Symlink("/dev/zero", path)) }, "\"devtmpfs\": not a file system"},
		"node": {func(t *testing.T, path string) {
			nettest.Root(t)
			require.NoError(t, unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 7)))) // /dev/full
		}, "not a regular file"},
		"loop": {func(t *testing.T, path string) {
			require.NoError(t, os.Symlink(path+"2", path))
			require.NoError(t, os.Symlink(path, path+"2"))
		}, "too many levels"},
		"2 GB": {func(t *testing.T, path string) {
			write(t, path, "")
			require.NoError(t, os.Truncate(path, 2<<30))
		}, "larger than"},
		"nothing": {func(*testing.T, string) {}, "no such file"},
		"proc":    {func(t *testing.T, path string) { require.NoError(t, os.Symlink("/proc/self/fd/0", path)) }, "\"proc\": not a file system"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "conf"), 0o755))
			tt.put(t, filepath.Join(dir, "conf/server.xml"))
			opens := func() int { return 0 }
			if info, err := os.Lstat(filepath.Join(dir, "conf/server.xml")); err == nil && info.Mode().Type()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
				opens = nettest.Opens(t, filepath.Join(dir, "conf/server.xml"))
			}
			s := startFake(t, fake{args: tomcatArgs(dir), Threads: []string{"http-nio-8080-e"}})
			c, unavailable := only(t, inChildren(t), s, 8080) // not at its deadline
			require.Equal(t, "tomcat", c.Server, "the threads still tell")
			require.Nil(t, c.MaxConnections)
			require.Len(t, unavailable, 1)
			require.Equal(t, "conf/server.xml", unavailable[0].What)
			require.Contains(t, unavailable[0].Why, tt.why)
			require.NotEmpty(t, unavailable[0].How)
			require.Zero(t, opens(), "to open a device may be to act on it")
		})
	}
}

// TestContainer: another mount and pid namespace. The files exist nowhere else,
// and a symlink's absolute target is one of that namespace.
func TestContainer(t *testing.T) {
	nettest.Root(t)
	dir := t.TempDir()
	s := startFake(t, fake{
		ns: true, Mount: dir,
		Files: map[string]string{dir + "/real/server.xml": smallServer, dir + "/conf/x": ""},
		Links: map[string]string{dir + "/conf/server.xml": dir + "/real/server.xml"},
		args:  tomcatArgs(dir),
	})
	require.NoDirExists(t, filepath.Join(dir, "real"))
	c, unavailable := only(t, inChildren(t), s, 8080)
	require.Empty(t, unavailable)
	require.Equal(t, 42, c.MaxThreads.Value)
}

// TestChroot: paths, the working directory's too, begin at the process's root.
func TestChroot(t *testing.T) {
	nettest.Root(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "srv/app/conf/real.xml"), smallServer)
	require.NoError(t, os.Symlink("/srv/app/conf/real.xml", filepath.Join(root, "srv/app/conf/server.xml")))
	require.NoError(t, os.Symlink("/srv/../../../srv/app/conf", filepath.Join(root, "etc")))
	for name, args := range map[string][]string{
		"absolute": tomcatArgs("/srv/app"),
		"relative": tomcatArgs("."),
		"upwards":  tomcatArgs("../../../srv/app"),
		"-config":  append(tomcatArgs("/srv/app"), "-config", "/etc/server.xml"),
	} {
		t.Run(name, func(t *testing.T) {
			s := startFake(t, fake{Chroot: root, Dir: "/srv/app", args: args})
			c, unavailable := only(t, inChildren(t), s, 8080)
			require.Empty(t, unavailable)
			require.Equal(t, 42, c.MaxThreads.Value)
		})
	}
}

// asNobody starts a process and, as another user, finds out what it is.
func asNobody(t *testing.T, start func() *server) (c *model.Connector, unavailable map[string]model.Unavailable, pid string) {
	t.Helper()
	if os.Geteuid() == 0 {
		pid = fmtInt(start().pid)
	}
	nobody, pid := nettest.AsNobody(t, pid)
	if !nobody {
		return nil, nil, ""
	}
	p, err := hostfs.Real(t).Process(atoi(t, pid))
	require.NoError(t, err)
	c, list := only(t, inChildren(t), &server{pid: p.PID, start: p.StartTime}, 8080)
	unavailable = map[string]model.Unavailable{}
	for _, u := range list {
		unavailable[u.What] = u
	}
	return c, unavailable, pid
}

// TestAsAnotherUser: what is left is the command line, the threads and the
// kernel, and each thing that is missing has a name.
func TestAsAnotherUser(t *testing.T) {
	c, unavailable, pid := asNobody(t, func() *server {
		return startFake(t, fake{args: tomcatArgs(base(t, smallServer)), Threads: []string{"http-nio-8080-e", "http-nio-8080-A"}})
	})
	if c == nil {
		return
	}
	require.Equal(t, "tomcat", c.Server)
	require.Equal(t, "http-nio", c.Protocol)
	require.Equal(t, 1, *c.PoolThreads)
	require.Equal(t, 50, c.AcceptCount.Value)
	require.Nil(t, c.MaxConnections)
	for _, what := range []string{"environ of pid " + pid, "working directory of pid " + pid} {
		require.Contains(t, unavailable, what)
		require.Equal(t, "permission denied", unavailable[what].Why)
		require.Equal(t, "run as uid 0 and gid 0, or with CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SETUID and CAP_SETGID", unavailable[what].How)
	}
	require.Contains(t, unavailable["conf/server.xml"].Why, "permission denied")
}

// TestWorldReadableFiles: in our own mount namespace, files that anybody may
// read are read.
func TestWorldReadableFiles(t *testing.T) {
	c, unavailable, pid := asNobody(t, func() *server {
		dir := proctest.PublicDir(t)
		write(t, filepath.Join(dir, "conf/server.xml"), smallServer)
		return startFake(t, fake{args: tomcatArgs(dir)})
	})
	if c == nil {
		return
	}
	require.Equal(t, 42, c.MaxThreads.Value)
	require.Contains(t, unavailable, "environ of pid "+pid)
}

// TestPropertiesInAnUnreadEnvironment: what JAVA_TOOL_OPTIONS gives the server of
// another user is not seen; a default in its place is no more than a guess, and a
// port that only it can give is not "none".
func TestPropertiesInAnUnreadEnvironment(t *testing.T) {
	c, unavailable, pid := asNobody(t, func() *server {
		dir := proctest.PublicDir(t)
		write(t, filepath.Join(dir, "conf/server.xml"), `<Server><Service><Connector port="${http.port}"
			maxThreads="${max.threads:-400}" acceptCount="50" maxConnections="${max.connections}"/></Service></Server>`)
		return startFake(t, fake{
			args: tomcatArgs(dir, "-Dmax.connections=600"), Threads: []string{"http-nio-8080-e"},
			env: []string{"JAVA_TOOL_OPTIONS=-Dmax.threads=50 -Dhttp.port=8080"},
		})
	})
	if c == nil {
		return
	}
	require.Contains(t, unavailable, "environ of pid "+pid)
	require.Equal(t, 400, c.MaxThreads.Value)
	require.True(t, c.MaxThreads.Uncertain)
	require.Equal(t, "uncertain: the environment could not be read and may say otherwise", c.MaxThreads.Note)
	require.Equal(t, 600, c.MaxConnections.Value)
	require.False(t, c.MaxConnections.Uncertain, "-D")
	require.Equal(t, model.SourceFile, c.AcceptCount.Kind)
	require.False(t, c.AcceptCount.Uncertain)
}

// TestContainerAsAnotherUser: files of another mount namespace are not mixed up
// with our own of the same name.
func TestContainerAsAnotherUser(t *testing.T) {
	c, unavailable, pid := asNobody(t, func() *server {
		dir := base(t, `<Server><Service><Connector port="8080" maxThreads="1"/></Service></Server>`)
		return startFake(t, fake{
			ns: true, Mount: dir, Files: map[string]string{dir + "/conf/server.xml": smallServer},
			args: tomcatArgs(dir), Threads: []string{"http-nio-8080-e"},
		})
	})
	if c == nil {
		return
	}
	require.Nil(t, c.MaxThreads)
	require.Contains(t, unavailable, "files (root) of pid "+pid)
}

// TestBootAsAnotherUser: only the command line counts, as nothing that could
// not be read can beat it.
func TestBootAsAnotherUser(t *testing.T) {
	c, unavailable, _ := asNobody(t, func() *server {
		dir := t.TempDir()
		fatJar(t, filepath.Join(dir, "app.jar"), "server.tomcat.accept-count=11\n")
		return startFake(t, fake{
			args: []string{"java", "-Dserver.tomcat.threads.max=5", "-jar", "app.jar", "--server.tomcat.max-connections=99"},
			Dir:  dir, Threads: []string{"http-nio-8080-e"},
		})
	})
	if c == nil {
		return
	}
	require.Equal(t, "tomcat", c.Server)
	require.Equal(t, 99, c.MaxConnections.Value)
	require.Equal(t, 5, c.MaxThreads.Value)
	require.Equal(t, model.SourceKernel, c.AcceptCount.Kind)
	require.Nil(t, c.ConnectionTimeout)
	require.GreaterOrEqual(t, len(unavailable), 3)
}

func TestManyProcesses(t *testing.T) {
	d := NewDiscoverer(hostfs.Real(t))
	for i := range maxRemembered + 10 {
		d.Discover(t.Context(), 1<<30+i, 1, nil)
	}
	require.LessOrEqual(t, len(d.entries), maxRemembered)
}

func TestVanishedProcess(t *testing.T) {
	connectors, unavailable := inChildren(t).Discover(t.Context(), 1<<30, 1, ports(8080))
	require.Equal(t, "other", connectorOn(t, connectors, 8080).Server)
	require.Len(t, unavailable, 1)
	require.Equal(t, "configuration of pid 1073741824", unavailable[0].What)
	require.Contains(t, unavailable[0].Why, "no such process")
}

// connectorOn is the connector of the only socket on that port.
func connectorOn(t testing.TB, connectors match.Connectors, port uint16) *model.Connector {
	t.Helper()
	at := connectors.OnPort(port)
	require.Len(t, at, 1)
	return connectors[at[0]]
}

// A process's own hosts file is read, not this machine's, and of a URL there
// leaves the child only where it leads.
func TestBackendsOfAProcess(t *testing.T) {
	nettest.Root(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "etc/hosts"), "127.0.0.1 localhost\n203.0.113.7 db.shop db\n")
	fatJar(t, filepath.Join(root, "srv/app.jar"), "spring.datasource.url=jdbc:postgresql://app:s3cret@DB,unknown:6432/orders?password=s3cret\n"+
		"spring.datasource.hikari.maximum-pool-size=${SIZE}\nspring.data.redis.host=localhost\n")
	s := startFake(t, fake{Chroot: root, Dir: "/srv", args: []string{"java", "-jar", "app.jar"}, env: []string{"SIZE=13"}})
	c, unavailable := only(t, inChildren(t), s, 8080)
	require.Empty(t, unavailable)
	require.Equal(t, []model.Backend{
		{
			Name: "orders", At: []netip.AddrPort{netip.MustParseAddrPort("203.0.113.7:5432")}, Ports: []uint16{6432},
			Pool: &model.Pool{Library: "HikariCP", Setting: "spring.datasource.hikari.maximum-pool-size", Size: model.Setting[int]{
				Value: 13, Kind: model.SourceFile, Source: "application.properties in app.jar",
			}},
		},
		{Name: "redis", At: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:6379")}},
	}, c.Backends)
	require.NotContains(t, fmt.Sprintf("%+v", c), "s3cret")
}

// However many processes one owner starts, what is remembered is bounded, and another owner's stays.
func TestProcessesByChurn(t *testing.T) {
	proc := hostfs.Real(t)
	d := NewDiscoverer(proc)
	const beyond = 5_000_000 // the kernel's largest pid is 4,194,304: there are no such processes
	remember := func(pid int, owner string) {
		d.entry(pid, 1)
		d.entries[pid].Request = examine.Request{PID: pid, StartTime: 1, Owner: owner}
	}
	remember(beyond, "calm")
	for pid := range 5 * maxRemembered {
		remember(beyond+1+pid, "greedy")
		require.LessOrEqual(t, len(d.entries), maxRemembered)
	}
	require.Contains(t, d.entries, beyond)
	require.Equal(t, "calm", d.entries[beyond].Owner)
}

// With the capabilities of the DaemonSet, which cannot read a stranger's auxiliary
// vector, the stranger's private files are still read with its own rights.
func TestPrivateFilesWithTheDaemonSetsCapabilities(t *testing.T) {
	private := stranger(t, func(dir string) []string { return tomcatArgs(dir) }, map[string]string{"conf/server.xml": smallServer})
	require.NoError(t, os.Chmod(fmt.Sprintf("/proc/%d/cwd/conf/server.xml", private.pid), 0o600))
	children := examine.StartedBy(time.Minute, func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", childArgument)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Credential:  &syscall.Credential{Uid: 65534, Gid: 65534},
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SETUID, unix.CAP_SETGID},
		}
		return cmd
	})
	c, _ := only(t, NewDiscoverer(hostfs.Real(t), WithExaminer(children)), private, 8080)
	require.NotNil(t, c.MaxThreads)
	require.Equal(t, 42, c.MaxThreads.Value)
}
