//go:build !linux

package openfiles

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// SampleSockets is for Linux only.
func SampleSockets(hostproc.FS, int, int, func(inode uint32)) (int, error) {
	return 0, hostproc.ErrNotSupported
}

// Kept is for Linux only.
type Kept struct{}

// Keep is for Linux only.
func Keep(hostproc.FS, int) (*Kept, error) { return nil, hostproc.ErrNotSupported }

// Open is for Linux only.
func (k *Kept) Open(time.Time) (n int, age time.Duration, err error) {
	return 0, 0, hostproc.ErrNotSupported
}

// Limit is for Linux only.
func (k *Kept) Limit() (int, error) { return 0, hostproc.ErrNotSupported }

// Close is for Linux only.
func (k *Kept) Close() {}
