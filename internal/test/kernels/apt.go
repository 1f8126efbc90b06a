package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// archive is an apt of this program's own: its lists and packages are under
// one folder, the machine's own are not touched. apt checks the lists'
// signatures and the packages' checksums.
type archive struct {
	dir   string
	fresh bool          // there was nothing before this run
	spent time.Duration // on fetching
}

// keyring signs all suites that suites names.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// openArchive reads the package lists, unless they are there already.
func openArchive(ctx context.Context, dir string) (*archive, error) {
	a := &archive{dir: dir}
	lists := filepath.Join(dir, "lists")
	for _, d := range []string{filepath.Join(lists, "partial"), filepath.Join(dir, "archives", "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return nil, err
		}
	}
	if err := a.configure(); err != nil { // the folder may have been moved
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "updated")); err == nil {
		return a, nil
	}
	a.fresh = true
	defer a.spend(time.Now())
	mirror, err := machinesMirror(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.list(mirror); err != nil {
		return nil, err
	}
	if _, err := a.run(ctx, dir, "apt-get", "-q", "update"); err != nil {
		return nil, err
	}
	return a, os.WriteFile(filepath.Join(dir, "updated"), nil, 0o644)
}

func (a *archive) spend(since time.Time) { a.spent += time.Since(since) }

// machinesMirror is where this machine's own apt has Debian's packages from.
func machinesMirror(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages").Output()
	if err != nil {
		return "", fmt.Errorf("apt-get indextargets: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if mirror, ok := strings.CutPrefix(strings.TrimSpace(line), "Debian "); ok {
			return mirror, nil
		}
	}
	return "", fmt.Errorf("apt has no mirror of Debian (run apt-get update)")
}

// list names the suites of a mirror.
func (a *archive) list(mirror string) error {
	var sources strings.Builder
	for _, suite := range suites() {
		fmt.Fprintf(&sources, "deb [arch=amd64,arm64 signed-by=%s] %s %s main\n", keyring, mirror, suite)
	}
	return os.WriteFile(filepath.Join(a.dir, "sources.list"), []byte(sources.String()), 0o644)
}

// configure writes apt's settings, whose paths are absolute.
func (a *archive) configure() error {
	settings := fmt.Sprintf(`Dir::Etc::SourceList "%[1]s/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State::Lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s";
Dir::Cache::pkgcache "";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
`, a.dir)
	for name, text := range map[string]string{"apt.conf": settings, "status": ""} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs a command of apt's with this archive's settings.
func (a *archive) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "APT_CONFIG="+filepath.Join(a.dir, "apt.conf"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}

// releases are the kernels that the lists offer.
func (a *archive) releases(ctx context.Context) ([]release, error) {
	out, err := a.run(ctx, a.dir, "apt-cache", "dumpavail")
	if err != nil {
		return nil, err
	}
	return releases(strings.NewReader(out))
}

// unpack makes a folder of packages, unless it is there already. A package may
// say which suite it is to be of: iproute2/bullseye.
func (a *archive) unpack(ctx context.Context, name, arch string, packages ...string) (string, error) {
	root := filepath.Join(a.dir, "unpacked", name)
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	defer a.spend(time.Now())
	temporary, err := os.MkdirTemp(a.dir, "download-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary)
	args := []string{"-qq", "download"}
	for _, p := range packages {
		name, suite, some := strings.Cut(p, "/")
		if name += ":" + arch; some {
			name += "/" + suite
		}
		args = append(args, name)
	}
	if _, err := a.run(ctx, temporary, "apt-get", args...); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(temporary, "*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range debs {
		if _, err := a.run(ctx, temporary, "dpkg-deb", "-x", deb, filepath.Join(temporary, "root")); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return "", err
	}
	return root, os.Rename(filepath.Join(temporary, "root"), root)
}
