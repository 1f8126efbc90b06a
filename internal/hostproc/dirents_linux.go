package hostproc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// Offsets in struct linux_dirent64 (getdents64(2)).
const (
	direntReclen = 16
	direntName   = 19
)

// forEachNumber calls fn for the names of a folder that are numbers, in the
// kernel's order: ascending in fd and task. os.File.Readdirnames would make a
// string of each of 20,000 names.
func forEachNumber(dirfd int, buf []byte, fn func(n int) error) error {
	for {
		n, err := unix.Getdents(dirfd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return err
		}
		if err := eachDirent(buf[:n], fn); err != nil {
			return err
		}
	}
}

// countEntries counts the entries of a folder that are numbers.
func countEntries(dir string) (n int, err error) {
	fd, err := openDir(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	err = forEachNumber(fd, make([]byte, 8<<10), func(int) error { n++; return nil })
	return n, err
}

func eachDirent(b []byte, fn func(n int) error) error {
	for len(b) > direntName {
		length := int(binary.NativeEndian.Uint16(b[direntReclen:]))
		if length <= direntName || length > len(b) {
			return ErrMalformed
		}
		name := b[direntName:length]
		if end := bytes.IndexByte(name, 0); end >= 0 {
			name = name[:end]
		}
		if n, ok := decimal(name); ok {
			if err := fn(n); err != nil {
				return err
			}
		}
		b = b[length:]
	}
	return nil
}

// readAt reads a small file below an open folder into buf.
func readAt(dirfd int, name string, buf []byte) ([]byte, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := retry(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// smallFile is more than stat and status of nearly every process have.
const smallFile = 4 << 10

// readSmall is os.ReadFile for a file of the kernel: three system calls in place of
// some ten, as it is neither asked for its size nor given to the poller.
func readSmall(path string) ([]byte, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for data := make([]byte, 0, smallFile); ; data = slices.Grow(data, cap(data)) {
		n, err := retry(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, err
		}
		if data = data[:len(data)+n]; len(data) < cap(data) { // it has ended (single_open)
			return data, nil
		}
	}
}

// openDir opens a folder for forEachNumber.
func openDir(path string) (int, error) {
	return retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
}

// retry repeats a call that a signal interrupted; Go's runtime sends some.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
