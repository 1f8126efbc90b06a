package systemd

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Where the packages put things.
const (
	unitDir    = "usr/lib/systemd/system/"
	dropIns    = "/etc/systemd/system/tcpdiag.service.d/"
	configFile = "/etc/tcpdiag/tcpdiag.yml"
	flagsFile  = "/etc/default/tcpdiag"
)

// tcpdiag builds the program as it is released and returns its bytes.
func tcpdiag(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tcpdiag")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", out, "../../cmd/tcpdiag")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return content(t, out)
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// installed is what the packages install, without a package manager.
func installed(t *testing.T) files {
	return files{
		"usr/bin/tcpdiag":           tcpdiag(t),
		unitDir + "tcpdiag.service": content(t, "tcpdiag.service"),
		unitDir + "tcpdiag.socket":  content(t, "tcpdiag.socket"),
		configFile:                  content(t, "../config/tcpdiag.yml"),
		flagsFile:                   content(t, "tcpdiag.default"),
		// In a network namespace that systemd makes.
		unitDir + "apart.service": `[Service]
Type=exec
User=app
Group=app
PrivateNetwork=yes
ExecStart=/usr/bin/tcpdiag agent --web.listen-address 127.0.0.1:18090 --all
`,
		// A server of another user that is to be seen: an agent, for want of
		// anything smaller, that stops accepting when it is sent SIGSTOP.
		unitDir + "app.service": `[Service]
Type=exec
User=app
Group=app
ExecStart=/usr/bin/tcpdiag agent --web.listen-address 127.0.0.1:18080 --all
`,
	}
}

const addUser = `grep -q ^app: /etc/passwd || { echo app:x:4711:4711::/:/bin/false >>/etc/passwd; echo app:x:4711: >>/etc/group; }
`

// One machine for all of it: each part restarts the agent in another way.
func TestUnit(t *testing.T) {
	needSystemd(t)
	m := boot(t, installed(t), addUser)
	m.run("systemctl", "start", "app")
	m.queue(3)

	t.Run("verified", func(t *testing.T) { m.in(t).verify() })
	t.Run("as nobody in particular", func(t *testing.T) {
		m := m.in(t)
		m.write(configFile, "targets: [{port: 18080}]\n")
		m.run("systemctl", "start", "tcpdiag")
		m.confined("0000000000000000")
		l := m.listener()
		require.Equal(t, 3, l.AcceptQueue.Length, "what anybody may see")
		require.Nil(t, l.Process, "the owner is not for everybody to see")
	})
	t.Run("all users", func(t *testing.T) {
		m := m.in(t)
		m.dropIn("all-users.conf", nil)
		m.confined("00000000000800c4") // CAP_DAC_READ_SEARCH is 2, CAP_SETGID 6, CAP_SETUID 7, CAP_SYS_PTRACE 19
		m.sees()
	})
	t.Run("the same user", func(t *testing.T) {
		m := m.in(t)
		m.dropIn("same-user.conf", strings.NewReplacer("=tomcat", "=app"))
		m.confined("0000000000000000")
		require.Equal(t, "4711", m.status("Uid"))
		m.sees()
	})
	t.Run("clients", func(t *testing.T) {
		m := m.in(t)
		m.dropIn("clients.conf", nil)
		m.confined("0000000000002000") // CAP_NET_RAW is 13
		require.Eventually(t, func() bool {
			return strings.Contains(m.metrics(), "tcpdiag_listener_clients_total{")
		}, 60*time.Second, 100*time.Millisecond)
	})
	t.Run("all namespaces", func(t *testing.T) { m.in(t).allNamespaces() })
	t.Run("reload", func(t *testing.T) { m.in(t).reload() })
	t.Run("a socket from systemd", func(t *testing.T) { m.in(t).socket() })
}

// in is the machine in a part of the test.
func (m *machine) in(t *testing.T) *machine {
	part := *m
	part.t = t
	return &part
}

// queue lets n clients wait for a server that does not accept.
func (m *machine) queue(n int) {
	m.t.Helper()
	m.ready("http://127.0.0.1:18080/-/ready")
	m.run("systemctl", "kill", "--signal=STOP", "app")
	pid := m.run("systemctl", "show", "--value", "--property=MainPID", "app")
	require.Eventually(m.t, func() bool { // each thread stops when it comes to run
		states, err := m.try("bash", "-c", "grep -h ^State: /proc/"+pid+"/task/*/status")
		return err == nil && strings.Count(states, "T (stopped)") == strings.Count(states, "State:")
	}, time.Minute, 20*time.Millisecond)
	clients := m.command("bash", "-c", `for i in $(seq `+strconv.Itoa(n)+`); do exec {fd}<>/dev/tcp/127.0.0.1/18080; done; echo connected; exec sleep infinity`)
	said, err := clients.StdoutPipe()
	require.NoError(m.t, err)
	require.NoError(m.t, clients.Start())
	m.t.Cleanup(func() { _ = clients.Wait() }) // it ends with the machine
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(m.t, err)
	require.Equal(m.t, "connected\n", line)
}

func (m *machine) ready(url string) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		_, err := m.get(url)
		return err == nil
	}, time.Minute, 20*time.Millisecond, "%s: %s", url, m.log())
}

// dropIn makes this file the only drop-in and restarts the agent.
func (m *machine) dropIn(name string, change *strings.Replacer) {
	m.t.Helper()
	text := content(m.t, name)
	if change != nil {
		text = change.Replace(text)
	}
	m.run("rm", "-rf", dropIns)
	m.write(dropIns+name, text)
	m.run("systemctl", "daemon-reload")
	m.run("systemctl", "restart", "tcpdiag")
}

