package reader

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// mostUserThreads is the largest limit of a user's threads for which these are counted: what
// a distribution sets by default (half of kernel.threads-max) is not reached by a server.
const mostUserThreads = 1 << 14

// userThreads are how many threads the processes of each user have. The kernel counts them by
// the real uid (copy_process, RLIMIT_NPROC), and says it nowhere.
type userThreads struct {
	at time.Time
	of map[uint32]int
}

// read counts them where the process has a limit of them that is low enough to matter. Root
// and who has CAP_SYS_RESOURCE has none.
func (u *userThreads) read(proc hostproc.FS, now time.Time, st hostproc.Process, p *model.Process) {
	if u == nil || st.UIDs[0] == 0 || u.limit(proc, st.PID) > mostUserThreads {
		return
	}
	if u.of == nil || now.Sub(u.at) >= limitsEvery {
		u.count(proc, now)
	}
	n, most := u.of[st.UIDs[0]], u.limit(proc, st.PID)
	p.UserThreads, p.UserThreadsLimit = &n, &most
}

func (u *userThreads) limit(proc hostproc.FS, pid int) int {
	of, err := proc.Procfs().Proc(pid)
	if err != nil {
		return mostUserThreads + 1
	}
	limits, err := of.Limits()
	if err != nil {
		return mostUserThreads + 1
	}
	return int(min(limits.Processes, mostUserThreads+1))
}

// count takes the effective user for the real one, which are the same of nearly all.
func (u *userThreads) count(proc hostproc.FS, now time.Time) {
	u.at, u.of = now, make(map[uint32]int)
	pids, err := proc.PIDs()
	if err != nil {
		return
	}
	for _, pid := range pids {
		uid, err := proc.EffectiveUID(pid)
		if err != nil || uid == 0 {
			continue
		}
		if st, err := proc.Stat(pid); err == nil {
			u.of[uid] += st.Threads
		}
	}
}
