//go:build !linux

package cgroup

import "github.com/tcpdiag/tcpdiag/internal/hostproc"

// Owner answers "".
func Owner(hostproc.FS, int) string { return "" }

// ID answers nothing.
func ID(hostproc.FS, int) (id uint64, container bool) { return 0, false }

// PodOf answers nothing.
func PodOf(hostproc.FS, int) Pod { return Pod{} }

// Of is for Linux only.
func Of(hostproc.FS, int) (Group, error) { return Group{}, hostproc.ErrNotSupported }

// ThrottleFile is for Linux only.
type ThrottleFile struct{}

// OpenThrottle is for Linux only.
func OpenThrottle(hostproc.FS, int) (*ThrottleFile, error) { return nil, hostproc.ErrNotSupported }

// Read is for Linux only.
func (k *ThrottleFile) Read(*Throttle) error { return hostproc.ErrNotSupported }

// Close is for Linux only.
func (k *ThrottleFile) Close() {}

// FreezerFile is for Linux only.
type FreezerFile struct{}

// OpenFreezer is for Linux only.
func OpenFreezer(hostproc.FS, int) (*FreezerFile, error) { return nil, hostproc.ErrNotSupported }

// Frozen is for Linux only.
func (k *FreezerFile) Frozen() (bool, error) { return false, hostproc.ErrNotSupported }

// Close is for Linux only.
func (k *FreezerFile) Close() {}
