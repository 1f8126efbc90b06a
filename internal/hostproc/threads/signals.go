package threads

import (
	"bytes"
	"os"
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// Signals is what one thread does with signals.
type Signals struct {
	Name  string // at most 15 characters
	State byte   // R, S, D, T, t, Z, X or I
	// Caught has bit n-1 set for each signal n that has a handler (SigCgt); all
	// threads of a process have the same. Blocked are those that this thread does
	// not take (SigBlk).
	Caught, Blocked uint64
}

// Takes reports whether a signal sent to this thread runs its handler.
func (t Signals) Takes(signal int) bool {
	bit := uint64(1) << (signal - 1)
	return t.Caught&bit != 0 && t.Blocked&bit == 0
}

// Stopped is set for a thread that SIGSTOP or a debugger halts.
func (t Signals) Stopped() bool { return t.State == 'T' || t.State == 't' }

// ReadSignals reads /proc/PID/task/TID/status, which any user may.
func ReadSignals(fs hostproc.FS, pid, tid int) (Signals, error) {
	data, err := os.ReadFile(fs.Path(pid, "task", strconv.Itoa(tid), "status"))
	if err != nil {
		return Signals{}, fs.Wrap(pid, "a thread's status", err)
	}
	t, ok := parseThreadSignals(data)
	if !ok {
		return Signals{}, fs.Wrap(pid, "a thread's status", hostproc.ErrMalformed)
	}
	return t, nil
}

func parseThreadSignals(data []byte) (t Signals, ok bool) {
	var caught, blocked bool
	for line := range bytes.Lines(data) {
		key, value, _ := bytes.Cut(bytes.TrimRight(line, "\n"), []byte(":\t"))
		switch string(key) {
		case "Name":
			t.Name = string(value)
		case "State":
			if len(value) > 0 {
				t.State = value[0]
			}
		case "SigCgt":
			t.Caught, caught = mask(value)
		case "SigBlk":
			t.Blocked, blocked = mask(value)
		}
	}
	return t, caught && blocked && t.State != 0
}

// mask is a signal set as render_sigset_t (fs/proc/array.c) writes it.
func mask(hex []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(hex), 16, 64)
	return n, err == nil
}
