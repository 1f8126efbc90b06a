package classpath

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/bounded"
	"github.com/tcpdiag/tcpdiag/internal/test/jvmtest"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func openZip(data []byte) (*zipDir, error) {
	return readZip(bytes.NewReader(data), int64(len(data)), func([]byte) bool { return true }, new(newArchives()))
}

func TestReadZip(t *testing.T) {
	inner := jvmtest.ZipOf(t, zip.Deflate, map[string]string{"application.yml": "server.port: 1\n"})
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		data := jvmtest.ZipOf(t, method, map[string]string{"a.txt": "hello", "lib/x.jar": string(inner), "empty": ""})
		for name, prefix := range map[string]string{"plain": "", "executable": "#!/bin/bash\nexec java -jar $0\n"} {
			t.Run(fmt.Sprintf("method %d, %s", method, name), func(t *testing.T) {
				z, err := openZip(append([]byte(prefix), data...))
				require.NoError(t, err)
				require.Equal(t, []string{"a.txt", "empty", "lib/x.jar"}, z.names)
				text, err := z.read("a.txt", 5)
				require.NoError(t, err)
				require.Equal(t, "hello", string(text))
				_, err = z.read("a.txt", 4)
				require.ErrorIs(t, err, bounded.ErrTooLarge)
				_, err = z.read("none", 4)
				require.ErrorIs(t, err, errNoEntry)
				n, err := z.nested("lib/x.jar", keepConfig, new(newArchives()))
				require.NoError(t, err)
				text, err = n.read("application.yml", 100)
				require.NoError(t, err)
				require.Equal(t, "server.port: 1\n", string(text))
			})
		}
	}
}

// More than 65,535 entries make the writer use the zip64 records.
func TestReadZip64(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := range 70_000 {
		_, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("c/%d.class", i)})
		require.NoError(t, err)
	}
	e, err := w.Create("application.yml")
	require.NoError(t, err)
	_, err = io.WriteString(e, "x: 1")
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for name, prefix := range map[string]string{"plain": "", "executable": "#!/bin/sh\n"} {
		t.Run(name, func(t *testing.T) {
			data := append([]byte(prefix), buf.Bytes()...)
			z, err := readZip(bytes.NewReader(data), int64(len(data)), keepConfig, new(newArchives()))
			require.NoError(t, err)
			require.Equal(t, []string{"application.yml"}, z.names)
			text, err := z.read("application.yml", 10)
			require.NoError(t, err)
			require.Equal(t, "x: 1", string(text))
		})
	}
}

// An entry of a size above 4 GiB has its figures in the zip64 extra field.
func TestZip64Entry(t *testing.T) {
	extra := binary.LittleEndian.AppendUint16(nil, 7)
	extra = binary.LittleEndian.AppendUint16(extra, 1)
	extra = append(extra, 0)
	extra = binary.LittleEndian.AppendUint16(extra, zip64ExtraID)
	extra = binary.LittleEndian.AppendUint16(extra, 16)
	extra = binary.LittleEndian.AppendUint64(extra, 5<<30)
	extra = binary.LittleEndian.AppendUint64(extra, 6<<30)
	e := zipEntry{size: sizeIn64, packed: 77, headers: sizeIn64}
	e.wide(extra)
	require.Equal(t, zipEntry{size: 5 << 30, packed: 77, headers: 6 << 30}, e)
}

func TestReadZipMalformed(t *testing.T) {
	good := jvmtest.ZipOf(t, zip.Deflate, map[string]string{"a.txt": strings.Repeat("hello", 100)})
	patched := func(at int, b ...byte) []byte {
		data := bytes.Clone(good)
		copy(data[at:], b)
		return data
	}
	end := len(good) - endLen
	tests := map[string][]byte{
		"empty":                         nil,
		"text":                          []byte("server.port=1\n"),
		"truncated at the end":          good[:len(good)-1],
		"half":                          good[:len(good)/2],
		"directory longer than file":    patched(end+12, 0xff, 0xff, 0xff, 0x7f),
		"directory offset behind end":   patched(end+16, 0xff, 0xff, 0xff, 0x00),
		"zip64 mark without its record": patched(end+12, 0xff, 0xff, 0xff, 0xff),
		"entry's name too long":         patched(bytes.Index(good, []byte("PK\x01\x02"))+28, 0xff, 0xff),
		"entry's comment too long":      patched(bytes.Index(good, []byte("PK\x01\x02"))+32, 0xff, 0xff),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := openZip(data)
			require.ErrorIs(t, err, errZip)
		})
	}
}

