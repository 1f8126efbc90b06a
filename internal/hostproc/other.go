//go:build !linux

package hostproc

import (
	"io"
	"os"
)

// PIDs is for Linux only.
func (fs FS) PIDs() ([]int, error) { return nil, ErrNotSupported }

// ThreadNames is for Linux only.
func (fs FS) ThreadNames(int, func(tid int, comm string)) error { return ErrNotSupported }

// SocketInodes is for Linux only.
func (fs FS) SocketInodes(int, func(inode uint32)) error { return ErrNotSupported }

// SocketInodesOf is for Linux only.
func (fs FS) SocketInodesOf(int, int, func(inode uint32)) (int, error) { return 0, ErrNotSupported }

// SocketFiles is for Linux only.
func (fs FS) SocketFiles(int, int, int, func(fd int, inode uint32) bool) (int, error) {
	return 0, ErrNotSupported
}

// SocketAt is for Linux only.
func (fs FS) SocketAt(int, int) (uint32, bool) { return 0, false }

// Reader is for Linux only.
type Reader int

// The readers are for Linux only.
const (
	Agent Reader = iota
	Cgroups
	Disposable
)

// Mounts is for Linux only.
type Mounts struct{}

// ReadMounts is for Linux only.
func ReadMounts(Reader, bool, ...io.Reader) (*Mounts, error) { return nil, ErrNotSupported }

// Root is for Linux only.
type Root struct{}

// FindFolder is for Linux only.
func FindFolder(string) (*os.File, error) { return nil, ErrNotSupported }

// NewRoot is for Linux only.
func NewRoot(*os.File, *Mounts, bool) (*Root, error) { return nil, ErrNotSupported }

// Close is for Linux only.
func (r *Root) Close() {}

// OpenPath is for Linux only.
func (r *Root) OpenPath(string) (*os.File, error) { return nil, ErrNotSupported }

// Folder is for Linux only.
func (r *Root) Folder(string) (*os.File, error) { return nil, ErrNotSupported }

// Regular is for Linux only.
func (r *Root) Regular(string) (*os.File, error) { return nil, ErrNotSupported }

// NotLinked is for Linux only.
func (r *Root) NotLinked(string) (*os.File, error) { return nil, ErrNotSupported }

// OpenRoot is for Linux only.
func (h *Handles) OpenRoot(Reader) (*Root, error) { return nil, ErrNotSupported }

// Admit is for Linux only.
func (fs FS) Admit(int, *os.File) error { return ErrNotSupported }
