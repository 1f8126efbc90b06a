package docker

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// The images under test.
const (
	image = "tcpdiag/tcpdiag:test"
	app   = "tcpdiag/sample-server:test"
	jre   = "eclipse-temurin:17-jre" // made here, under the name of a registry's
)

// locked is how the image is meant to be run, as any user.
func locked() []string {
	return []string{"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"}
}

// buildImages makes tcpdiag's as anybody does who has no registry, and the
// application's on the Debian that is its JRE here.
func (w *world) buildImages(t *testing.T) {
	w.make(t, runtime.GOARCH, image)
	w.docker(t, "import", "-c", "ENV LANG=C.UTF-8", w.Base, jre)
	context := filepath.Join(w.Dir, "sample-server")
	require.NoError(t, os.MkdirAll(filepath.Join(context, "target"), 0o755))
	require.NoError(t, os.Rename(w.Jar, filepath.Join(context, "target", "sample-server.jar")))
	w.docker(t, "build", "-q", "-f", "../compose/app.Dockerfile", "--target", "prebuilt", "-t", app, context)
}

func (w *world) make(t *testing.T, arch, tag string) {
	t.Helper()
	w.makeOf(t, "image", "ARCH="+arch, "IMAGE="+tag)
}

// makeOf runs a target of the Makefile that builds an image.
func (w *world) makeOf(t *testing.T, target string, variables ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", slices.Concat([]string{"-C", "../..", target, "VERSION=1.2.3-test", "REVISION=abcdef", "DOCKER=" + w.client}, variables)...)
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func testImage(t *testing.T, w *world) {
	t.Run("says its version, with no rights at all", func(t *testing.T) {
		out := w.docker(t, slices.Concat([]string{"run", "--rm", "--network", "none"}, locked(), []string{image, "version"})...)
		require.Contains(t, out, "tcpdiag, version 1.2.3-test (revision: abcdef)")
	})
	t.Run("its configuration", func(t *testing.T) {
		for template, want := range map[string]string{
			"{{.Config.User}}":                                             "65532:65532",
			"{{json .Config.Cmd}}":                                         `["agent"]`,
			"{{json .Config.Entrypoint}}":                                  `["/usr/local/bin/tcpdiag"]`,
			"{{json .Config.ExposedPorts}}":                                `{"10889/tcp":{}}`,
			"{{json .Config.Volumes}}":                                     "null",
			"{{json .Config.Healthcheck.Test}}":                            `["CMD","/usr/local/bin/tcpdiag","healthcheck"]`,
			"{{.Os}}/{{.Architecture}}":                                    "linux/" + runtime.GOARCH,
			`{{index .Config.Labels "org.opencontainers.image.version"}}`:  "1.2.3-test",
			`{{index .Config.Labels "org.opencontainers.image.revision"}}`: "abcdef",
			`{{index .Config.Labels "org.opencontainers.image.licenses"}}`: "Apache-2.0",
		} {
			require.Equal(t, want, w.inspect(t, image, template), template)
		}
	})
	t.Run("nothing else in it", func(t *testing.T) {
		require.ElementsMatch(t, []string{"LICENSE", "usr/local/bin/tcpdiag"}, w.files(t, image))
		_, err := w.try(t, "run", "--rm", "--network", "none", "--entrypoint", "/bin/sh", image, "-c", "true")
		require.Error(t, err, "there is no shell")
	})
	t.Run("for the other architecture", func(t *testing.T) {
		other, machine := "arm64", elf.EM_AARCH64
		if runtime.GOARCH == other {
			other, machine = "amd64", elf.EM_X86_64
		}
		w.make(t, other, image+"-"+other)
		require.Equal(t, other, w.inspect(t, image+"-"+other, "{{.Architecture}}"))
		requireStatic(t, w.binary(t, image+"-"+other, "linux/"+other, "tcpdiag"), machine)
	})
}

// requireStatic: an interpreter is the dynamic linker, which is not in the image.
func requireStatic(t *testing.T, program []byte, machine elf.Machine) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(program))
	require.NoError(t, err)
	require.Equal(t, machine, f.Machine)
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type)
	}
}

// files are the image's own: what its layers add.
func (w *world) files(t *testing.T, name string) (files []string) {
	t.Helper()
	for header, layer := range w.archive(t, "save", name) {
		if !strings.HasSuffix(header.Name, "layer.tar") {
			continue
		}
		for in := tar.NewReader(layer); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if h.Typeflag != tar.TypeDir {
				files = append(files, h.Name)
			}
		}
	}
	return files
}

// binary copies the program out of an image, which need not be able to run here.
func (w *world) binary(t *testing.T, name, platform, file string) []byte {
	t.Helper()
	id := w.docker(t, "create", "--platform", platform, name)
	defer w.docker(t, "rm", id)
	for header, content := range w.archive(t, "cp", id+":/usr/local/bin/"+file, "-") {
		require.Equal(t, file, header.Name)
		require.EqualValues(t, 0o755, header.Mode&0o777)
		program, err := io.ReadAll(content)
		require.NoError(t, err)
		return program
	}
	return nil
}

// archive yields the files of the tar that a docker command prints.
func (w *world) archive(t *testing.T, args ...string) func(yield func(*tar.Header, io.Reader) bool) {
	t.Helper()
	out, err := w.command(t.Context(), args...).Output()
	require.NoError(t, err)
	return func(yield func(*tar.Header, io.Reader) bool) {
		for in := tar.NewReader(bytes.NewReader(out)); ; {
			header, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
			if !yield(header, in) {
				return
			}
		}
	}
}

// The command of HEALTHCHECK is the image's own in all of them; it only comes
// more often.
func testHealth(t *testing.T, w *world) {
	const address = "TCPDIAG_HEALTHCHECK_ADDRESS="
	tests := map[string]struct {
		options, args []string
		want, says    string
	}{
		"serving": {nil, nil, "healthy", "healthy: http://127.0.0.1:10889/-/healthy answers"},
		"serving elsewhere": {
			nil,
			[]string{"agent", "--web.listen-address", "127.0.0.1:9100"},
			"unhealthy", "connect: connection refused",
		},
		"serving elsewhere, with its address": {
			[]string{"-e", address + "http://127.0.0.1:9100"},
			[]string{"agent", "--web.listen-address", "127.0.0.1:9100"},
			"healthy", "127.0.0.1:9100/-/healthy answers",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := w.start(t, slices.Concat([]string{"--network", "none", "--health-interval", "500ms", "--health-start-period", "0s"},
				locked(), tt.options, []string{image}, tt.args)...)
			nettest.Within(t, 30*time.Second, tt.want, func() bool { return w.inspect(t, id, "{{.State.Health.Status}}") == tt.want })
			require.Contains(t, w.inspect(t, id, "{{(index .State.Health.Log 0).Output}}"), tt.says)
			if tt.want == "healthy" {
				requireStops(t, w, id)
			}
		})
	}
}

// requireStops: as pid 1 the agent has to heed the signal by itself.
func requireStops(t *testing.T, w *world, id string) {
	t.Helper()
	began := time.Now()
	w.docker(t, "stop", "--time", "10", id)
	require.Less(t, time.Since(began), 4*time.Second)
	require.Equal(t, "0", w.inspect(t, id, "{{.State.ExitCode}}"))
}
