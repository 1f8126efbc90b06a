package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The README's scores are what systemd-analyze says of the units, or worse.
func TestScores(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil && os.Getenv("CI") != "true" && os.Geteuid() != 0 {
		t.Skipf("%v (Debian: systemd)", err)
	}
	recorded := regexp.MustCompile("(?m)^\\| `([a-z-]+)\\.(?:service|conf)` .*\\| ([0-9]\\.[0-9]) \\|$").
		FindAllStringSubmatch(content(t, "README.md"), -1)
	confs, err := filepath.Glob("*.conf")
	require.NoError(t, err)
	require.Len(t, recorded, 1+len(confs), "a row for the unit and one for each drop-in")
	for _, row := range recorded {
		t.Run(row[1], func(t *testing.T) {
			want, err := strconv.ParseFloat(row[2], 64)
			require.NoError(t, err)
			require.LessOrEqual(t, exposure(t, row[1]), want)
		})
	}
}

// exposure is systemd-analyze's figure for the unit, from 0 (none) to 10, with
// one drop-in unless it is that of the unit itself.
func exposure(t *testing.T, name string) float64 {
	t.Helper()
	dir := t.TempDir()
	unit := filepath.Join(dir, "tcpdiag.service")
	require.NoError(t, os.WriteFile(unit, []byte(content(t, "tcpdiag.service")), 0o600))
	if name != "tcpdiag" {
		require.NoError(t, os.Mkdir(unit+".d", 0o755))
		require.NoError(t, os.WriteFile(unit+".d/x.conf", []byte(content(t, name+".conf")), 0o600))
	}
	return scored(t, unit)
}

// scored is systemd-analyze's figure for a unit's file.
func scored(t *testing.T, unit string) float64 {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--no-pager", unit).CombinedOutput()
	require.NoError(t, err, "%s", out)
	score := regexp.MustCompile(`Overall exposure level for [a-z-]+\.service: ([0-9.]+) `).FindSubmatch(out)
	require.NotNil(t, score, "%s", out)
	value, err := strconv.ParseFloat(string(score[1]), 64)
	require.NoError(t, err)
	return value
}

// What the unit says it forbids are the very things that it must not forbid:
// the reasons are in the unit.
func TestNothingHidesTheServers(t *testing.T) {
	unit := content(t, "tcpdiag.service")
	require.NotRegexp(t, `(?m)^(ProtectProc=(invisible|noaccess|ptraceable)|ProcSubset=pid|PrivateUsers=yes|PrivateNetwork=yes)`, unit)
	require.Regexp(t, `(?m)^RestrictAddressFamilies=.*AF_NETLINK`, unit)
}

// verify lets systemd-analyze read the installed units and look for what they
// name: programs, manual pages, other units.
func (m *machine) verify() {
	for _, unit := range []string{"tcpdiag.service", "tcpdiag.socket"} {
		out, err := m.try("systemd-analyze", "verify", "--man=no", "/usr/lib/systemd/system/"+unit)
		require.NoError(m.t, err, out)
		require.Empty(m.t, out)
	}
}
