package threads

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// RunDelay is the time that the process's present threads have spent ready to
// run and waiting for a CPU (field 2 of task/TID/schedstat, summed). A thread
// that ends takes its share along, so the sum can fall; RunDelayCounter never
// does.
func RunDelay(fs hostproc.FS, pid int) (time.Duration, error) {
	var sum time.Duration
	err := eachSchedule(fs, pid, func(_ int, s schedule) { sum += s.delay })
	return sum, err
}

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
