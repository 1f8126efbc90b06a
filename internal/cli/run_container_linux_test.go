package cli

import (
	"encoding/xml"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/cli/runcmd"
	"github.com/tcpdiag/tcpdiag/internal/passthrough"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// job is a pipeline's container: no terminal, another user without capabilities, a root file
// system that nobody can write to, but for one folder.
type job struct {
	ns           *nettest.NS
	program, out string
}

func newJob(t *testing.T) *job {
	ns := nettest.Namespace(t)
	dir := proctest.PublicDir(t)
	j := &job{ns, filepath.Join(dir, "tcpdiag"), filepath.Join(dir, "out")}
	content, err := os.ReadFile(os.Args[0])
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(j.program, content, 0o755)) //nolint:gosec // the same
	require.NoError(t, os.Mkdir(j.out, 0o755))                  //nolint:gosec // the same
	require.NoError(t, os.Chown(j.out, 65534, 65534))
	return j
}

// command is tcpdiag run in the container. The folder that can be written to is mounted again, as it is
// bound before all else becomes read-only.
func (j *job) command(args ...string) *exec.Cmd {
	const container = `set -e
mount --bind "$OUT" "$OUT"
mount -o remount,bind,ro /
mount -o remount,bind,rw "$OUT"
for m in $(awk '$2 != "/" && $2 !~ "^/(proc|sys|dev)" { print $2 }' /proc/mounts); do
  [ "$m" = "$OUT" ] || mount -o remount,bind,ro "$m" 2>/dev/null || true
done
exec setsid setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs -- "$PROGRAM" run "$@"`
	cmd := j.ns.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", container, "sh"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "OUT=" + j.out, "PROGRAM=" + j.program, "CI=true", mainVariable + "=1"}
	return cmd
}

func (j *job) run(t *testing.T, args ...string) (code int, log string) {
	t.Helper()
	out, err := j.command(args...).CombinedOutput()
	var exit *exec.ExitError
	if err == nil {
		return 0, string(out)
	}
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode(), string(out)
}

// In a pipeline's container packets are counted, and it is said that clients are not.
func TestRunInAPipelinesContainer(t *testing.T) {
	j := newJob(t)
	var addr netip.AddrPort
	j.ns.Do(func() { addr = nettest.Listen(t, nettest.ListenOptions{Backlog: watchedBacklog}).Addr })
	port := strconv.Itoa(int(addr.Port()))
	file := func(name string) string { return filepath.Join(j.out, name) }
	cmd := j.command("--port", port, "--settle", "0s", "--fail-on", "losing", "--json", file("run.json"), "--junit", file("run.xml"),
		"--markdown", file("run.md"), "--report", file("run.html"), "--", "sh", "-c", "id -u; touch /job 2>/dev/null || echo read-only; grep CapEff /proc/self/status; while ! test -e "+file("done")+"; do sleep 0.1; done; sleep 2")
	stderr, err := os.Create(file("stderr"))
	require.NoError(t, err)
	defer stderr.Close()
	log := func() string {
		text, err := os.ReadFile(stderr.Name())
		require.NoError(t, err)
		return string(text)
	}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var said strings.Builder
	for !strings.Contains(said.String(), "CapEff") { // its output passes through
		buf := make([]byte, 256)
		n, err := out.Read(buf)
		require.NoError(t, err, log())
		said.Write(buf[:n])
	}
	require.Equal(t, "65534 read-only CapEff: 0000000000000000", strings.Join(strings.Fields(said.String()), " "))
	j.ns.Do(func() {
		nettest.Queue(t, addr, watchedBacklog+1)
		nettest.Overflow(t, addr, 9)
	})
	require.NoError(t, os.WriteFile(file("done"), nil, 0o600))
	require.Error(t, cmd.Wait())
	require.Equal(t, command.ExitLosing, cmd.ProcessState.ExitCode(), log())

	doc, err := api.ReadRun(file("run.json"))
	require.NoError(t, err)
	l := doc.Listeners[0]
	require.Nil(t, l.Clients, "handshakes cannot be followed")
	require.EqualValues(t, 9, l.DroppedPackets)
	var missing []string
	for _, u := range doc.Unavailable {
		missing = append(missing, u.What+": "+u.How)
	}
	require.Contains(t, strings.Join(missing, "; "), "CAP_NET_RAW")
	require.Contains(t, log(), "CAP_NET_RAW", "it is said what could not be seen")
	require.NotContains(t, log(), "\x1b", "no terminal, no colours")
	var suite struct {
		XMLName  xml.Name `xml:"testsuite"`
		Failures int      `xml:"failures,attr"`
	}
	for _, name := range []string{"run.xml", "run.md", "run.html"} {
		content, err := os.ReadFile(file(name))
		require.NoError(t, err)
		if name == "run.xml" {
			require.NoError(t, xml.Unmarshal(content, &suite))
			require.Equal(t, 1, suite.Failures)
		}
	}
}

// The exit codes are the same there.
func TestRunExitCodesInAContainer(t *testing.T) {
	j := newJob(t)
	for name, tt := range map[string]struct {
		args []string
		code int
		log  string
	}{
		"success":                              {[]string{"--", "true"}, 0, "exit code 0"},
		"its own failure":                      {[]string{"--fail-on", "down", "--", "sh", "-c", "exit 3"}, 3, "exit code 3"},
		"a signal":                             {[]string{"--", "sh", "-c", "kill -9 $$"}, 128 + 9, "exit code 137"},
		"down":                                 {[]string{"--fail-on", "losing", "--", "true"}, command.ExitDown, "DOWN"},
		"no such command":                      {[]string{"--", "no-such-command"}, passthrough.NotFound, "command not found"},
		"a folder":                             {[]string{"--", j.out}, passthrough.NotStartable, "cannot be started"},
		"nowhere to write to":                  {[]string{"--json", "/run.json", "--", "true"}, runcmd.ExitFailed, "read-only file system"},
		"nowhere to write to, its own failure": {[]string{"--json", "/run.json", "--", "sh", "-c", "exit 4"}, 4, "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			code, log := j.run(t, append([]string{"--port", "1", "--settle", "0s"}, tt.args...)...)
			require.Equal(t, tt.code, code, log)
			require.Contains(t, log, tt.log)
		})
	}
}
