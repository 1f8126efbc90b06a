package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The packages' scripts with each argument that dpkg and rpm call them with, twice, and with systemctl failing: they end
// well, ask systemd for what is expected, and touch nothing else, so that no link in a folder of theirs can be followed.
func TestPackageScripts(t *testing.T) {
	const agent, archiver = "tcpdiag.service", "tcpdiag-archive.service"
	reload, restart := "daemon-reload\n", func(unit string) string { return "try-restart " + unit + "\n" }
	users := "sysusers /usr/lib/sysusers.d/tcpdiag-archive.conf\n"
	ended := func(units string) string { return "--no-reload disable " + units + "\nstop " + units + "\n" }
	for _, c := range []struct{ script, args, want string }{
		{"postinstall.sh", "configure ", reload},
		{"postinstall.sh", "configure 1.0", reload + restart(agent)},
		{"postinstall.sh", "1", reload},
		{"postinstall.sh", "2", reload + restart(agent)},
		{"postinstall.sh", "abort-upgrade 1.0", ""},
		{"postinstall.sh", "abort-remove", ""},
		{"postinstall.sh", "abort-deconfigure in-favour x 1", ""},
		{"postinstall.sh", "triggered x", ""},
		{"preremove.sh", "remove", ended("tcpdiag.socket " + agent)},
		{"preremove.sh", "0", ended("tcpdiag.socket " + agent)},
		{"preremove.sh", "upgrade 2.0", ""},
		{"preremove.sh", "deconfigure in-favour x 1", ""},
		{"preremove.sh", "failed-upgrade 1.0", ""},
		{"preremove.sh", "1", ""},
		{"postremove.sh", "remove", reload},
		{"postremove.sh", "purge", reload},
		{"postremove.sh", "upgrade 2.0", reload},
		{"postremove.sh", "abort-install", reload},
		{"postremove.sh", "0", reload},
		{"postremove.sh", "1", reload},
		{"archive-postinstall.sh", "configure ", users + reload + restart(agent)},
		{"archive-postinstall.sh", "configure 1.0", users + reload + restart(archiver)},
		{"archive-postinstall.sh", "1", users + reload + restart(agent)},
		{"archive-postinstall.sh", "2", users + reload + restart(archiver)},
		{"archive-postinstall.sh", "abort-upgrade 1.0", ""},
		{"archive-preremove.sh", "remove", ended(archiver)},
		{"archive-preremove.sh", "0", ended(archiver)},
		{"archive-preremove.sh", "upgrade 2.0", ""},
		{"archive-preremove.sh", "1", ""},
	} {
		for _, status := range []string{"0", "1"} {
			t.Run(c.script+" "+c.args+" "+status, func(t *testing.T) {
				text, err := os.ReadFile(filepath.Join("../packages", c.script))
				require.NoError(t, err)
				// Whether systemd runs is said by a folder, which is another one here.
				dir := t.TempDir()
				require.Contains(t, string(text), "/run/systemd/system")
				text = []byte(strings.ReplaceAll(string(text), "/run/systemd/system", dir))
				log := filepath.Join(dir, "log")
				for name, line := range map[string]string{
					"systemctl": "echo \"$*\" >>" + log + "; exit " + status, "systemd-sysusers": "echo \"sysusers $*\" >>" + log,
				} {
					require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+line+"\n"), 0o755))
				}
				for range 2 {
					require.NoError(t, os.WriteFile(log, nil, 0o600))
					args := append([]string{"-euc", string(text), c.script}, strings.Split(c.args, " ")...)
					cmd := exec.CommandContext(t.Context(), "/bin/sh", args...)
					cmd.Env = []string{"PATH=" + dir} // no other program can be run
					cmd.Dir = dir
					out, err := cmd.CombinedOutput()
					require.NoError(t, err, "%s", out)
					require.Equal(t, c.want, content(t, log))
				}
			})
		}
	}
}
