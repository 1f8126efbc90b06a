package sockdiag

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// answersAtOnce is true from Linux 6.9 on: docs/results/kernels.md has an exact request during a
// walk on each kernel (on 5.10 it took 28 times as long). With its locks a request waits
// while anybody's dump, this program's own too, fills a message (sock_diag_mutex,
// inet_diag_table_mutex), which can take a walk through the whole table. For so
// long one of Go's processors would stand still, and a garbage collection with it.
// On an older kernel whose vendor has removed the locks it costs some processor time.
func answersAtOnce() bool {
	var u unix.Utsname
	return unix.Uname(&u) == nil && atLeast(unix.ByteSliceToString(u.Release[:]), 6, 9)
}

// atLeast compares a kernel's release, such as 6.1.0-18-amd64.
func atLeast(release string, major, minor int) bool {
	var has [2]int
	if _, err := fmt.Sscanf(release, "%d.%d", &has[0], &has[1]); err != nil {
		return false
	}
	return has[0] > major || has[0] == major && has[1] >= minor
}
