package observer

import (
	"errors"
	"io/fs"
	"os"

	"github.com/tcpdiag/tcpdiag/internal/netns"
)

// inhabitants are which process is in which network namespace.
type inhabitants struct {
	resident map[netns.ID]int    // one process of each
	closed   map[uint64]struct{} // namespaces that only hostproc.FS.NetID may distinguish
}

func (p *places) inhabitants() (*inhabitants, error) {
	pids, err := p.src.Proc.PIDs()
	if err != nil {
		return nil, err
	}
	own, err := p.src.Proc.NetID(os.Getpid())
	if err != nil {
		return nil, err
	}
	out := &inhabitants{resident: make(map[netns.ID]int), closed: make(map[uint64]struct{})}
	for _, pid := range pids {
		id, err := netns.OfPID(p.src.Mount, pid)
		if errors.Is(err, fs.ErrPermission) {
			if n, err := p.src.Proc.NetID(pid); err == nil {
				out.closed[n] = struct{}{}
			}
		}
		if err != nil {
			continue
		}
		if _, ok := out.resident[id]; !ok {
			out.resident[id] = pid
		}
	}
	delete(out.closed, own)
	for _, pid := range out.resident { // another of its processes may have answered
		if len(out.closed) == 0 {
			break
		}
		if n, err := p.src.Proc.NetID(pid); err == nil {
			delete(out.closed, n)
		}
	}
	return out, nil
}
