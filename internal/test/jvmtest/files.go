// Package jvmtest is for tests: the files of a JVM that is not there, its jars among them.
package jvmtest

import (
	"archive/zip"
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Manifest is the name of a jar's manifest.
const Manifest = "META-INF/MANIFEST.MF"

// Dir is the working directory of a process.
type Dir string

func (d Dir) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(string(d), path)
}

// Open opens a regular file as the process sees it; other files are fs.ErrInvalid.
func (d Dir) Open(path string) (*os.File, error) {
	f, err := os.OpenFile(d.at(path), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fs.ErrInvalid, f.Close())
	}
	return f, nil
}

// ReadDir lists a directory as the process sees it.
func (d Dir) ReadDir(path string) ([]fs.DirEntry, error) { return os.ReadDir(d.at(path)) }

// WriteFiles writes files below dir, with the folders that they need.
func WriteFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
}

// WriteZip writes an archive of those entries; names that end in .jar are stored.
func WriteZip(t testing.TB, file string, names []string, files map[string]string) {
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

// EmptyJar is the content of a jar with nothing but a manifest.
func EmptyJar(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "empty.jar")
	WriteZip(t, file, []string{Manifest}, map[string]string{Manifest: "Manifest-Version: 1.0\r\n"})
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(data)
}

// ZipOf is an archive of those entries, each stored or deflated.
func ZipOf(t testing.TB, method uint16, entries map[string]string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		require.NoError(t, err)
		_, err = e.Write([]byte(entries[name]))
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// Allocated is the memory that was allocated so far, in bytes.
func Allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
