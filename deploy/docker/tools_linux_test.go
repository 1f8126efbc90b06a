package docker

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The programs that Debian has not, or not as they are used today.
const (
	k6Version      = "v1.8.1"
	composeVersion = "v2.40.3"
)

// k6 is where the lab looks for it, too.
func k6(ctx context.Context) (string, error) {
	return tool(ctx, "k6", "go.k6.io/k6", k6Version)
}

// composePlugin is `docker compose`.
func composePlugin(ctx context.Context) (string, error) {
	return tool(ctx, "docker-compose", "github.com/docker/compose/v2/cmd", composeVersion)
}

// tool is a program of a Go module, built once and kept in the user's cache. It
// is required by a module of its own, since `go install` refuses a module that
// excludes versions.
func tool(ctx context.Context, name, pkg, version string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir() // no HOME
	}
	path := filepath.Join(cache, "tcpdiag", name+"-"+version)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	work, err := os.MkdirTemp(filepath.Dir(path), name+"-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	fmt.Printf("building %s (once) …\n", name)
	for _, args := range [][]string{
		{"mod", "init", "tool"},
		{"get", pkg + "@" + version},
		{"build", "-trimpath", "-ldflags", "-s -w", "-o", name, pkg},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env = work, append(os.Environ(), "GOFLAGS=", "GOWORK=off")
		if err := run(cmd); err != nil {
			return "", err
		}
	}
	return path, os.Rename(filepath.Join(work, name), path)
}
