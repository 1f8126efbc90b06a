package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/cli/runcmd"
	"github.com/tcpdiag/tcpdiag/internal/passthrough"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// runIn is tcpdiag run inside a namespace, with what it wrote to standard output and error.
func runIn(t *testing.T, ns *nettest.NS, args ...string) (code int, out, log string) {
	t.Helper()
	cmd := tcpdiag(ns, append([]string{"run"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// The exit codes are the command's own; run's own are those that no load tool has.
func TestRunExitCodes(t *testing.T) {
	ns := nettest.Namespace(t)
	var port string
	ns.Do(func() {
		port = strconv.Itoa(int(nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr.Port()))
	})
	notExecutable := filepath.Join(t.TempDir(), "load.sh")
	require.NoError(t, os.WriteFile(notExecutable, []byte("exit 0\n"), 0o600))
	newer, ran := filepath.Join(t.TempDir(), "newer.json"), filepath.Join(t.TempDir(), "ran")
	require.NoError(t, os.WriteFile(newer, []byte(`{"schema":"tcpdiag.run/v9"}`), 0o600))
	t.Cleanup(func() { require.NoFileExists(t, ran, "a load test that is called wrongly is not run") })
	for name, tt := range map[string]struct {
		args []string
		code int
		log  string
	}{
		"success":                        {[]string{"--port", port, "--settle", "0s", "--", "true"}, 0, "exit code 0"},
		"its own failure":                {[]string{"--port", port, "--settle", "0s", "--", "sh", "-c", "exit 3"}, 3, "exit code 3"},
		"its own failure beats fail-on":  {[]string{"--port", "1", "--settle", "0s", "--fail-on", "down", "--", "sh", "-c", "exit 3"}, 3, "DOWN"},
		"a signal":                       {[]string{"--port", port, "--settle", "0s", "--", "sh", "-c", "kill -9 $$"}, 128 + 9, "exit code 137"},
		"down":                           {[]string{"--port", "1", "--settle", "0s", "--fail-on", "losing", "--", "sleep", "1"}, command.ExitDown, "DOWN"},
		"no such command":                {[]string{"--port", port, "--", "no-such-command"}, passthrough.NotFound, `"no-such-command": command not found`},
		"no such file":                   {[]string{"--port", port, "--", "/no/such/command"}, passthrough.NotFound, "command not found"},
		"not executable":                 {[]string{"--port", port, "--", notExecutable}, passthrough.NotStartable, "permission denied"},
		"no command":                     {nil, runcmd.ExitFailed, "the command of the load test is missing"},
		"no such flag":                   {[]string{"--prot", "1", "--", "true"}, runcmd.ExitFailed, "--prot"},
		"no such number of runs":         {[]string{"--repeat", "0", "--", "true"}, runcmd.ExitFailed, "--repeat takes 1 to 100"},
		"no such status":                 {[]string{"--fail-on", "slow", "--", "true"}, runcmd.ExitFailed, "give warning, saturated, losing or down"},
		"no baseline":                    {[]string{"--baseline", "/no/such/file", "--", "true"}, runcmd.ExitFailed, "--baseline"},
		"a result that cannot be stored": {[]string{"--port", port, "--settle", "0s", "--json", "/no/such/folder/x", "--", "true"}, runcmd.ExitFailed, "--json"},
		"two results in one file":        {[]string{"--port", port, "--json", "-", "--junit", "-", "--", "touch", ran}, runcmd.ExitFailed, `--json and --junit would both write to "-"`},
		"a baseline of another version":  {[]string{"--baseline", newer, "--", "touch", ran}, runcmd.ExitFailed, "is of schema tcpdiag.run/v9, and this version reads tcpdiag.run/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, out, log := runIn(t, ns, tt.args...)
			require.Equal(t, tt.code, code, log)
			require.Contains(t, log, tt.log)
			require.Empty(t, out, "standard output is the command's")
		})
	}
}

// Six clients get in and nine give up: the result says so in each of its forms.
func TestRunCountsClients(t *testing.T) {
	ns := nettest.Namespace(t)
	var addr netip.AddrPort
	ns.Do(func() { addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr })
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	done := file("done")
	cmd := tcpdiag(ns, "run", "--port", strconv.Itoa(int(addr.Port())), "--settle", "20s", "--fail-on", "losing",
		"--json", file("run.json"), "--junit", file("run.xml"), "--markdown", file("run.md"), "--report", file("run.html"), "--",
		"sh", "-c", "echo started; while ! test -e "+done+"; do sleep 0.1; done")
	var log bytes.Buffer
	cmd.Stderr = &log
	begin(t, cmd) // its output passes through
	ns.Do(func() {
		nettest.Queue(t, addr, watchedBacklog+1)
		nettest.Overflow(t, addr, 9)
	})
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	require.Error(t, cmd.Wait())
	require.Equal(t, command.ExitLosing, cmd.ProcessState.ExitCode(), log.String())

	doc, err := api.ReadRun(file("run.json"))
	require.NoError(t, err)
	l := doc.Listeners[0]
	require.NotNil(t, l.Clients, "%+v", doc.Unavailable)
	require.EqualValues(t, 15, l.Clients.Offered)
	require.EqualValues(t, 9, l.Clients.GaveUp)
	require.EqualValues(t, 9, l.DroppedPackets)
	require.Equal(t, "losing", doc.Status)
	require.True(t, doc.Failed)
	require.Contains(t, log.String(), "9 gave up connecting")

	var suite struct {
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Failure *struct {
				Message string `xml:"message,attr"`
			} `xml:"failure"`
		} `xml:"testcase"`
	}
	content, err := os.ReadFile(file("run.xml"))
	require.NoError(t, err)
	require.NoError(t, xml.Unmarshal(content, &suite))
	require.Equal(t, 1, suite.Failures)
	require.Contains(t, suite.Cases[0].Failure.Message, "9 gave up connecting")
	content, err = os.ReadFile(file("run.md"))
	require.NoError(t, err)
	require.Contains(t, string(content), "| losing |")
	content, err = os.ReadFile(file("run.html"))
	require.NoError(t, err)
	require.Contains(t, string(content), "9 gave up connecting")
	require.Contains(t, string(content), "while ! test -e", "the command with its arguments")
}

// Each run of a test is one of its own; one that fails ends it.
func TestRunRepeats(t *testing.T) {
	ns := nettest.Namespace(t)
	name := filepath.Join(t.TempDir(), "run.json")
	code, out, log := runIn(t, ns, "--port", "1", "--settle", "0s", "--repeat", "3", "--json", name, "--", "echo", "load")
	require.Zero(t, code, log)
	require.Equal(t, 3, strings.Count(out, "load"))
	doc, err := api.ReadRun(name)
	require.NoError(t, err)
	require.Equal(t, 3, doc.Repeated)
	require.Len(t, doc.Listeners[0].Repeats, 3)
	require.Contains(t, log, "the worst of 3 runs")
	code, out, _ = runIn(t, ns, "--port", "1", "--settle", "0s", "--repeat", "3", "--", "sh", "-c", "echo load; exit 4")
	require.Equal(t, 4, code)
	require.Equal(t, 1, strings.Count(out, "load"))
}

// What ends tcpdiag's other commands is handed to the load tool, which ends as it likes;
// the answer is given all the same.
func TestRunPassesSignals(t *testing.T) {
	ns := nettest.Namespace(t)
	cmd := tcpdiag(ns, "run", "--port", "1", "--settle", "0s", "--", "sh", "-c", `trap 'echo ended; exit 7' TERM; echo ready; while :; do sleep 0.1; done`)
	var log bytes.Buffer
	cmd.Stderr = &log
	out := begin(t, cmd)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "ended", strings.TrimSpace(string(buf[:n])))
	var exit *exec.ExitError
	require.True(t, errors.As(cmd.Wait(), &exit))
	require.Equal(t, 7, exit.ExitCode())
	require.Contains(t, log.String(), "exit code 7")
}

// On a terminal the load tool gets Ctrl-C from the terminal, once.
func TestRunOnATerminal(t *testing.T) {
	ns := nettest.Namespace(t)
	tty := openTerminal(t, 40, 100)
	cmd := tcpdiag(ns, "run", "--port", "1", "--settle", "0s", "--", "sh", "-c", `n=0; trap 'n=$((n+1)); echo signal $n' INT; echo ready; i=0; while [ $i -lt 20 ]; do sleep 0.1; i=$((i+1)); done; echo signals: $n`)
	cmd.Env = append(cmd.Env, "NO_COLOR=1")
	tty.run(t, cmd)
	tty.until(t, "ready")
	tty.press(t, "\x03")
	tty.until(t, "signals: 1")
	require.NoError(t, cmd.Wait())
	tty.until(t, "DOWN")
}

// A baseline is read back and compared with.
func TestRunComparesWithABaseline(t *testing.T) {
	ns := nettest.Namespace(t)
	before := filepath.Join(t.TempDir(), "before.json")
	code, _, log := runIn(t, ns, "--port", "1", "--settle", "0s", "--json", before, "--", "true")
	require.Zero(t, code, log)
	doc, err := api.ReadRun(before)
	require.NoError(t, err)
	doc.Listeners[0].Status = "losing"
	content, err := json.Marshal(doc)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(before, content, 0o600))
	code, _, log = runIn(t, ns, "--port", "1", "--settle", "0s", "--baseline", before, "--", "true")
	require.Zero(t, code, log)
	require.Contains(t, log, "status: losing before, down now")
	require.NoError(t, os.WriteFile(before, []byte(`{"schema":"x"}`), 0o600))
	code, _, log = runIn(t, ns, "--baseline", before, "--", "true")
	require.Equal(t, runcmd.ExitFailed, code)
	require.Contains(t, log, "not a result of tcpdiag run")
}

