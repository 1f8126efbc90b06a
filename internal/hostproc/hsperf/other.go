//go:build !linux

package hsperf

import (
	"os"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// Read is for Linux only.
func Read(hostproc.FS, int) (JVM, error) { return JVM{}, hostproc.ErrNotSupported }

// Open is for Linux only.
func Open(*hostproc.Handles) (*File, error) { return nil, hostproc.ErrNotSupported }

// Adopt is for Linux only.
func Adopt(hostproc.FS, hostproc.ProcessKey, *os.File) (*File, error) {
	return nil, hostproc.ErrNotSupported
}

// File is for Linux only.
type File struct{}

// Again is for Linux only.
func (f *File) Again() (*File, error) { return nil, hostproc.ErrNotSupported }

// File is for Linux only.
func (f *File) File() *os.File { return nil }

// Read is for Linux only.
func (f *File) Read() (JVM, error) { return JVM{}, hostproc.ErrNotSupported }

// Close is for Linux only.
func (f *File) Close() error { return hostproc.ErrNotSupported }

// Safepoints is for Linux only.
func (f *File) Safepoints(*Safepoints) error { return hostproc.ErrNotSupported }
