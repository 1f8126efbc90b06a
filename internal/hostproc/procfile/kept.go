package procfile

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Kept is a file below /proc that is kept open. One of /proc/PID/net is the
// network namespace's, which it keeps alive whatever happens to the process; the
// others are the process's or thread's, and of no later one with its id.
type Kept struct {
	Name string
	fd   int
	buf  []byte
}

// Keep opens a file that has about size bytes; one that is larger costs one growth.
func Keep(name string, size int) (*Kept, error) {
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err // to be wrapped
	}
	return &Kept{fd: fd, Name: name, buf: make([]byte, size)}, nil
}

// Read takes the file in one call, because the kernel writes it out again for
// each one: os.File.ReadAt would ask again to be sure of the end.
func (f *Kept) Read() ([]byte, error) {
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
func (f *Kept) Close() error {
	if f.fd < 0 {
		return os.ErrClosed
	}
	fd := f.fd
	f.fd = -1
	return syscall.Close(fd)
}
