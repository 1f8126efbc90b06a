package threads

import "github.com/tcpdiag/tcpdiag/internal/hostproc"

// eachSchedule calls fn with what each present thread has waited for a CPU
// (field 2 of task/TID/schedstat).
func eachSchedule(fs hostproc.FS, pid int, fn func(tid int, s schedule)) error {
	err := fs.EachTask(pid, "/schedstat", func(tid int, data []byte) error {
		s, err := parseSchedule(data)
		if err == nil {
			fn(tid, s)
		}
		return err
	})
	return fs.Wrap(pid, "run delay", err)
}
