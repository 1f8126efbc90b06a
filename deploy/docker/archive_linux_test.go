package docker

import (
	"debug/elf"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const archiveImage = "tcpdiag/tcpdiag-archive:test"

// The archiver's image is as bare as the agent's, and becomes healthy without a port.
func testArchiver(t *testing.T, w *world) {
	w.makeOf(t, "image", "PROGRAM=tcpdiag-archive", "ARCH="+runtime.GOARCH, "IMAGE="+archiveImage)
	for template, want := range map[string]string{
		"{{.Config.User}}":                                            "65532:65532",
		"{{json .Config.Cmd}}":                                        `["run"]`,
		"{{json .Config.Entrypoint}}":                                 `["/usr/local/bin/tcpdiag-archive"]`,
		"{{json .Config.ExposedPorts}}":                               "null",
		"{{json .Config.Healthcheck.Test}}":                           `["CMD","/usr/local/bin/tcpdiag-archive","healthcheck"]`,
		`{{index .Config.Labels "org.opencontainers.image.version"}}`: "1.2.3-test",
	} {
		require.Equal(t, want, w.inspect(t, archiveImage, template), template)
	}
	require.ElementsMatch(t, []string{"LICENSE", "usr/local/bin/tcpdiag-archive"}, w.files(t, archiveImage))
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	id := w.start(t, slices.Concat([]string{"--network", "none", "--health-interval", "500ms", "--health-start-period", "0s", "--tmpfs", "/var/lib/tcpdiag-archive:uid=65532,mode=0700"},
		locked(), []string{archiveImage, "run", "--bucket", "file:///var/lib/tcpdiag-archive/bucket?create_dir=true"})...)
	requireStatic(t, w.binary(t, archiveImage, "linux/"+runtime.GOARCH, "tcpdiag-archive"), machine)
	nettest.Within(t, 30*time.Second, "healthy", func() bool { return w.inspect(t, id, "{{.State.Health.Status}}") == "healthy" })
	requireStops(t, w, id)
}
