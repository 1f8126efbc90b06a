package discovery

import (
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// sameUser says that we have a process's user and group.
func sameUser(p hostproc.Process) bool {
	return p.UIDs[3] == uint32(os.Geteuid()) && p.GIDs[3] == uint32(os.Getegid())
}
