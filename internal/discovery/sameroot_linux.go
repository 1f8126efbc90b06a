package discovery

import (
	"bufio"
	"io"
	"os"
	"path"
	"strings"
)

// maxMountInfo bounds what is read of a list of mounts.
const maxMountInfo = 4 << 20

// sharesRoot says that a process sees the same files as we do. Other than
// /proc/PID/root, its list of mounts may be read by any user, and a mount's id
// is one mount's in the whole system: two processes with the same mount at "/"
// are in one mount namespace and have one root. (A process in a chroot has no
// mount at "/" unless that is a mount point, which then has another id.)
func sharesRoot(procPID string) bool {
	theirs, ours := rootMount(path.Join(procPID, "mountinfo")), rootMount("/proc/self/mountinfo")
	return theirs != "" && theirs == ours
}

// rootMount is the id of the topmost mount at "/" (proc(5), mountinfo fields 1
// and 5).
func rootMount(mountinfo string) string {
	f, err := os.Open(mountinfo)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	id := ""
	lines := bufio.NewScanner(io.LimitReader(f, maxMountInfo))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && fields[4] == "/" {
			id = fields[0]
		}
	}
	return id
}
