// Package threads reads the threads of a process: what each waits for, which of
// them accepts connections and which handle requests, what they do with signals,
// and how long they wait for a CPU.
package threads

import (
	"bytes"
	"fmt"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/procfile"
)

// Thread is what one thread was doing at one moment.
type Thread struct {
	State    byte   // R, S, D, T, t, Z, X, I (State of task/TID/status)
	Dumping  bool   // it waits for its process's core dump, to end after that ("CoreDumping" of status)
	Switches uint64 // voluntary_ctxt_switches of status
	CPUTime  time.Duration
	RunDelay time.Duration // fields 1 and 2 of schedstat
	Ran      uint64        // field 3: the times it was given a CPU
	// Call is the system call it was in, CallUnknown where it may not be read.
	Call Call
	// Accepting is the kernel's own word (wchan) where Call may not be read.
	Accepting bool
}

// Stopped is set for a thread that SIGSTOP or a debugger halts.
func (t *Thread) Stopped() bool { return t.State == 'T' || t.State == 't' }

// setStatus takes State, CoreDumping and voluntary_ctxt_switches of a status file.
func (t *Thread) setStatus(data []byte) error {
	state, ok := procfile.ValueOf(data, []byte("State:"))
	if !ok || len(state) == 0 {
		return fmt.Errorf("status without a state: %w", hostproc.ErrMalformed)
	}
	switches, ok := procfile.ValueOf(data, []byte("voluntary_ctxt_switches:"))
	if !ok {
		return fmt.Errorf("status without context switches: %w", hostproc.ErrMalformed)
	}
	n, ok := procfile.Decimal(switches)
	if !ok {
		return fmt.Errorf("status with %q context switches: %w", switches, hostproc.ErrMalformed)
	}
	t.State, t.Switches = state[0], uint64(n)
	if t.Dumping = false; t.State == 'D' || t.State == 'I' { // in which it waits (coredump_task_exit)
		dumping, _ := procfile.ValueOf(data, []byte("CoreDumping:"))
		t.Dumping = string(dumping) == "1"
	}
	return nil
}

// setSchedstat takes the three numbers of schedstat.
func (t *Thread) setSchedstat(data []byte) error {
	rest := bytes.TrimSuffix(data, []byte{'\n'})
	var n [3]uint64
	for i := range n {
		var ok bool
		if n[i], rest, ok = procfile.NextNumber(rest); !ok {
			return fmt.Errorf("schedstat %q: %w", data, hostproc.ErrMalformed)
		}
	}
	t.CPUTime, t.RunDelay, t.Ran = procfile.Nanoseconds(n[0]), procfile.Nanoseconds(n[1]), n[2]
	return nil
}
