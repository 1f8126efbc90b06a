//go:build !linux

package openfiles

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// SubsetOfSockets is for Linux only.
func SubsetOfSockets(hostproc.FS, int, int, func(inode uint32)) (float64, error) {
	return 0, hostproc.ErrNotSupported
}

// Handle is for Linux only.
type Handle struct{}

// OpenHandle is for Linux only.
func OpenHandle(hostproc.FS, int) (*Handle, error) { return nil, hostproc.ErrNotSupported }

// Open is for Linux only.
func (k *Handle) Open(time.Time) (n int, age time.Duration, err error) {
	return 0, 0, hostproc.ErrNotSupported
}

// Limit is for Linux only.
func (k *Handle) Limit() (int, error) { return 0, hostproc.ErrNotSupported }

// Close is for Linux only.
func (k *Handle) Close() {}
