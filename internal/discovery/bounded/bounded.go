// Package bounded reads what strangers wrote, and no more of it than its callers allow.
package bounded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Sentinel errors of this package.
var (
	// ErrTooLarge is something beyond the bound that is read for its kind.
	ErrTooLarge = errors.New("larger than what is read")
	// ErrNotRegular is a fifo, a device or a directory in the place of a file.
	ErrNotRegular = errors.New("not a regular file")
)

// TooLarge is ErrTooLarge with what is.
func TooLarge(what string) error { return largeError(what) }

type largeError string

func (e largeError) Error() string { return ErrTooLarge.Error() + ": " + string(e) }
func (e largeError) Unwrap() error { return ErrTooLarge }

// Read reads r to its end, or fails with ErrTooLarge after limit bytes.
// expected is a hint of the size, and no more: it may be a lie.
func Read(r io.Reader, name string, limit, expected int64) ([]byte, error) {
	var buf bytes.Buffer
	buf.Grow(int(min(max(expected, 0), limit, 64<<10)) + bytes.MinRead)
	n, err := buf.ReadFrom(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", name, err)
	}
	if n > limit {
		return nil, fmt.Errorf("read %q: %w (%d bytes)", name, ErrTooLarge, limit)
	}
	return buf.Bytes(), nil
}