// What is behind a broken local header is never returned: that is how a jar
// looks that was replaced while its directory was being read.
func TestZipEntryReplaced(t *testing.T) {
	data := jvmtest.ZipOf(t, zip.Deflate, map[string]string{"a.txt": strings.Repeat("hello", 100)})
	z, err := openZip(data)
	require.NoError(t, err)
	copy(data, "XXXX")
	_, err = z.read("a.txt", 1000)
	require.ErrorIs(t, err, errZip)
	require.ErrorContains(t, err, "replaced while running")

	copy(data, "PK\x03\x04")
	copy(data[40:], bytes.Repeat([]byte{0xff}, 10))
	_, err = z.read("a.txt", 1000)
	require.Error(t, err)
}

func TestZipEntryUnreadable(t *testing.T) {
	data := jvmtest.ZipOf(t, zip.Store, map[string]string{"a.txt": "hello"})
	header := bytes.Index(data, []byte("PK\x01\x02"))
	encrypted, method := bytes.Clone(data), bytes.Clone(data)
	encrypted[header+8] |= flagEncrypted
	method[header+10] = 12 // bzip2
	for name, d := range map[string][]byte{"encrypted": encrypted, "compression method": method} {
		z, err := openZip(d)
		require.NoError(t, err)
		_, err = z.read("a.txt", 100)
		require.ErrorIs(t, err, errZip)
		require.ErrorContains(t, err, name)
	}
}

// A bomb of 1 GiB in 1 MiB is inflated no further than the bound.
func TestZipBomb(t *testing.T) {
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	e, err := w.Create("application.yml")
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	for range 256 {
		_, err = e.Write(zeros)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	z, err := openZip(buf.Bytes())
	require.NoError(t, err)
	before := jvmtest.Allocated()
	_, err = z.read("application.yml", maxLoaderFile)
	require.ErrorIs(t, err, bounded.ErrTooLarge)
	require.Less(t, jvmtest.Allocated()-before, uint64(8*maxLoaderFile))
}

// Of a jar of 2 GiB only its end is read.
func TestZipHuge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "huge.jar")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(2<<30)) // a hole, in front of the archive
	_, err = f.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	_, err = f.Write(jvmtest.ZipOf(t, zip.Deflate, map[string]string{"application.yml": "x: 1"}))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	require.NoError(t, err)
	counted := &countingReader{r: f}
	z, err := readZip(counted, info.Size(), keepAll, new(newArchives()))
	require.NoError(t, err)
	text, err := z.read("application.yml", 100)
	require.NoError(t, err)
	require.Equal(t, "x: 1", string(text))
	require.Less(t, counted.n, 300<<10)
}

type countingReader struct {
	r io.ReaderAt
	n int
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n += n
	return n, err
}

// A directory that claims to be larger than any real one is not walked.
func TestZipDirectoryTooLarge(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bomb.jar")
	f, err := os.Create(file)
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	const size = 100 << 20
	rec := make([]byte, endLen)
	binary.LittleEndian.PutUint32(rec, endSignature)
	binary.LittleEndian.PutUint16(rec[10:], 60_000)
	binary.LittleEndian.PutUint32(rec[12:], size)
	require.NoError(t, f.Truncate(size))
	_, err = f.WriteAt(rec, size)
	require.NoError(t, err)
	_, err = readZip(f, size+endLen, keepAll, new(newArchives()))
	require.ErrorIs(t, err, bounded.ErrTooLarge)
}

// Against archive/zip: what both can read, both read alike.
func FuzzReadZip(f *testing.F) {
	m := mutate.Into(f)
	m.Add(jvmtest.ZipOf(f, zip.Deflate, map[string]string{"a": "1", "b/c.yml": "server.port: 1"}))
	m.Add(jvmtest.ZipOf(f, zip.Store, map[string]string{"a": "1"}))
	m.Fuzz(func(t *testing.T, data []byte) {
		z, err := openZip(data)
		if err != nil {
			require.True(t, errors.Is(err, errZip) || errors.Is(err, bounded.ErrTooLarge), "%v", err)
			return
		}
		for _, name := range z.names {
			text, err := z.read(name, 1<<16)
			require.LessOrEqual(t, len(text), 1<<16)
			if err == nil {
				_, _ = z.nested(name, keepConfig, new(newArchives()))
			}
		}
	})
}
