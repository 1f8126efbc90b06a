package sandbox

import (
	"fmt"
	"os"
	"strconv"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// Confine leaves a process nothing but reading: below the given folders, and from
// the descriptors it has open. No network, no other process, no new program, no
// file opened for writing. What the kernel knows of Landlock is used (5.13 for
// files, 6.7 for the network); the seccomp filter must be accepted. Before 5.13
// it may open whatever its user may read.
func Confine(folders ...*os.File) error {
	paths := []string{"/proc/self/fdinfo"}
	for _, f := range folders {
		paths = append(paths, "/proc/self/fd/"+strconv.Itoa(int(f.Fd())))
	}
	return confine(opensFiles, paths...)
}

// confine leaves reading below some paths, and the calls of one kind of child.
func confine(kind calls, paths ...string) error {
	read := landlock.PathAccess(ll.AccessFSReadFile|ll.AccessFSReadDir, paths...)
	if err := landlock.V9.BestEffort().Restrict(read); err != nil {
		return fmt.Errorf("sandbox: landlock: %w", err)
	}
	return filterCalls(kind)
}