// A server that is restarted within the run is one listener: its refused clients are counted, and no firewall is blamed.
func TestRunOfARestart(t *testing.T) {
	ns := nettest.Namespace(t)
	listen := func(address string) (l *nettest.Listener) {
		ns.Do(func() { l = nettest.Listen(t, nettest.ListenOptions{Address: address, Backlog: watchedBacklog}) })
		return l
	}
	server := listen("127.0.0.1:0")
	addr := server.Addr
	name, done := filepath.Join(t.TempDir(), "run.json"), filepath.Join(t.TempDir(), "done")
	cmd := tcpdiag(ns, "run", "--port", strconv.Itoa(int(addr.Port())), "--settle", "5s", "--json", name, "--",
		"sh", "-c", "echo started; while ! test -e "+done+"; do sleep 0.1; done")
	var log bytes.Buffer
	cmd.Stderr = &log
	begin(t, cmd)
	ns.Do(func() { nettest.Queue(t, addr, 1) })
	server.Close()
	ns.Do(func() {
		for range 7 {
			_, err := net.Dial("tcp", addr.String())
			require.ErrorIs(t, err, syscall.ECONNREFUSED)
		}
	})
	listen(addr.String())
	ns.Do(func() { nettest.Queue(t, addr, 2) })
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	require.NoError(t, cmd.Wait(), log.String())
	doc, err := api.ReadRun(name)
	require.NoError(t, err)
	require.Len(t, doc.Listeners, 1, log.String())
	l := doc.Listeners[0]
	require.NotNil(t, l.Clients, "%+v", doc.Unavailable)
	require.EqualValues(t, 7, l.Clients.Refused, log.String())
	require.EqualValues(t, 10, l.Clients.Offered, log.String())
	require.NotEqual(t, "before_listener", l.Cause)
	require.Nil(t, l.FirstLimit)
	require.Contains(t, log.String(), "7 were refused")
	require.NotContains(t, log.String(), "firewall")
}

