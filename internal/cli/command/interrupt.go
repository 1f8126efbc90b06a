package command

import (
	"context"
	"errors"
	"time"
)

// ErrInterrupted is what a signal leaves of a command that had an answer to give.
var ErrInterrupted = errors.New("interrupted")

// ErrNoSnapshot is a machine that could not be read in time.
var ErrNoSnapshot = errors.New("no snapshot within 15 s")

// Grace is how long a scan that was cancelled may take to end. What hangs in
// somebody's file system or socket ends with this process.
const Grace = 500 * time.Millisecond

// Interruptible runs what reads the machine until ctx is done, and does not
// wait for it much longer: left says that it still runs, and that what it uses
// must stay open.
func Interruptible(ctx context.Context, look func(context.Context) error) (left bool, err error) {
	done := make(chan error, 1)
	go func() { done <- look(ctx) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		select {
		case err = <-done:
		case <-time.After(Grace):
			return true, ErrInterrupted
		}
	}
	if err != nil && ctx.Err() != nil {
		return false, ErrInterrupted
	}
	return false, err
}
