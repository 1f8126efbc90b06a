package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// jreBase is a Debian with a JRE as a tar, made once and kept in the user's
// cache: the place that a registry's image has elsewhere.
func jreBase(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no HOME
	}
	cache = filepath.Join(cache, "tcpdiag")
	path := filepath.Join(cache, "bookworm-openjdk-17-jre.tar")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(cache, "debootstrap-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	fmt.Println("making a Debian with a JRE (once) …")
	root, made := filepath.Join(work, "root"), filepath.Join(work, "base.tar")
	if err := quiet(ctx, "debootstrap", "--variant=minbase", "--include=openjdk-17-jre-headless", "bookworm", root); err != nil {
		return "", err
	}
	if err := quiet(ctx, "tar", "-C", root, "--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*",
		"--exclude=./usr/share/doc/*", "--exclude=./usr/share/locale/*", "-cf", made, "."); err != nil {
		return "", err
	}
	return path, os.Rename(made, path)
}

// quiet runs a program whose output matters only when it fails.
func quiet(ctx context.Context, name string, args ...string) error {
	return run(exec.CommandContext(ctx, name, args...))
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}