// Ctrl-C between two runs: what the first has shown is said.
func TestRunIsEndedBetweenTwo(t *testing.T) {
	ns := nettest.Namespace(t)
	name := filepath.Join(t.TempDir(), "run.json")
	cmd := tcpdiag(ns, "run", "--repeat", "9", "--port", "8080", "--settle", "0", "--json", name, "--", "true")
	log, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines, said := bufio.NewScanner(log), []string(nil)
	for lines.Scan() {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "run 1 of 9 is over") {
			require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		}
	}
	_ = cmd.Wait() // the second may have begun, and is ended by it
	require.NotEqual(t, runcmd.ExitFailed, cmd.ProcessState.ExitCode(), strings.Join(said, "\n"))
	_, err = api.ReadRun(name)
	require.NoError(t, err)
}

// settling is tcpdiag run whose command has ended with 3, and of whose two clients it is not known how they end.
func settling(t *testing.T, ns *nettest.NS, log *os.File) *exec.Cmd {
	var addr netip.AddrPort
	ns.Do(func() { addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr })
	cmd := tcpdiag(ns, "run", "--quiet", "--port", strconv.Itoa(int(addr.Port())), "--settle", "1m", "--", "sh", "-c", "echo started; read line; exit 3")
	cmd.Stderr = log
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	begin(t, cmd)
	ns.Do(func() { nettest.Queue(t, addr, 2) }) // nobody accepts them
	time.Sleep(time.Second)
	_, err = in.Write([]byte("end\n"))
	require.NoError(t, err)
	time.Sleep(time.Second) // what comes with the command's end is what ended it
	return cmd
}

// Who does not want to wait until the last clients are settled has the answer at once.
func TestRunIsToldNotToSettle(t *testing.T) {
	ns := nettest.Namespace(t)
	for name, signal := range map[string]syscall.Signal{"Ctrl-C": syscall.SIGINT, "SIGTERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			log, err := os.Create(filepath.Join(t.TempDir(), "log"))
			require.NoError(t, err)
			defer log.Close()
			cmd := settling(t, ns, log)
			began, over := time.Now(), make(chan struct{})
			go func() { _ = cmd.Wait(); close(over) }()
			for ended := false; !ended; {
				require.NoError(t, cmd.Process.Signal(signal))
				select {
				case <-over:
					ended = true
				case <-time.After(20 * time.Second): // it came as the command ended, on a machine as busy as that
				}
			}
			text, err := os.ReadFile(log.Name())
			require.NoError(t, err)
			require.Equal(t, 3, cmd.ProcessState.ExitCode(), string(text))
			require.Contains(t, string(text), "exit code 3")
			require.Less(t, time.Since(began), 50*time.Second, "it settles for a minute")
		})
	}
}

// A second signal ends it, whatever it is busy with: here nobody reads what it has to say.
func TestRunIsEndedWhileItSettles(t *testing.T) {
	ns := nettest.Namespace(t)
	unread, log, err := os.Pipe()
	require.NoError(t, err)
	defer unread.Close()
	defer log.Close()
	require.NoError(t, log.SetWriteDeadline(time.Now().Add(time.Second)))
	for err == nil {
		_, err = log.Write(make([]byte, 4096))
	}
	cmd := settling(t, ns, log)
	over := make(chan struct{})
	go func() { _ = cmd.Wait(); close(over) }()
	for ended := false; !ended; {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-over:
			ended = true
		case <-time.After(time.Second):
		}
	}
	status, is := cmd.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, is)
	require.True(t, status.Signaled(), "%v", cmd.ProcessState)
}
