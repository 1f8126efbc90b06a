//go:build !linux

package netns

import "os"

// Current answers ErrNotSupported.
func Current() (ID, error) { return 0, ErrNotSupported }

// OfPID answers ErrNotSupported.
func OfPID(string, int) (ID, error) { return 0, ErrNotSupported }

// Do answers ErrNotSupported without running fn.
func Do(string, func() error) error { return ErrNotSupported }

// New answers ErrNotSupported.
func New() (*os.File, error) { return nil, ErrNotSupported }
