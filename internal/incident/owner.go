package incident

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// ownerOf is whose share of incidents, recordings and rings a listener's are: its pod's or
// container's, as the kernel has them by the process's cgroup, else that of the user who made the
// socket, in whatever network namespace.
func ownerOf(l *model.Listener) string {
	if p := l.Process; p != nil && p.PodUID != "" {
		return "pod " + p.PodUID
	} else if p != nil && p.Container != "" {
		return "container " + p.Container
	}
	if l.User != nil {
		return fmt.Sprintf("uid %d", *l.User)
	}
	return ownerOfNetNS(l.ID.NetNS)
}

// ownerOfNetNS is where nothing else is known: an expected port at which nothing listens.
func ownerOfNetNS(netns uint64) string { return fmt.Sprintf("netns %d", netns) }
