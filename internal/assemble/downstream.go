package assemble

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// downstream is the latest reading of a process's outgoing connections, nil for
// none.
func (d *Draft) downstream(key hostproc.ProcessKey, backends []model.Backend) *model.Downstream {
	r, ok := d.f.Downstream[key]
	if !ok {
		return nil
	}
	if errors.Is(r.Err, fs.ErrPermission) {
		d.miss.Add(model.Unavailable{
			What: fmt.Sprintf("outgoing connections of pid %d", key.PID),
			Why:  "permission denied on its descriptors; those of its user are shown",
			How:  "run as the process's user and group, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
		})
	}
	if errors.Is(r.WorkersErr, fs.ErrPermission) {
		d.miss.Add(workersUnseen(key.PID))
	}
	out := *r.Value
	out.Age = max(0, d.Time.Sub(out.At))
	out.Peers = slices.Clone(out.Peers)
	downstream.Identify(&out, backends) // which may be known only since
	return &out
}

// workersUnseen says that the threads could not be read.
func workersUnseen(pid int) model.Unavailable {
	return model.Unavailable{
		What: fmt.Sprintf("what each worker thread of pid %d waits for", pid),
		Why:  "permission denied on its threads' system calls",
		How:  "run as the process's user and group (and kernel.yama.ptrace_scope=0), or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH",
	}
}
