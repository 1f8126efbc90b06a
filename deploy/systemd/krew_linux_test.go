package systemd

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// krewModule has krew and the program with which krew's index checks what is sent to it.
const krewModule = "sigs.k8s.io/krew/cmd/"

const krewVersion = "@v0.4.3"

// krewManifest is what is read here of the plugin's manifest.
type krewManifest struct {
	Spec struct {
		Version   string
		Platforms []struct {
			Bin, URI, SHA256 string
			Selector         struct {
				MatchLabels struct{ OS, Arch string } `yaml:"matchLabels"`
			}
		}
	}
}

// TestKrew: krew's own validator takes the manifest, and krew installs each platform's archive by it.
func TestKrew(t *testing.T) {
	manifest := artifact(t, "krew/tcpdiag.yaml")
	bin := t.TempDir()
	for _, name := range []string{"krew", "validate-krew-manifest"} {
		install := exec.CommandContext(t.Context(), "go", "install", krewModule+name+krewVersion)
		install.Env = append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
		out, err := install.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	validate := func(path string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "validate-krew-manifest"), "-skip-install", "-manifest", path).CombinedOutput()
		return string(out), err
	}
	out, err := validate(manifest)
	require.NoError(t, err, out)
	for was, is := range map[string]string{"sha256: ": "sha256: x", "version: v": "version: ", "os: linux": "os: plan9"} {
		planted := filepath.Join(t.TempDir(), "tcpdiag.yaml")
		require.NoError(t, os.WriteFile(planted, []byte(strings.Replace(content(t, manifest), was, is, 1)), 0o600))
		out, err := validate(planted)
		require.Error(t, err, "%s is taken: %s", is, out)
	}

	var m krewManifest
	require.NoError(t, yaml.Unmarshal([]byte(content(t, manifest)), &m))
	require.NotEmpty(t, m.Spec.Platforms)
	here := false
	for _, p := range m.Spec.Platforms {
		os, arch := p.Selector.MatchLabels.OS, p.Selector.MatchLabels.Arch
		t.Run(os+"-"+arch, func(t *testing.T) {
			archive := filepath.Join(filepath.Dir(filepath.Dir(manifest)), path.Base(p.URI))
			sum := sha256.Sum256([]byte(content(t, archive)))
			require.Equal(t, hex.EncodeToString(sum[:]), p.SHA256)
			runs := os == "linux" && arch == runtime.GOARCH
			here = here || runs
			installedByKrew(t, filepath.Join(bin, "krew"), manifest, archive, os, arch, runs)
		})
	}
	require.True(t, here || runtime.GOARCH != "amd64", "one of them is this machine's")
}

// installedByKrew installs the archive as for one platform, tries what can run here, and removes it.
func installedByKrew(t *testing.T, krew, manifest, archive, platform, arch string, runs bool) {
	t.Helper()
	root := t.TempDir()
	run := func(program string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = append(os.Environ(), "KREW_ROOT="+root, "KREW_OS="+platform, "KREW_ARCH="+arch, "KREW_NO_UPGRADE_CHECK=1", "HOME="+root)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s %s: %s", program, strings.Join(args, " "), out)
		return string(out)
	}
	// An index of its own, with this plugin in it as krew's index will have it.
	index := filepath.Join(root, "index", "default")
	require.NoError(t, os.MkdirAll(filepath.Join(index, "plugins"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(index, "plugins", "tcpdiag.yaml"), []byte(content(t, manifest)), 0o600))
	run("git", "-C", index, "init", "--quiet")
	run("git", "-C", index, "remote", "add", "origin", index)
	require.Contains(t, run(krew, "search", "tcpdiag"), "why a Tomcat's clients are turned away")
	require.Contains(t, run(krew, "install", "--manifest="+manifest, "--archive="+archive), "Installed plugin: tcpdiag")
	require.Contains(t, run(krew, "list"), "tcpdiag")
	linked, err := filepath.Glob(filepath.Join(root, "bin", "kubectl-tcpdiag*"))
	require.NoError(t, err)
	require.Len(t, linked, 1)
	if runs {
		require.Contains(t, run(linked[0], "--version"), "kubectl-tcpdiag, version")
		require.Contains(t, run(linked[0], "--help"), "kubectl tcpdiag deploy/orders")
	}
	run(krew, "uninstall", "tcpdiag")
	left, err := filepath.Glob(filepath.Join(root, "bin", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestPlugin: its deb and rpm have the program and what kubectl asks for completions, and no service.
func TestPlugin(t *testing.T) {
	want := []string{"/usr/bin/kubectl-tcpdiag", "/usr/bin/kubectl_complete-tcpdiag"}
	lists := map[string]string{
		"deb": string(output(t, "sh", "-c", `dpkg-deb --fsys-tarfile "$0" | tar -t | sed -n 's/^\.\(.*[^/]\)$/\1/p'`, artifact(t, "kubectl-tcpdiag_*_linux_amd64.deb"))),
		"rpm": string(output(t, "sh", "-c", `rpm -qp --queryformat '[%{FILEMODES:perms} %{FILENAMES}\n]' "$0" | sed -n 's/^-[^ ]* //p'`, artifact(t, "kubectl-tcpdiag_*_linux_amd64.rpm"))),
	}
	for format, list := range lists {
		var programs []string
		for _, name := range strings.Fields(list) {
			if strings.HasPrefix(name, "/usr/bin/") {
				programs = append(programs, name)
			} else {
				require.Regexp(t, "^/usr/share/(doc|licenses)/kubectl-tcpdiag/", name)
			}
		}
		require.ElementsMatch(t, want, programs, format)
	}
	require.Empty(t, strings.TrimSpace(string(output(t, "rpm", "-qp", "--scripts", artifact(t, "kubectl-tcpdiag_*_linux_amd64.rpm")))))
}
