package threads

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// schedule is a thread's schedstat: what it has had of the processors so far.
type schedule struct {
	ran    uint64        // nanoseconds on a CPU
	delay  time.Duration // ready to run, without one: added when the wait ends
	slices uint64        // how often it was given one
}

// parseSchedule reads the three numbers. On kernels without CONFIG_SCHED_INFO all
// are 0.
func parseSchedule(data []byte) (schedule, error) {
	ran, rest, ok := procfile.NextNumber(bytes.TrimSuffix(data, []byte{'\n'}))
	if !ok {
		return schedule{}, fmt.Errorf("schedstat %q: %w", data, hostproc.ErrMalformed)
	}
	delay, rest, ok := procfile.NextNumber(rest)
	if !ok || delay > math.MaxInt64 {
		return schedule{}, fmt.Errorf("schedstat %q: %w", data, hostproc.ErrMalformed)
	}
	slices, _, _ := procfile.NextNumber(rest)
	return schedule{ran: ran, delay: time.Duration(delay), slices: slices}, nil
}

// runnable reports whether a thread runs, or could if it had a CPU (state R).
func runnable(fs hostproc.FS, pid, tid int) bool {
	var buf [512]byte // a name has 15 characters
	data, err := procfile.Read(fs.Path(pid, "task", strconv.Itoa(tid), "stat"), buf[:])
	end := bytes.LastIndexByte(data, ')')
	return err == nil && end > 0 && len(data) > end+2 && data[end+2] == 'R'
}
