package hostproc

import (
	"errors"
	"io"
)

// endOfFile takes the end for what it is: no error.
func endOfFile(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
