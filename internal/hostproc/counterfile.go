package hostproc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// counterFile keeps a file of the form of net/netstat open and reads some
// counters of one protocol from it, without allocating.
type counterFile struct {
	fd       int
	name     string
	protocol string
	names    []string
	buf      []byte
	size     int // of the file when it was read last
	cols     *columns
	values   []uint64 // of names, in their order
}

func (fs FS) openCounters(pid int, file, protocol string, names []string) (*counterFile, error) {
	name := fs.path(pid, "net", file)
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fs.wrap(pid, "net/"+file, err)
	}
	f := &counterFile{
		fd: fd, name: name, protocol: protocol, names: names,
		// netstat has 5 kB on Linux 6.18; one that is too small costs one growth.
		buf:    make([]byte, 8<<10),
		values: make([]uint64, len(names)),
	}
	if err := f.read(); err != nil {
		_ = f.Close()
		return nil, err
	}
	// An agent of a node holds three for each pod: no more than it takes, and
	// some digits.
	f.buf = make([]byte, f.size+f.size/4+64)
	return f, nil
}

// read fills values; on an error they are not to be used.
func (f *counterFile) read() error {
	data, err := f.pread()
	if err != nil {
		return fmt.Errorf("hostproc: %w", &os.PathError{Op: "read", Path: f.name, Err: err})
	}
	if f.cols != nil && f.cols.read(data, f.values) == nil {
		return nil
	}
	if f.cols, err = findColumns(data, f.protocol, f.names); err == nil {
		err = f.cols.read(data, f.values)
	}
	if err != nil {
		return fmt.Errorf("hostproc: %s: %w", f.name, err)
	}
	return nil
}

// pread takes the file in one call, because the kernel writes it out anew for
// each one: os.File.ReadAt would ask again to be sure of the end.
func (f *counterFile) pread() ([]byte, error) {
	for {
		n, err := syscall.Pread(f.fd, f.buf, 0)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return nil, err
		case n < len(f.buf):
			f.size = n
			return f.buf[:n], nil
		}
		f.buf = make([]byte, 2*len(f.buf))
	}
}

// Close closes the file, and lets its network namespace go.
func (f *counterFile) Close() error {
	if f.fd < 0 {
		return os.ErrClosed
	}
	fd := f.fd
	f.fd = -1
	return syscall.Close(fd)
}
