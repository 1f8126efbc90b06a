//go:build unix

package springboot

import (
	"errors"
	"syscall"
)

// notDirectory says that a part of the path is a file, or a link that points
// to itself: in Java's eyes the file does not exist either way.
func notDirectory(err error) bool {
	return errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}
