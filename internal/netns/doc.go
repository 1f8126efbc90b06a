// Package netns runs code in a network namespace and distinguishes namespaces.
// It is the only package that locks a goroutine to its thread: a namespace
// belongs to a thread, and Go moves goroutines between threads.
//
// The process's first thread never leaves its namespace. What other processes
// see as /proc/PID/net and /proc/PID/ns/net is that thread's, and unlike the
// others it cannot be given up: the runtime parks it, in whatever namespace.
package netns

import (
	"errors"
	"path/filepath"
	"strconv"
)

// ID is the inode number of a network namespace, as in the link text
// "net:[4026531840]" of /proc/PID/ns/net.
type ID uint64

// ErrNotSupported is the answer of every function on systems without network
// namespaces.
var ErrNotSupported = errors.New("network namespaces are not supported on this system")

// Path is where the kernel shows a process's namespace. procRoot is /proc, or
// where the host's /proc is mounted.
func Path(procRoot string, pid int) string {
	return filepath.Join(procRoot, strconv.Itoa(pid), "ns", "net")
}
