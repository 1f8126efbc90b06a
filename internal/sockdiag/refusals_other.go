//go:build !linux

package sockdiag

// Refusals are known on Linux alone.
type Refusals struct{}

// ListenRefusals fails.
func ListenRefusals() (*Refusals, error) { return nil, wrap("listen", ErrNotSupported) }

// Rest fails.
func (*Refusals) Rest() error { return ErrNotSupported }

// Resume fails.
func (*Refusals) Resume() error { return ErrNotSupported }

// Read fails.
func (*Refusals) Read(func(*Socket)) (bool, error) { return false, ErrNotSupported }

// Close has nothing to do.
func (*Refusals) Close() error { return nil }
