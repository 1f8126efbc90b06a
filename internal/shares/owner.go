package shares

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// OwnerOf is whose share a listener takes up: its pod's, container's or user's, as the kernel has them by the
// process's cgroup, else that of the user who made the socket, in whatever network namespace.
func OwnerOf(l *model.Listener) string {
	if p := l.Process; p != nil && p.Owner != "" {
		return p.Owner
	}
	if l.User != nil {
		return fmt.Sprintf("uid %d", *l.User)
	}
	return OwnerOfNetNS(l.ID.NetNS)
}

// OwnerOfNetNS is where nothing else is known: an expected port at which nothing listens.
func OwnerOfNetNS(netns uint64) string { return fmt.Sprintf("netns %d", netns) }
