//go:build !linux

package netns

import (
	"net/netip"
	"os"
	"time"
)

// LocalAddresses answers ErrNotSupported.
func LocalAddresses() ([]netip.Prefix, error) { return nil, ErrNotSupported }

// MissingAddresses answers ErrNotSupported.
func MissingAddresses([]netip.Addr) ([]netip.Addr, error) { return nil, ErrNotSupported }

// PacketsReadable is false.
func PacketsReadable() bool { return false }

// Devices answers ErrNotSupported.
func Devices([]uint32) (map[uint32]string, error) { return nil, ErrNotSupported }

// Current answers ErrNotSupported.
func Current() (ID, error) { return 0, ErrNotSupported }

// OfPID answers ErrNotSupported.
func OfPID(string, int) (ID, error) { return 0, ErrNotSupported }

// Namespace is for Linux only.
type Namespace struct{}

// Open answers ErrNotSupported.
func Open(string) (*Namespace, error) { return nil, ErrNotSupported }

// ID is 0.
func (n *Namespace) ID() ID { return 0 }

// Close answers ErrNotSupported.
func (n *Namespace) Close() error { return ErrNotSupported }

// Do answers ErrNotSupported without running fn.
func (n *Namespace) Do(func() error) error { return ErrNotSupported }

// Do answers ErrNotSupported without running fn.
func Do(string, func() error) error { return ErrNotSupported }

// New answers ErrNotSupported.
func New() (*os.File, error) { return nil, ErrNotSupported }

// Filter is for Linux only.
type Filter struct{}

// OpenFilter answers ErrNotSupported.
func OpenFilter() (*Filter, error) { return nil, ErrNotSupported }

// Close answers ErrNotSupported.
func (f *Filter) Close() error { return ErrNotSupported }

// Conntrack answers ErrNotSupported.
func (f *Filter) Conntrack(map[string]uint64) error { return ErrNotSupported }

// Rules answers ErrNotSupported.
func (f *Filter) Rules(map[string]uint64, int) error { return ErrNotSupported }

// RulesOnce answers ErrNotSupported.
func (f *Filter) RulesOnce(map[string]uint64, time.Duration) error { return ErrNotSupported }
