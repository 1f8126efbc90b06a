//go:build !linux

package cgroup

import "github.com/tcpdiag/tcpdiag/internal/hostproc"

// Owner answers "".
func Owner(hostproc.FS, int) string { return "" }

// PodOf answers nothing.
func PodOf(hostproc.FS, int) Pod { return Pod{} }

// Of is for Linux only.
func Of(hostproc.FS, int) (Group, error) { return Group{}, hostproc.ErrNotSupported }

// KeptThrottle is for Linux only.
type KeptThrottle struct{}

// KeepThrottle is for Linux only.
func KeepThrottle(hostproc.FS, int) (*KeptThrottle, error) { return nil, hostproc.ErrNotSupported }

// Read is for Linux only.
func (k *KeptThrottle) Read(*Throttle) error { return hostproc.ErrNotSupported }

// Close is for Linux only.
func (k *KeptThrottle) Close() {}

// KeptFreezer is for Linux only.
type KeptFreezer struct{}

// KeepFreezer is for Linux only.
func KeepFreezer(hostproc.FS, int) (*KeptFreezer, error) { return nil, hostproc.ErrNotSupported }

// Frozen is for Linux only.
func (k *KeptFreezer) Frozen() (bool, error) { return false, hostproc.ErrNotSupported }

// Close is for Linux only.
func (k *KeptFreezer) Close() {}
