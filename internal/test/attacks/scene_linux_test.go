package attacks

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	hostilePort = 18080
	honestPort  = 18081
	honestLimit = 77
	queued      = 3
)

// scene is an agent next to an honest server with three clients in its queue, and
// a control. The attackers come into the same network namespace.
type scene struct {
	*agent
	viewer  viewer
	java    string
	pods    *nettest.NS
	control *control

	oldest time.Duration // the snapshot that was the oldest when it was asked for
	limits bool          // the honest server's have been found

	clients byte // further addresses of the agent's namespace
}

func newScene(t *testing.T, v viewer, program string, targets ...string) *scene {
	t.Helper()
	s := &scene{viewer: v, java: asJava(t), pods: nettest.Namespace(t), control: startControl(t)}
	home := s.pods
	if v.caps != nil {
		home = nettest.Namespace(t)
	}
	s.honest(t)
	s.agent = startAgent(t, home, v, program, targets...)
	return s
}

// asJava is this program under another name, where everybody may run it.
func asJava(t *testing.T) string {
	t.Helper()
	self, err := os.Open("/proc/self/exe")
	require.NoError(t, err)
	defer func() { _ = self.Close() }()
	copied, err := os.OpenFile(filepath.Join(public(t), "java"), os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(copied, self)
	require.NoError(t, err)
	require.NoError(t, copied.Close())
	return copied.Name()
}

// honest is a server with a limit that only its own file says.
func (s *scene) honest(t *testing.T) {
	t.Helper()
	a := attack{
		args: []string{"-jar", "app.jar"},
		files: map[string]string{
			"app.jar":                bootJar(nil),
			"application.properties": fmt.Sprintf("server.port=%d\nserver.tomcat.max-connections=%d\n", honestPort, honestLimit),
		},
		part: part{From: honestPort, To: honestPort + 1, Threads: []string{fmt.Sprintf("http-nio-%d-e", honestPort)}},
	}
	a.start(t, s.pods, s.java)
	s.queue(t, queued)
}

func (s *scene) queue(t *testing.T, n int) {
	t.Helper()
	s.pods.Do(func() { nettest.Queue(t, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), honestPort), n) })
}

// look reads one snapshot: how old it was when it was asked for, that the honest
// server is in it as it is, and that nothing is said which must not be.
func (s *scene) look(t *testing.T) *document {
	t.Helper()
	asked := time.Now()
	text := s.get(t, "/api/v1/snapshot")
	requireDiscreet(t, text)
	d := decode(t, text)
	s.oldest = max(s.oldest, asked.Sub(d.Time))
	found := false
	for _, l := range d.Listeners {
		if l.Port != honestPort || !s.has(t, l.NetNS) {
			continue
		}
		found = true
		require.Equal(t, queued, l.AcceptQueue.Length, "the honest server's queue")
		known := l.Connector.MaxConnections != nil && l.Connector.MaxConnections.Value == honestLimit
		require.True(t, known || !s.limits, "the honest server's limit was known already: %v", d.Unavailable)
		s.limits = known
	}
	require.True(t, found, "the honest server")
	return d
}

// has says whether a network namespace is the scene's: others on the machine may use the same ports.
func (s *scene) has(t *testing.T, netns uint64) bool {
	t.Helper()
	var stat unix.Stat_t
	require.NoError(t, unix.Stat(s.pods.Path(), &stat))
	return netns == 0 || netns == stat.Ino
}

// until looks until what an attack must lead to is there.
func (s *scene) until(t *testing.T, a attack) string {
	t.Helper()
	var last *document
	require.True(t, a.says != "" || a.threads != 0)
	says := regexp.MustCompile(a.says)
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		last = s.look(t)
		if said := last.find(says, a.threads); said != "" && s.limits {
			return said
		}
	}
	require.Fail(t, "never said", "%s; the honest server's limit is known: %v; %v", says, s.limits, last.Unavailable)
	return ""
}

func (d *document) find(says *regexp.Regexp, threads int) string {
	for _, l := range d.Listeners {
		if most := l.Connector.MaxThreads; threads != 0 && l.Port == hostilePort && most != nil && most.Value == threads {
			return fmt.Sprintf("its limit of %d threads", threads)
		}
	}
	if threads != 0 {
		return ""
	}
	for _, u := range d.Unavailable {
		if text := u.What + ": " + u.Why; says.MatchString(text) {
			return text
		}
	}
	return ""
}

// What no output may ever have: a text and a number of files that the attackers
// cannot read, and of their own.
const (
	secret = "TOPSECRET"
	canary = "87654321"
)

func requireDiscreet(t *testing.T, text string) {
	t.Helper()
	for _, word := range []string{secret, canary, "\x1b", "\u009b", "\u202e", "\x7f"} {
		require.False(t, strings.Contains(text, word), "%q: %.2000s", word, text)
	}
}

// attack is a hostile process.
type attack struct {
	args    []string
	env     []string
	files   map[string]string
	prepare func(t *testing.T, dir string) (args []string) // what it takes, as root; then args count for nothing
	part    part
	says    string // what the agent must say of it, which shows that it came so far
	threads int    // or the maximum of threads that it must find

	omitted   float64 // or how many of its listeners are more than are exported
	elsewhere bool    // it is in a network namespace of its own

	behind []string // a command line that runs the attacker
	user   string   // nobody if empty
}

// start runs the attacker as nobody in a folder of its own, and says its pid.
func (a attack) start(t *testing.T, ns *nettest.NS, java string) int {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(java), "pod")
	require.NoError(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	for name, text := range a.files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	line := a.args
	if a.prepare != nil {
		line = a.prepare(t, dir)
	}
	args := slices.Concat([]string{"--net=" + ns.Path(), "--setuid", cmp.Or(a.user, nobody), "--setgid", cmp.Or(a.user, nobody), "--"}, a.behind, []string{java}, line)
	if a.part.From == 0 {
		a.part.From, a.part.To, a.part.Threads = hostilePort, hostilePort+1, []string{fmt.Sprintf("http-nio-%d-e", hostilePort)}
	}
	cmd := exec.CommandContext(t.Context(), "nsenter", args...)
	cmd.Dir = dir
	cmd.Env = append([]string{a.part.variable(), "PATH=" + os.Getenv("PATH")}, a.env...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	out, written, err := os.Pipe()
	require.NoError(t, err)
	defer func() { _ = out.Close() }()
	cmd.Stdout = written
	require.NoError(t, cmd.Start())
	_ = written.Close()
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	require.NoError(t, out.SetReadDeadline(time.Now().Add(2*time.Minute)))
	_, err = io.ReadFull(out, make([]byte, len("ready\n")))
	require.NoError(t, err, "the attacker did not start")
	return cmd.Process.Pid
}

// seenBy is what must be said where an attack comes by the environment: without
// CAP_DAC_READ_SEARCH that of other users cannot be read.
func (a attack) seenBy(v viewer) attack {
	if a.env != nil && v.caps != nil {
		a.says = `environ of pid \d+: permission denied`
	}
	return a
}
