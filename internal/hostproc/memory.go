package hostproc

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Memory reads files behind which is the memory of a process: its cmdline, environ,
// maps and mem. That memory may be mapped from a file system that never answers, and
// who reads it then cannot even be killed. So it is another process that reads
// (package memory).
type Memory interface {
	// ReadAt reads that many bytes at each address of an open file, nil where there is
	// nothing to read, fewer at the end. owner is whose process it is.
	ReadAt(owner string, f *os.File, at []int64, size int) ([][]byte, error)
}

// WithMemory is the same with somebody who reads the memory of processes.
func (fs FS) WithMemory(m Memory) FS {
	fs.memory = m
	return fs
}

// ReadAt reads what is behind the memory of a process. Without somebody who reads it
// nothing is read.
func (fs FS) ReadAt(owner string, f *os.File, at []int64, size int) ([][]byte, error) {
	if fs.memory == nil {
		return nil, ErrNotSupported
	}
	return fs.memory.ReadAt(owner, f, at, size)
}

// MemoryFile reads a file behind the memory of a process from its beginning.
type MemoryFile struct {
	fs    FS
	owner string
	file  *os.File
	at    int64
}

// OpenMemory opens one; owner is whose process it is.
func (fs FS) OpenMemory(owner string, pid int, name string) (*MemoryFile, error) {
	f, err := os.Open(fs.Path(pid, name))
	if err != nil {
		return nil, fs.Wrap(pid, name, err)
	}
	return &MemoryFile{fs: fs, owner: owner, file: f}, nil
}

// Read implements io.Reader.
func (m *MemoryFile) Read(p []byte) (int, error) {
	parts, err := m.fs.ReadAt(m.owner, m.file, []int64{m.at}, min(len(p), maxPart))
	if err != nil {
		return 0, err
	}
	n := copy(p, parts[0])
	if m.at += int64(n); n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// maxPart is how much is asked for at once.
const maxPart = 32 << 10

// Close closes the file.
func (m *MemoryFile) Close() { _ = m.file.Close() }

// Cmdline is a process's command line; empty for kernel threads and zombies. Any user
// may open it.
func (fs FS) Cmdline(owner string, pid int) ([]string, error) {
	m, err := fs.OpenMemory(owner, pid, "cmdline")
	if err != nil {
		return nil, err
	}
	defer m.Close()
	text, err := io.ReadAll(io.LimitReader(m, maxWords+1))
	switch {
	case err != nil:
		return nil, fs.Wrap(pid, "cmdline", err)
	case len(text) > maxWords:
		return nil, fs.Wrap(pid, "cmdline", fmt.Errorf("%w (%d bytes)", ErrTooLong, maxWords))
	}
	return splitWords(text), nil
}

func splitWords(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}
