package catalina_test

import (
	"archive/zip"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/catalina"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// process is a Tomcat whose files stand in a folder of the test: catalina.base
// is /base, catalina.home is /home.
type process struct {
	catalina.Process
	dir string
}

func newProcess(t testing.TB, version string, files map[string]string) *process {
	t.Helper()
	p := &process{dir: t.TempDir()}
	for name, text := range files {
		p.write(t, name, text)
	}
	if version != "" {
		p.jar(t, "/home/lib/catalina.jar", map[string]string{
			"org/apache/catalina/util/ServerInfo.properties": "# comment\nserver.info=Apache Tomcat/" + version + "\nserver.number=" + strings.Split(version, "-")[0] + ".0\n",
		})
	}
	p.Properties = map[string]catalina.Property{}
	p.set("catalina.base", "/base")
	p.set("catalina.home", "/home")
	p.Open = func(name string) (*os.File, error) {
		if !filepath.IsAbs(name) {
			name = "/cwd/" + name
		}
		return os.Open(filepath.Join(p.dir, name))
	}
	return p
}

func (p *process) set(name, text string) {
	p.Properties[name] = catalina.Property{Text: text, Kind: model.SourceProperty, Source: "-D" + name}
}

func property(name, text string) func(*process) { return func(p *process) { p.set(name, text) } }

// propertiesFile is a catalina.properties of that text.
func propertiesFile(text string) func(*process) {
	return func(p *process) {
		_ = os.WriteFile(filepath.Join(p.dir, "base/conf/catalina.properties"), []byte(text), 0o600)
	}
}

func (p *process) write(t testing.TB, name, text string) {
	t.Helper()
	path := filepath.Join(p.dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func (p *process) jar(t testing.TB, name string, entries map[string]string) {
	t.Helper()
	var b strings.Builder
	z := zip.NewWriter(&b)
	for entry, text := range entries {
		w, err := z.Create(entry)
		require.NoError(t, err)
		_, err = w.Write([]byte(text))
		require.NoError(t, err)
	}
	require.NoError(t, z.Close())
	p.write(t, name, b.String())
}

// load reads a server.xml of that text.
func load(t testing.TB, version, serverXML string, change ...func(*process)) (*catalina.Server, error) {
	t.Helper()
	p := newProcess(t, version, map[string]string{"/base/conf/server.xml": serverXML})
	for _, f := range change {
		f(p)
	}
	return catalina.Load(&p.Process)
}

// connector is the only connector of a server with one service.
func connector(t testing.TB, version, inside string, change ...func(*process)) catalina.Connector {
	t.Helper()
	s, err := load(t, version, "<Server>\n<Service>\n"+inside+"\n</Service>\n</Server>", change...)
	require.NoError(t, err)
	require.Len(t, s.Connectors, 1)
	return s.Connectors[0]
}

func TestNoFiles(t *testing.T) {
	p := newProcess(t, "", nil)
	s, err := catalina.Load(&p.Process)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Equal(t, "conf/server.xml", s.File)
	require.Len(t, s.Unavailable, 1, "the version")
	require.False(t, s.Version.Known())
}
