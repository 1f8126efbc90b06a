//go:build !linux

package tap

import "net/netip"

// Tap is for Linux only.
type Tap struct{}

// Open answers ErrNotSupported.
func Open(Options) (*Tap, error) { return nil, ErrNotSupported }

// SetPorts answers ErrNotSupported.
func (t *Tap) SetPorts([]uint16) error { return ErrNotSupported }

// SetListened does nothing.
func (t *Tap) SetListened([]netip.AddrPort) {}

// Report answers ErrNotSupported.
func (t *Tap) Report() (Report, error) { return Report{}, ErrNotSupported }

// Close answers ErrNotSupported.
func (t *Tap) Close() error { return ErrNotSupported }

// Alert does nothing.
func (t *Tap) Alert() {}

// Follows answers false.
func (t *Tap) Follows(uint16) bool { return false }
