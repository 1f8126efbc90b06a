package cluster

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// What build.sh makes of Debian and of the Tomcat project's archive, in place
// of a registry's image.
const (
	jre    = "jre.tar"
	tomcat = "tomcat"
)

// imageConfig is the part of an image's configuration that is used here.
type imageConfig struct {
	Entrypoint, Cmd, Env []string `json:",omitempty"`
	User, WorkingDir     string   `json:",omitempty"`
}

// writeImages makes an archive each of the images that the manifests name.
func writeImages(t *testing.T, c *cluster) []string {
	t.Helper()
	server := writeLayer(t, c, "tomcat.layer", func(w *tar.Writer) { addTomcat(t, w, c.program(tomcat)) })
	return append(writeOwnImages(t, c), writeImage(t, c.file("tomcat.image"), "tomcat:10.1-jre17",
		imageConfig{
			Cmd: []string{"catalina.sh", "run"}, WorkingDir: "/usr/local/tomcat",
			Env: []string{"PATH=/usr/local/tomcat/bin:/usr/bin:/bin", "CATALINA_HOME=/usr/local/tomcat"},
		}, c.program(jre), server))
}

// writeOwnImages are the sandbox's and tcpdiag's, which has the program where its own image does.
func writeOwnImages(t *testing.T, c *cluster) []string {
	t.Helper()
	pause := writeLayer(t, c, "pause.layer", func(w *tar.Writer) { addFile(t, w, c.program("pause"), "pause", 0o755) })
	agent := writeLayer(t, c, "tcpdiag.layer", func(w *tar.Writer) { addFile(t, w, c.program("tcpdiag"), "usr/local/bin/tcpdiag", 0o755) })
	return []string{
		writeImage(t, c.file("pause.image"), "pause:test", imageConfig{Entrypoint: []string{"/pause"}}, pause),
		writeImage(t, c.file("tcpdiag.image"), "tcpdiag/tcpdiag:0.1.0",
			imageConfig{Entrypoint: []string{"/usr/local/bin/tcpdiag"}, User: "65532:65532"}, agent),
	}
}

func writeLayer(t *testing.T, c *cluster, name string, add func(w *tar.Writer)) string {
	t.Helper()
	file, err := os.Create(c.file(name))
	require.NoError(t, err)
	defer file.Close()
	w := tar.NewWriter(file)
	add(w)
	require.NoError(t, w.Close())
	return file.Name()
}

// addTomcat adds the distribution as the official image has it: readable by all.
func addTomcat(t *testing.T, w *tar.Writer, dir string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(source string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, source)
		name := path.Join("usr/local/tomcat", inside)
		if !d.IsDir() {
			addFile(t, w, source, name, 0o755)
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	}))
}

func addFile(t *testing.T, w *tar.Writer, source, name string, mode int64) {
	t.Helper()
	content, err := os.ReadFile(source)
	require.NoError(t, err)
	addContent(t, w, name, content, mode)
}

func addContent(t *testing.T, w *tar.Writer, name string, content []byte, mode int64) {
	t.Helper()
	require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: mode}))
	_, err := w.Write(content)
	require.NoError(t, err)
}

// writeImage writes an image as `docker save` does; its path.
func writeImage(t *testing.T, name, tag string, config imageConfig, layers ...string) string {
	t.Helper()
	file, err := os.Create(name)
	require.NoError(t, err)
	defer file.Close()
	w := tar.NewWriter(file)
	var ids, names []string
	for _, layer := range layers {
		sum, size := digest(t, layer)
		ids, names = append(ids, "sha256:"+sum), append(names, sum+".tar")
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: sum + ".tar", Size: size, Mode: 0o644}))
		copyInto(t, w, layer)
	}
	addJSON(t, w, "config.json", map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": config,
		"rootfs": map[string]any{"type": "layers", "diff_ids": ids},
	})
	addJSON(t, w, "manifest.json", []map[string]any{{"Config": "config.json", "RepoTags": []string{tag}, "Layers": names}})
	require.NoError(t, w.Close())
	return name
}

func addJSON(t *testing.T, w *tar.Writer, name string, v any) {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	addContent(t, w, name, text, 0o644)
}

func digest(t *testing.T, name string) (sum string, size int64) {
	t.Helper()
	h := sha256.New()
	size = copyInto(t, h, name)
	return hex.EncodeToString(h.Sum(nil)), size
}

func copyInto(t *testing.T, w io.Writer, name string) int64 {
	t.Helper()
	file, err := os.Open(name)
	require.NoError(t, err)
	defer file.Close()
	n, err := io.Copy(w, file)
	require.NoError(t, err)
	return n
}
