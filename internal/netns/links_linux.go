package netns

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Devices are the names of interfaces of the network namespace of the calling thread, by their indices. Each is asked for by
// itself: a namespace may have thousands of others.
func Devices(indices []uint32) (map[uint32]string, error) {
	out := make(map[uint32]string, len(indices))
	err := ioctl(func(fd int) {
		for _, index := range indices {
			request, err := unix.NewIfreq("")
			if err != nil {
				continue
			}
			request.SetUint32(index)
			if unix.IoctlIfreq(fd, unix.SIOCGIFNAME, request) == nil {
				out[index] = request.Name()
			}
		}
	})
	return out, err
}

// isUp reports whether an interface of that name is.
func isUp(fd int, name string) bool {
	request, err := unix.NewIfreq(name)
	return err == nil && unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, request) == nil && request.Uint16()&unix.IFF_UP != 0
}

// ioctl calls fn with a socket of the calling thread's namespace.
func ioctl(fn func(fd int)) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("netns: interfaces: %w", os.NewSyscallError("socket", err))
	}
	fn(fd)
	return unix.Close(fd)
}
