//go:build !linux

package threads

import "github.com/tcpdiag/tcpdiag/internal/hostproc"

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

// Handle is for Linux only.
type Handle struct{}

// OpenHandle is for Linux only.
func OpenHandle(hostproc.FS, int, int) (*Handle, error) { return nil, hostproc.ErrNotSupported }

// CallErr is for Linux only.
func (t *Handle) CallErr() error { return hostproc.ErrNotSupported }

// Read is for Linux only.
func (t *Handle) Read(*Thread) error { return hostproc.ErrNotSupported }

// Close is for Linux only.
func (t *Handle) Close() {}
