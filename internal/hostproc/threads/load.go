package threads

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// fresh is how long an answer of Load holds: the processes of a host are read one
// after the other, and one answer is for all of them.
const fresh = 100 * time.Millisecond

// Load remembers whether threads of the machine wait for a CPU. It is for one
// goroutine at a time.
type Load struct {
	at    time.Time // of the answer
	waits bool
}

// someWait reports whether more threads of the host can run than us and one other: else
// none of them waits for a CPU.
func (l *Load) someWait(fs hostproc.FS, now time.Time) bool {
	if age := now.Sub(l.at); l.at.IsZero() || age < 0 || age >= fresh {
		n, err := fs.Runnable()
		l.at, l.waits = now, err == nil && n > 2
	}
	return l.waits
}
