package systemd

import (
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// dist is where `make package` has put the packages; without it the tests of
// packages are skipped.
const dist = "TCPDIAG_DIST"

// artifact is the one file in dist that matches.
func artifact(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv(dist)
	if dir == "" {
		t.Skipf("%s is not set: make package sets it", dist)
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

// here is this machine's architecture in the packages' names.
func here(format string) string { return "tcpdiag_*_linux_" + runtime.GOARCH + "." + format }

// Triggers are other packages' (man-db reads every page of the machine).
func TestDeb(t *testing.T) {
	deb := artifact(t, here("deb"))
	m := boot(t, files{"pkg/tcpdiag.deb": content(t, deb)}, "")
	m.run("dpkg", "--no-triggers", "--install", "/pkg/tcpdiag.deb")
	m.installed()
	m.upgraded(func() { m.run("bash", "-ec", nextDeb) })
	m.run("dpkg", "--no-triggers", "--remove", "tcpdiag")
	m.removed()
	m.run("test", "-e", configFile)
	m.run("test", "-e", flagsFile)
	m.run("dpkg", "--no-triggers", "--purge", "tcpdiag")
	m.nothingLeft()
}

// nextDeb makes a newer version of the package, with another default for a
// file that the administrator has changed, and installs it without a question.
const nextDeb = `cd /pkg
dpkg-deb --raw-extract tcpdiag.deb next
sed -i 's/^Version: .*/Version: 999/' next/DEBIAN/control
echo '# a later default' >>next/etc/tcpdiag/tcpdiag.yml
dpkg-deb -Znone --build next next.deb
dpkg --no-triggers --force-confdef --force-confold --install next.deb
`

func TestRPM(t *testing.T) {
	pkg := artifact(t, here("rpm"))
	_, err := exec.LookPath("rpm")
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("%v (Debian: rpm)", err)
	}
	require.NoError(t, err)
	m := boot(t, files{"pkg/tcpdiag.rpm": content(t, pkg)}, "rm -rf /var/lib/rpm; mkdir /var/lib/rpm; rpm --initdb")
	// --nodeps: rpm's own database knows of no /bin/sh here.
	m.run("rpm", "--install", "--nodeps", "/pkg/tcpdiag.rpm")
	m.installed()
	m.upgraded(func() { m.run("rpm", "--upgrade", "--nodeps", "--replacepkgs", "/pkg/tcpdiag.rpm") })
	m.run("rpm", "--erase", "tcpdiag")
	m.removed()
	m.run("rm", configFile+".rpmsave", flagsFile+".rpmsave") // what was changed is kept
	m.run("rmdir", "/etc/tcpdiag")
	m.nothingLeft()
}

// installed: everything is in its place, nothing runs, and it can be started.
func (m *machine) installed() {
	t := m.t
	m.verify()
	for _, state := range []string{"is-active", "is-enabled"} {
		for _, unit := range []string{"tcpdiag.service", "tcpdiag.socket"} {
			out, err := m.try("systemctl", state, unit)
			require.Error(t, err, "%s %s: %s", state, unit, out)
		}
	}
	m.run("bash", "-n", "/usr/share/bash-completion/completions/tcpdiag")
	m.run("gzip", "--test", "/usr/share/man/man1/tcpdiag.1.gz", "/usr/share/man/man1/tcpdiag-agent.1.gz")
	m.run("test", "-s", "/usr/share/tcpdiag/systemd/all-users.conf")
	m.run("grep", "-x", "tcp_diag", "/usr/lib/modules-load.d/tcpdiag.conf")
	require.Regexp(t, `version \S+ .*revision: ([0-9a-f]{40}|none)`, m.run("tcpdiag", "version")) // none: outside git
	m.run("systemctl", "enable", "--now", "tcpdiag")
	m.confined("0000000000000000")
	require.Contains(t, m.metrics(), "tcpdiag_build_info")
}

// upgraded: the administrator's changes stay and the new version runs.
func (m *machine) upgraded(upgrade func()) {
	t := m.t
	m.write(configFile, "targets: [{port: 18080}] # mine\n")
	m.write(flagsFile, "TCPDIAG_ARGS=\"--log-format json\"\n")
	before := m.status("Pid")
	upgrade()
	require.Contains(t, m.run("cat", configFile), "mine")
	require.Contains(t, m.run("cat", flagsFile), "json")
	m.run("systemctl", "is-enabled", "tcpdiag")
	m.ready("http://127.0.0.1:10889/-/ready")
	require.NotEqual(t, before, m.status("Pid"), "the old program runs on")
	require.Contains(t, m.metrics(), `tcpdiag_target_up{netns=`)
}

// removed: the service is stopped and systemd knows it no more.
func (m *machine) removed() {
	_, err := m.get("http://127.0.0.1:10889/-/healthy")
	require.Error(m.t, err)
	require.Equal(m.t, "not-found", m.run("systemctl", "show", "--value", "--property=LoadState", "tcpdiag.service"))
}

func (m *machine) nothingLeft() {
	left := m.run("find", "/etc", "/usr/bin", "/usr/lib/systemd", "/usr/lib/modules-load.d", "/usr/share", "/run/systemd/system", "-name", "*tcpdiag*")
	require.Empty(m.t, left)
}

// TestContents: both architectures and both formats have the same files, but
// for where each distribution looks for zsh's completions and for licences.
func TestContents(t *testing.T) {
	same := func(list []byte) string {
		var kept []string
		for line := range strings.Lines(string(list)) {
			path := strings.TrimPrefix(strings.TrimSpace(line), ".")
			if path != "" && !strings.HasSuffix(path, "/") && !strings.Contains(path, "/zsh/") &&
				!strings.Contains(path, "copyright") && !strings.Contains(path, "LICENSE") {
				kept = append(kept, path)
			}
		}
		return strings.Join(kept, "\n")
	}
	var lists []string
	for _, arch := range []string{"amd64", "arm64"} {
		deb := artifact(t, "tcpdiag_*_linux_"+arch+".deb")
		pkg := artifact(t, "tcpdiag_*_linux_"+arch+".rpm")
		lists = append(lists,
			same(output(t, "sh", "-c", `dpkg-deb --fsys-tarfile "$0" | tar -t`, deb)),
			same(output(t, "sh", "-c", `rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$0" | sed -n 's/^-[^ ]* //p'`, pkg)))
		require.Equal(t, arch+"\n", string(output(t, "dpkg-deb", "--field", deb, "Architecture")))
	}
	require.Contains(t, lists[0], "/usr/share/man/man1/tcpdiag-agent.1.gz")
	for _, list := range lists[1:] {
		require.Equal(t, lists[0], list)
	}
	conffiles := []string{configFile, flagsFile}
	require.ElementsMatch(t, conffiles, strings.Fields(string(output(t, "dpkg-deb", "--info", artifact(t, here("deb")), "conffiles"))))
	require.ElementsMatch(t, conffiles, strings.Fields(string(output(t, "rpm", "-qcp", artifact(t, here("rpm"))))))
}

// The archive's program runs, and the checksums are those of the files.
func TestArchive(t *testing.T) {
	archive := artifact(t, here("tar.gz"))
	dir := t.TempDir()
	output(t, "tar", "-C", dir, "--strip-components=1", "-xzf", archive)
	for _, name := range []string{
		"LICENSE", "README.md", "tcpdiag.yml", "man/tcpdiag.1.gz",
		"completions/tcpdiag.bash", "completions/tcpdiag.zsh", "completions/tcpdiag.fish", "systemd/tcpdiag.service",
	} {
		require.FileExists(t, filepath.Join(dir, name))
	}
	require.Contains(t, string(output(t, filepath.Join(dir, "tcpdiag"), "version")), "tcpdiag, version")
	page, err := gzip.NewReader(bytes.NewReader([]byte(content(t, filepath.Join(dir, "man/tcpdiag.1.gz")))))
	require.NoError(t, err)
	require.True(t, page.ModTime.IsZero(), "the same commit, the same bytes")
	sums := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "checksums.txt")
	sums.Dir = filepath.Dir(archive)
	out, err := sums.CombinedOutput()
	require.NoError(t, err, "%s", out)
	packed := 0
	for _, format := range []string{".tar.gz", ".deb", ".rpm"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(archive), "*"+format))
		require.NoError(t, err)
		packed += len(found)
	}
	require.GreaterOrEqual(t, packed, 9)
	require.Equal(t, packed, bytes.Count(out, []byte(": OK")), "every file: %s", out)
}

func output(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	if name == "rpm" {
		nettest.Root(t) // where rpm is installed by make setup
	}
	out, err := exec.CommandContext(t.Context(), name, args...).Output()
	require.NoError(t, err, name)
	return out
}
