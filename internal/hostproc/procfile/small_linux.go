package procfile

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// ReadAt reads a small file below an open folder into buf.
func ReadAt(dirfd int, name string, buf []byte) ([]byte, error) {
	fd, err := Retry(func() (int, error) {
		return unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	n, err := Retry(func() (int, error) { return unix.Read(fd, buf) })
	if err != nil {
		return nil, err
	}
	return buf[:n], nil
}

// Read is os.ReadFile for a file of the kernel: three system calls in place of
// some ten, as it is neither asked for its size nor given to the poller. It reads into
// buf, and takes more where that is too short.
func Read(path string, buf []byte) ([]byte, error) {
	fd, err := Retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for data := buf[:0]; ; data = slices.Grow(data, cap(data)) {
		n, err := Retry(func() (int, error) { return unix.Read(fd, data[len(data):cap(data)]) })
		if err != nil {
			return nil, err
		}
		if data = data[:len(data)+n]; len(data) < cap(data) { // it has ended (single_open)
			return data, nil
		}
	}
}

// Retry repeats a call that a signal interrupted; Go's runtime sends some.
func Retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
