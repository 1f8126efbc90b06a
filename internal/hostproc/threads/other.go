//go:build !linux

package threads

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// RunDelay is for Linux only.
func RunDelay(hostproc.FS, int) (time.Duration, error) { return 0, hostproc.ErrNotSupported }

func eachSchedule(hostproc.FS, int, func(tid int, s schedule)) error {
	return hostproc.ErrNotSupported
}

// FindAcceptor is for Linux only.
func FindAcceptor(hostproc.FS, int, uint16, uint32, []uint16) (int, error) {
	return 0, hostproc.ErrNotSupported
}

// ListWorkers is for Linux only.
func ListWorkers(hostproc.FS, int, []uint16, []string, *Workers) (*Workers, error) {
	return nil, hostproc.ErrNotSupported
}

// Rest is for Linux only.
func (w *Workers) Rest() {}

// Calls is for Linux only.
func Calls(hostproc.FS, *Workers, map[uint32]struct{}, func(WorkerCall)) error {
	return hostproc.ErrNotSupported
}

// Kept is for Linux only.
type Kept struct{}

// Keep is for Linux only.
func Keep(hostproc.FS, int, int) (*Kept, error) { return nil, hostproc.ErrNotSupported }

// CallErr is for Linux only.
func (t *Kept) CallErr() error { return hostproc.ErrNotSupported }

// Read is for Linux only.
func (t *Kept) Read(*Thread) error { return hostproc.ErrNotSupported }

// Close is for Linux only.
func (t *Kept) Close() {}
