package junit_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
)

// schemas are fetched, and are what they were when this was written.
var schemas = []struct {
	reader, sum string
	fetch       func(t *testing.T, dir string) []byte
}{
	{"Jenkins' xUnit plugin (junit-10.xsd)", "a1a816f58d1bf95ebabf371994df0b9246dee66ea9572fbec4f9296f1b2c0ff6", func(t *testing.T, dir string) []byte {
		const version = "8.3.5" // pytest's own tests are held against the same file
		tool(t, "pip3", "download", "-q", "--no-deps", "--no-binary=:all:", "--dest", dir, "pytest=="+version)
		return fromTar(t, filepath.Join(dir, "pytest-"+version+".tar.gz"), "/junit-10.xsd")
	}},
	{"Maven Surefire (surefire-test-report.xsd)", "369dcb5f94b1f673507fa21c51c219b2947b74b6b9c89b41c6cccf62ec5dd8f5", func(t *testing.T, dir string) []byte {
		const artifact = "org.apache.maven.surefire:surefire:3.5.3:zip:source-release"
		tool(t, "mvn", "-q", "-B", "dependency:copy", "-Dartifact="+artifact, "-DoutputDirectory="+dir, "-Dmdep.useBaseVersion=true")
		return fromZip(t, filepath.Join(dir, "surefire-3.5.3-source-release.zip"), "/surefire-test-report.xsd")
	}},
}

func tool(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
	require.NoError(t, err, string(out))
}

func fromTar(t *testing.T, archive, name string) []byte {
	t.Helper()
	f, err := os.Open(archive)
	require.NoError(t, err)
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	require.NoError(t, err)
	for files := tar.NewReader(unpacked); ; {
		h, err := files.Next()
		require.NoError(t, err, name)
		if strings.HasSuffix(h.Name, name) {
			content, err := io.ReadAll(files)
			require.NoError(t, err)
			return content
		}
	}
}

func fromZip(t *testing.T, archive, name string) []byte {
	t.Helper()
	files, err := zip.OpenReader(archive)
	require.NoError(t, err)
	defer files.Close()
	for _, file := range files.File {
		if strings.HasSuffix(file.Name, name) {
			r, err := file.Open()
			require.NoError(t, err)
			defer r.Close()
			content, err := io.ReadAll(r)
			require.NoError(t, err)
			return content
		}
	}
	require.Fail(t, "no "+name)
	return nil
}

// judge is what a schema says of a document; "" if it is valid.
func judge(t *testing.T, schema string, document []byte) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "xmllint", "--noout", "--nonet", "--schema", schema, "-")
	cmd.Stdin = bytes.NewReader(document)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out)
	}
	require.NoError(t, err, string(out))
	return ""
}

func documents(t *testing.T) map[string][]byte {
	t.Helper()
	hostile := "a\x00\u202e]]><b>&\"'"
	out := make(map[string][]byte)
	for name, r := range map[string]*api.Run{
		"lost": {
			Command: hostile, Seconds: 1234.5, Began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Listeners: []api.RunListener{{Port: 8080, Status: "losing", DroppedPackets: 3, Verdict: api.Verdict{Summary: hostile}}, {Port: 8081, Status: "ok"}},
		},
		"failed by --fail-on": {Command: "k6", Failed: true, Status: "saturated", Listeners: []api.RunListener{{Port: 8080, Status: "saturated"}}},
		"nothing seen":        {Command: "k6", Problem: hostile},
		"no server":           {Command: "k6"},
		"an hour":             {Command: "k6", Seconds: 3_600_000, Listeners: []api.RunListener{{Port: 8080, Status: "down"}}},
	} {
		var b bytes.Buffer
		require.NoError(t, runreport.JUnit(&b, r))
		out[name] = b.Bytes()
	}
	return out
}

// TestReaders has each schema judge each document, and one that is none.
func TestReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads the schemas")
	}
	for _, needed := range []string{"mvn", "pip3", "xmllint"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Skipf("needs %s", needed)
		}
	}
	for _, s := range schemas {
		t.Run(s.reader, func(t *testing.T) {
			dir := t.TempDir()
			content := s.fetch(t, dir)
			sum := sha256.Sum256(content)
			require.Equal(t, s.sum, hex.EncodeToString(sum[:]), "another schema")
			schema := filepath.Join(dir, "schema.xsd")
			require.NoError(t, os.WriteFile(schema, content, 0o600))
			for name, document := range documents(t) {
				require.Empty(t, judge(t, schema, document), name)
			}
			lost := string(documents(t)["lost"])
			for _, broken := range []string{
				strings.Replace(lost, ` errors="0"`, "", 1),
				strings.Replace(lost, ` name="port 8080"`, "", 1),
				strings.Replace(lost, "<testcase ", `<testcase nobody="knows" `, 1),
				strings.Replace(lost, "</testsuite>", "<listener/></testsuite>", 1),
			} {
				require.NotEqual(t, lost, broken)
				require.NotEmpty(t, judge(t, schema, []byte(broken)), "it takes what is none:\n%s", broken)
			}
		})
	}
}
