package springboot

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// processIn is a process whose working directory is dir.
func processIn(dir string, args ...string) Process {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	return Process{
		Args: args, Env: map[string]string{}, EnvKnown: true,
		Open: func(path string) (*os.File, error) {
			f, err := os.OpenFile(at(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				return nil, err
			}
			if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
				return nil, errors.Join(err, fs.ErrInvalid, f.Close())
			}
			return f, nil
		},
		ReadDir: func(path string) ([]fs.DirEntry, error) { return os.ReadDir(at(path)) },
	}
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// writeZip writes an archive of those entries; names that end in .jar are stored.
func writeZip(t testing.TB, file string, names []string, files map[string]string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	f, err := os.Create(file)
	require.NoError(t, err)
	w := zip.NewWriter(f)
	for _, name := range names {
		method := zip.Deflate
		if strings.HasSuffix(name, ".jar") {
			method = zip.Store
		}
		e, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = e.Write([]byte(files[name]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	require.NoError(t, f.Close())
}

// emptyJar is the content of a jar with nothing but a manifest.
func emptyJar(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "empty.jar")
	writeZip(t, file, []string{manifestName}, map[string]string{manifestName: "Manifest-Version: 1.0\r\n"})
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}
