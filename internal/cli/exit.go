package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The exit codes. Their meaning never changes.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	// Of snapshot --exit-status, by the worst listener.
	exitWarning   = 10
	exitSaturated = 11
	exitLosing    = 12
	exitDown      = 13
)

// usageError is a mistake in how the command was called.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// failure is an error of the command itself, in distinction to cobra's own
// complaints about flags and arguments.
type failure struct{ err error }

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// statusError carries the verdict of snapshot --exit-status.
type statusError struct{ status model.Status }

func (e *statusError) Error() string { return "the worst listener is " + e.status.String() }

// run marks what a command returns as its own failure.
func run(fn func(cmd *cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := fn(cmd); err != nil {
			return &failure{err}
		}
		return nil
	}
}

// exitCode maps an error to the exit code. What never reached a command's own
// function is wrong usage.
func exitCode(err error) int {
	var usage *usageError
	var status *statusError
	var own *failure
	var ran *runError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &ran):
		return ran.code
	case errors.As(err, &status):
		return map[model.Status]int{
			model.StatusWarning: exitWarning, model.StatusSaturated: exitSaturated,
			model.StatusLosing: exitLosing, model.StatusDown: exitDown,
		}[status.status]
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &own):
		return exitFailure
	}
	return exitUsage
}
