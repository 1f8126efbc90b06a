package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// archiver builds the program, with cgo as the tests of its module are, so that its large dependencies
// are compiled once, and returns its bytes.
func archiver(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "tcpdiag-archive")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, ".")
	cmd.Dir = "../../cmd/tcpdiag-archive"
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
	return content(t, out)
}

// The archiver reads what the agent records, as another user without a capability, and has it in its
// bucket when the agent is stopped. It is long where nothing of its large module is compiled yet.
func TestLongArchiver(t *testing.T) {
	needSystemd(t)
	put := installed(t)
	put["usr/bin/tcpdiag-archive"] = archiver(t)
	put[unitDir+"tcpdiag-archive.service"] = content(t, "archive/tcpdiag-archive.service")
	put[unitDir+"tcpdiag.service.d/archive.conf"] = content(t, "archive/agent.conf")
	put["usr/lib/sysusers.d/tcpdiag-archive.conf"] = content(t, "archive/tcpdiag-archive.sysusers")
	put["etc/default/tcpdiag-archive"] = `TCPDIAG_ARCHIVE_ARGS="--bucket file:///var/lib/tcpdiag-archive/bucket?create_dir=true --cluster site-1"` + "\n"
	m := boot(t, put, addUser+"systemd-sysusers /usr/lib/sysusers.d/tcpdiag-archive.conf\n")
	out, err := m.try("systemd-analyze", "verify", "--man=no", "/"+unitDir+"tcpdiag-archive.service")
	require.NoError(t, err, out)
	require.Empty(t, out)
	m.write(configFile, "targets: [{port: 18080}]\n")
	m.run("systemctl", "start", "app", "tcpdiag", "tcpdiag-archive")
	m.ready("http://127.0.0.1:10889/-/ready")
	for _, name := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		require.Equal(t, "0000000000000000", m.statusOf("tcpdiag-archive", name), name)
	}
	require.NotEqual(t, m.statusOf("tcpdiag", "Uid"), m.statusOf("tcpdiag-archive", "Uid"))
	require.Equal(t, "750 tcpdiag-incidents", m.run("stat", "-L", "-c", "%a %G", "/var/lib/tcpdiag"))

	require.Eventually(t, func() bool { return strings.Contains(m.metrics(), "tcpdiag_target_up{") }, time.Minute, 100*time.Millisecond)
	require.Eventually(t, func() bool { return m.targetUp("1") }, time.Minute, 100*time.Millisecond)
	m.run("systemctl", "stop", "app")
	require.Eventually(t, func() bool {
		out, _ := m.try("sh", "-c", "ls /var/lib/tcpdiag/*.tcpdiag")
		return strings.Contains(out, ".tcpdiag")
	}, time.Minute, 100*time.Millisecond, "an incident is recorded")
	m.run("systemctl", "stop", "tcpdiag")
	require.Eventually(t, func() bool {
		out, _ := m.try("find", "/var/lib/private/tcpdiag-archive/bucket/site-1", "-name", "*-18080.tcpdiag")
		return out != ""
	}, time.Minute, 100*time.Millisecond, "it is archived")
	m.run("systemctl", "is-active", "tcpdiag-archive")
	m.run("systemctl", "stop", "tcpdiag-archive")
	require.Equal(t, "success", m.run("systemctl", "show", "--value", "--property=Result", "tcpdiag-archive"))
}

func (m *machine) targetUp(value string) bool {
	for line := range strings.Lines(m.metrics()) {
		if strings.HasPrefix(line, "tcpdiag_target_up{") {
			return strings.HasSuffix(strings.TrimSpace(line), " "+value)
		}
	}
	return false
}

// Of what systemd-analyze counts the unit has less than the agent's: it connects to others, and sees no
// other process.
func TestArchiverScore(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil && os.Getenv("CI") != "true" && os.Geteuid() != 0 {
		t.Skipf("%v (Debian: systemd)", err)
	}
	unit := filepath.Join(t.TempDir(), "tcpdiag-archive.service")
	require.NoError(t, os.WriteFile(unit, []byte(content(t, "archive/tcpdiag-archive.service")), 0o600))
	require.LessOrEqual(t, scored(t, unit), 1.1)
}

// The package beside the agent's: it is installed, runs, and goes without a trace.
func TestArchiverPackage(t *testing.T) {
	m := boot(t, files{
		"pkg/agent.deb": content(t, artifact(t, "tcpdiag_*_linux_amd64.deb")), "pkg/archive.deb": content(t, artifact(t, "tcpdiag-archive_*_linux_amd64.deb")),
	}, "")
	m.run("dpkg", "--no-triggers", "--install", "/pkg/agent.deb")
	m.run("systemctl", "enable", "--now", "tcpdiag")
	m.run("dpkg", "--no-triggers", "--install", "/pkg/archive.deb")
	_, err := m.try("systemctl", "is-enabled", "tcpdiag-archive")
	require.Error(t, err)
	require.Equal(t, "600 root", m.run("stat", "-c", "%a %U", "/etc/default/tcpdiag-archive"))
	require.Contains(t, m.run("tcpdiag-archive", "--version"), "tcpdiag-archive, version")
	m.ready("http://127.0.0.1:10889/-/ready")
	require.Equal(t, "750 tcpdiag-incidents", m.run("stat", "-L", "-c", "%a %G", "/var/lib/tcpdiag"))
	m.write("/etc/default/tcpdiag-archive", `TCPDIAG_ARCHIVE_ARGS="--bucket file:///var/lib/tcpdiag-archive/bucket?create_dir=true --web.listen-address 127.0.0.1:10890"`+"\n")
	m.run("systemctl", "enable", "--now", "tcpdiag-archive")
	m.ready("http://127.0.0.1:10890/-/healthy")
	m.run("dpkg", "--no-triggers", "--purge", "tcpdiag-archive", "tcpdiag")
	require.Equal(t, "not-found", m.run("systemctl", "show", "--value", "--property=LoadState", "tcpdiag-archive.service"))
	m.nothingLeft()
}
