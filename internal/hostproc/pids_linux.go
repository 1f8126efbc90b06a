package hostproc

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// PIDs lists the processes of this mount, those that hidepid lets us see.
func (fs FS) PIDs() ([]int, error) {
	dir, err := procfile.OpenFolder(fs.mount)
	if err != nil {
		return nil, fmt.Errorf("hostproc: %q: %w", fs.mount, err)
	}
	defer func() { _ = unix.Close(dir) }()
	pids := make([]int, 0, 512)
	err = procfile.EachNumber(dir, make([]byte, 16<<10), func(pid int) error {
		pids = append(pids, pid)
		return nil
	})
	return pids, err
}
