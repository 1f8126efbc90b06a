package procfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	iofs "io/fs"

	"golang.org/x/sys/unix"
)

// Offsets in struct linux_dirent64 (getdents64(2)).
const (
	direntReclen = 16
	direntName   = 19
)

// EachNumber calls fn for the names of a folder that are numbers, in the
// kernel's order: ascending in fd and task. os.File.Readdirnames would make a
// string of each of 20,000 names.
func EachNumber(dirfd int, buf []byte, fn func(n int) error) error {
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

// CountNumbers counts the entries of a folder that are numbers.
func CountNumbers(dir string) (n int, err error) {
	fd, err := OpenFolder(dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	err = EachNumber(fd, make([]byte, 8<<10), func(int) error { n++; return nil })
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
		if n, ok := Decimal(name); ok {
			if err := fn(n); err != nil {
				return err
			}
		}
		b = b[length:]
	}
	return nil
}

// OpenFolder opens a folder for forEachNumber.
func OpenFolder(path string) (int, error) {
	return Retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
}

// Ended recognises a thread or descriptor that ended between the listing and
// the reading of it.
func Ended(err error) bool {
	return errors.Is(err, iofs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}
