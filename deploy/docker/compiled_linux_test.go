package docker

import (
	"context"
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// golang is a folder with what the golang image has: the Go that is here, and
// the modules, since nothing can be downloaded inside.
func golang(ctx context.Context, dir string) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	goroot, modules, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := quiet(ctx, "cp", "-rL", goroot, filepath.Join(dir, "go")); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "download")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOFLAGS=-modcacherw", "GOSUMDB=off",
		"GOMODCACHE="+filepath.Join(dir, "mod"), "GOPROXY=file://"+modules+"/cache/download")
	return run(cmd)
}

// testCompiled builds the target that is published, for the architecture that
// this machine does not have.
func testCompiled(t *testing.T, w *world) {
	dir := filepath.Join(w.Dir, "golang")
	require.NoError(t, golang(t.Context(), dir))
	text := `FROM jre:test
COPY go /usr/local/go
COPY mod /go/pkg/mod
ENV PATH=/usr/local/go/bin:/usr/bin:/bin GOPATH=/go GOPROXY=off GOTOOLCHAIN=local
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600))
	w.docker(t, "build", "-q", "-t", "golang:1.26", dir)
	other, machine := "arm64", elf.EM_AARCH64
	if runtime.GOARCH == other {
		other, machine = "amd64", elf.EM_X86_64
	}
	const tag = "tcpdiag/tcpdiag:compiled"
	w.docker(t, "build", "-q", "-f", "Dockerfile", "--network", "none", "--platform", "linux/"+other,
		"--build-arg", "VERSION=1.2.3-test", "--build-arg", "REVISION=abcdef", "-t", tag, "../..")
	require.Equal(t, other, w.inspect(t, tag, "{{.Architecture}}"))
	require.Equal(t, "1.2.3-test", w.inspect(t, tag, `{{index .Config.Labels "org.opencontainers.image.version"}}`))
	program := w.binary(t, tag, "linux/"+other)
	requireStatic(t, program, machine)
	require.Contains(t, string(program), "1.2.3-test", "stamped")
	require.Contains(t, string(program), "abcdef")
}
