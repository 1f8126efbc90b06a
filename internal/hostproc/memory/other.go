//go:build !linux

package memory

import (
	"errors"
	"os"
	"os/exec"
)

// Reader is for Linux only.
type Reader struct{}

// NewReader is for Linux only.
func NewReader(func() *exec.Cmd) *Reader { return &Reader{} }

// ReadAt is for Linux only.
func (*Reader) ReadAt(string, *os.File, []int64, int) ([][]byte, error) {
	return nil, errors.ErrUnsupported
}
