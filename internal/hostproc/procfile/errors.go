package procfile

import "errors"

var (
	// ErrNotSupported is the answer of systems other than Linux, and of kernels
	// that lack the file.
	ErrNotSupported = errors.New("not supported on this system")
	// ErrMalformed says that a file of the kernel does not have the form its reader
	// knows.
	ErrMalformed = errors.New("malformed")
)
