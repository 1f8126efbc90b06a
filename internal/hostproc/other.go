//go:build !linux

package hostproc

import (
	"os"
	"time"
)

// PIDs is for Linux only.
func (fs FS) PIDs() ([]int, error) { return nil, ErrNotSupported }

// ThreadNames is for Linux only.
func (fs FS) ThreadNames(int, func(tid int, comm string)) error { return ErrNotSupported }

// RunDelay is for Linux only.
func (fs FS) RunDelay(int) (time.Duration, error) { return 0, ErrNotSupported }

func (fs FS) eachRunDelay(int, func(tid int, delay time.Duration)) error { return ErrNotSupported }

func countEntries(string) (int, error) { return 0, ErrNotSupported }

// SocketInodes is for Linux only.
func (fs FS) SocketInodes(int, func(inode uint32)) error { return ErrNotSupported }

// OpenRegular is for Linux only.
func (fs FS) OpenRegular(int, string) (*os.File, error) { return nil, ErrNotSupported }

// Cgroup is for Linux only.
func (fs FS) Cgroup(int) (Cgroup, error) { return Cgroup{}, ErrNotSupported }

// JVM is for Linux only.
func (fs FS) JVM(int) (JVM, error) { return JVM{}, ErrNotSupported }

// OpenJVM is for Linux only.
func (fs FS) OpenJVM(int) (*JVMFile, error) { return nil, ErrNotSupported }

// JVMFile is for Linux only.
type JVMFile struct{}

// Read is for Linux only.
func (f *JVMFile) Read() (JVM, error) { return JVM{}, ErrNotSupported }

// Close is for Linux only.
func (f *JVMFile) Close() error { return ErrNotSupported }
