// Package procfile reads the small files and the folders of numbers that the
// kernel has below /proc and in control groups, in few system calls, and takes
// numbers and lines out of them without allocating.
package procfile

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Handle is a file below /proc that is kept open. One of /proc/PID/net is the
// network namespace's, which it keeps alive whatever happens to the process; the
// others are the process's or thread's, and of no later one with its id.
type Handle struct {
	Name string
	fd   int
	buf  []byte
}

// OpenHandle opens a file that has about size bytes; one that is larger costs one growth.
func OpenHandle(name string, size int) (*Handle, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err // to be wrapped
	}
	return &Handle{fd: fd, Name: name, buf: make([]byte, size)}, nil
}

// Read takes the file in one call, because the kernel writes it out again for
// each one: os.File.ReadAt would ask again to be sure of the end.
func (f *Handle) Read() ([]byte, error) {
	for {
		n, err := syscall.Pread(f.fd, f.buf, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, fmt.Errorf("hostproc: %w", &os.PathError{Op: "read", Path: f.Name, Err: err})
		case n < len(f.buf):
			return f.buf[:n], nil
		}
		f.buf = make([]byte, 2*len(f.buf))
	}
}

// Close closes the file.
func (f *Handle) Close() error {
	if f.fd < 0 {
		return os.ErrClosed
	}
	fd := f.fd
	f.fd = -1
	return syscall.Close(fd)
}

// Buffers are what many kept files are read into, one after the other: an agent of a node
// keeps several of some kilobytes open for each pod. The zero value is ready.
type Buffers struct{ free sync.Pool }

// sharedSize is what net/netstat takes on Linux 6.18, and some; one that is too small
// costs one growth.
const sharedSize = 8 << 10

func (b *Buffers) take() *[]byte {
	if buf, ok := b.free.Get().(*[]byte); ok {
		return buf
	}
	return new(make([]byte, sharedSize))
}

// Shared is a kept file without a buffer of its own.
type Shared struct {
	file    *Handle
	buffers *Buffers
}

// Share opens a file.
func (b *Buffers) Share(name string) (*Shared, error) {
	file, err := OpenHandle(name, 0)
	if err != nil {
		return nil, err
	}
	return &Shared{file, b}, nil
}

// Name is the file's.
func (s *Shared) Name() string { return s.file.Name }

// Read calls use with what the file says now, which is valid until it returns.
func (s *Shared) Read(use func(data []byte) error) error {
	buf := s.buffers.take()
	defer s.buffers.free.Put(buf)
	s.file.buf = *buf
	data, err := s.file.Read()
	*buf, s.file.buf = s.file.buf, nil
	if err != nil {
		return err
	}
	return use(data)
}

// Close closes the file.
func (s *Shared) Close() error { return s.file.Close() }

var (
	// ErrNotSupported is the answer of systems other than Linux, and of kernels
	// that lack the file.
	ErrNotSupported = errors.New("not supported on this system")
	// ErrMalformed says that a file of the kernel does not have the form its reader
	// knows.
	ErrMalformed = errors.New("malformed")
)
