package demo

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
)

// connectOutcome says why a connection could not be opened.
func connectOutcome(ctx context.Context, err error) Outcome {
	var timeout interface{ Timeout() bool }
	switch {
	case ctx.Err() != nil:
		return Unfinished
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.ECONNRESET):
		return Reset
	case errors.As(err, &timeout) && timeout.Timeout(): // the deadline, or the kernel's own ETIMEDOUT
		return ConnectTimeout
	default: // EADDRNOTAVAIL, EMFILE, ENETUNREACH
		return Local
	}
}

// exchangeOutcome says why a request on an open connection got no answer.
func exchangeOutcome(ctx context.Context, err error) Outcome {
	switch {
	case err == nil:
		return OK
	case ctx.Err() != nil || errors.Is(err, errGaveUp):
		return Unfinished
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return ReadTimeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return Reset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Closed
	default:
		return BadAnswer
	}
}
