package docker

import (
	"debug/elf"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// testCompiled builds the target that is published, for the architecture that
// this machine does not have.
func testCompiled(t *testing.T, w *world) {
	other, machine := "arm64", elf.EM_AARCH64
	if runtime.GOARCH == other {
		other, machine = "amd64", elf.EM_X86_64
	}
	const tag = "tcpdiag/tcpdiag:compiled"
	w.docker(t, "build", "-q", "-f", "Dockerfile", "--platform", "linux/"+other,
		"--build-arg", "GOPROXY="+w.goproxy, "--build-arg", "VERSION=1.2.3-test", "--build-arg", "REVISION=abcdef", "-t", tag, "../..")
	require.Equal(t, other, w.inspect(t, tag, "{{.Architecture}}"))
	require.Equal(t, "1.2.3-test", w.inspect(t, tag, `{{index .Config.Labels "org.opencontainers.image.version"}}`))
	program := w.binary(t, tag, "linux/"+other, "tcpdiag")
	requireStatic(t, program, machine)
	require.Contains(t, string(program), "1.2.3-test", "stamped")
	require.Contains(t, string(program), "abcdef")
}
