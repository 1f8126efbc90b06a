//go:build unix

package launch

import (
	"errors"
	"syscall"
)

// NotDirectory says that a part of the path is a file, or a link that points
// to itself: in Java's eyes the file does not exist either way.
func NotDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