// status is a line of /proc/PID/status of the agent.
func (m *machine) status(key string) string { m.t.Helper(); return m.statusOf("tcpdiag", key) }

func (m *machine) statusOf(unit, key string) string {
	m.t.Helper()
	pid := m.run("systemctl", "show", "--value", "--property=MainPID", unit)
	for line := range strings.Lines(m.run("cat", "/proc/"+pid+"/status")) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			return strings.Fields(value)[0]
		}
	}
	m.t.Fatalf("no %s of pid %s", key, pid)
	return ""
}

// confined holds what the kernel says of the running agent against the unit.
func (m *machine) confined(capabilities string) {
	m.t.Helper()
	m.ready("http://127.0.0.1:10889/-/ready")
	require.NotEqual(m.t, "0", m.status("Uid"))
	for key, want := range map[string]string{
		"CapEff": capabilities, "CapPrm": capabilities, "CapBnd": capabilities,
		"NoNewPrivs": "1", "Seccomp": "2",
	} {
		require.Equal(m.t, want, m.status(key), key)
	}
	pid := m.run("systemctl", "show", "--value", "--property=MainPID", "tcpdiag")
	_, err := m.try("nsenter", "--target", pid, "--mount", "touch", "/usr/written", "/etc/written", "/home/written", "/var/written")
	require.Error(m.t, err, "the agent's file system can be written, even by root")
}

// seen is the part of a snapshot that the tests read.
type seen struct {
	Port        int
	AcceptQueue struct{ Length int } `json:"accept_queue"`
	Process     *struct {
		Comm string
		PID  int
	}
}

// listener is what the agent says of port 18080.
func (m *machine) listener() seen {
	m.t.Helper()
	l := m.find(18080)
	require.NotNil(m.t, l, "port 18080")
	return *l
}

func (m *machine) find(port int) *seen {
	m.t.Helper()
	text, err := m.get("http://127.0.0.1:10889/api/v1/snapshot")
	require.NoError(m.t, err)
	var snapshot struct{ Listeners []seen }
	require.NoError(m.t, json.Unmarshal([]byte(text), &snapshot))
	for _, l := range snapshot.Listeners {
		if l.Port == port {
			return &l
		}
	}
	return nil
}

// sees waits until the owner of the port is known.
func (m *machine) sees() {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return m.listener().Process != nil }, time.Minute, 100*time.Millisecond)
	l := m.listener()
	require.Equal(m.t, "tcpdiag", l.Process.Comm)
	require.Equal(m.t, 3, l.AcceptQueue.Length)
}

func (m *machine) metrics() string {
	m.t.Helper()
	text, err := m.get("http://127.0.0.1:10889/metrics")
	require.NoError(m.t, err)
	return text
}

// allNamespaces: the listener of a service with PrivateNetwork=yes is found in
// its namespace, and the machine's own as before.
func (m *machine) allNamespaces() {
	t := m.t
	m.run("systemctl", "start", "apart")
	require.Nil(t, m.find(18090), "seen without the privilege")
	m.write(configFile, "all: true\n")
	m.dropIn("all-namespaces.conf", nil)
	m.confined("00000000002800c4") // and CAP_SYS_ADMIN, 21
	require.Eventually(t, func() bool {
		l := m.find(18090)
		return l != nil && l.Process != nil
	}, time.Minute, 100*time.Millisecond)
	m.sees()
	m.run("rm", "-rf", dropIns)
	m.write(configFile, "targets: [{port: 18080}]\n")
	m.run("systemctl", "daemon-reload")
	m.run("systemctl", "restart", "tcpdiag")
	m.ready("http://127.0.0.1:10889/-/ready")
}

// reload: a good file is taken over without a restart; a bad one fails the
// command, and the agent keeps running.
func (m *machine) reload() {
	t := m.t
	pid := m.status("Pid")
	m.write(configFile, "targets: [{port: 18080}, {port: 18081}]\n")
	m.run("systemctl", "reload", "tcpdiag")
	require.Eventually(t, func() bool {
		return strings.Contains(m.metrics(), `tcpdiag_target_up{netns=`) && strings.Contains(m.metrics(), `port="18081"`)
	}, time.Minute, 50*time.Millisecond)
	m.write(configFile, "tragets: []\n")
	out, err := m.try("systemctl", "reload", "tcpdiag")
	require.Error(t, err, "a bad file: %s", out)
	require.Contains(t, m.log(), "tragets")
	require.Contains(t, m.metrics(), `port="18081"`)
	require.Equal(t, pid, m.status("Pid"))
	m.write(configFile, "targets: [{port: 18080}]\n")
}

// socket: systemd holds the port, also while the agent does not run.
func (m *machine) socket() {
	t := m.t
	m.run("systemctl", "stop", "tcpdiag")
	m.write(flagsFile, "TCPDIAG_ARGS=\"--web.systemd-socket\"\n")
	m.run("systemctl", "start", "tcpdiag.socket")
	_, err := m.try("systemctl", "is-active", "tcpdiag.service")
	require.Error(t, err, "the agent runs before anybody asks for it")
	m.ready("http://127.0.0.1:10889/-/ready")
	m.run("systemctl", "restart", "tcpdiag")
	m.ready("http://127.0.0.1:10889/-/ready")
	require.Contains(t, m.metrics(), "tcpdiag_build_info")
	require.Equal(t, 3, m.listener().AcceptQueue.Length)
}
