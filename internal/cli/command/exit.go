package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The exit codes. Their meaning never changes.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	// Of snapshot --exit-status, by the worst listener.
	ExitWarning   = 10
	ExitSaturated = 11
	ExitLosing    = 12
	ExitDown      = 13
)

// usageError is a mistake in how the command was called.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// Usagef is a mistake in how the command was called, in one line.
func Usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

// Called reports whether an error is a mistake in how the command was called.
func Called(err error) bool {
	var usage *usageError
	return errors.As(err, &usage)
}

// Failure is an error of the command itself, in distinction to cobra's own
// complaints about flags and arguments.
type Failure struct{ Err error }

func (e *Failure) Error() string { return e.Err.Error() }
func (e *Failure) Unwrap() error { return e.Err }

// StatusError carries the verdict of snapshot --exit-status.
type StatusError struct{ Status model.Status }

func (e *StatusError) Error() string { return "the worst listener is " + e.Status.String() }

// RunError ends run with a code of its own; err is nil where there is nothing to say.
type RunError struct {
	Code int
	Err  error
}

func (e *RunError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *RunError) Unwrap() error { return e.Err }

// Run marks what a command returns as its own failure.
func Run(fn func(cmd *cobra.Command) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if err := fn(cmd); err != nil {
			return &Failure{err}
		}
		return nil
	}
}

// ExitCode maps an error to the exit code. What never reached a command's own
// function is wrong usage.
func ExitCode(err error) int {
	var usage *usageError
	var status *StatusError
	var failure *Failure
	var ran *RunError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &ran):
		return ran.Code
	case errors.As(err, &status):
		return map[model.Status]int{
			model.StatusWarning: ExitWarning, model.StatusSaturated: ExitSaturated,
			model.StatusLosing: ExitLosing, model.StatusDown: ExitDown,
		}[status.Status]
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &failure):
		return ExitFailure
	}
	return ExitUsage
}

// FlagError adds to the complaint about an unknown flag the one that was probably
// meant.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if near := Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, near)
	}
	return err
}

// unknownCommand is the complaint about a first argument that is neither a command nor
// a port.
func unknownCommand(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s?", name, strings.Join(near, " or "))
	}
	return fmt.Errorf("unknown command %q; give a command or a port", name)
}

// partOfName is how many letters of a name tell it apart.
const partOfName = 5

// Nearest is the name that differs by one letter, else by two, or begins so, by the rule that cobra has for
// commands, or of which it is a part; "" where there is none.
func Nearest(name string, names []string) string {
	menu := &cobra.Command{}
	for _, n := range names {
		menu.AddCommand(&cobra.Command{Use: n, Run: func(*cobra.Command, []string) {}})
	}
	for menu.SuggestionsMinimumDistance = 1; menu.SuggestionsMinimumDistance <= 2; menu.SuggestionsMinimumDistance++ {
		if near := menu.SuggestionsFor(name); len(near) > 0 {
			return near[0]
		}
	}
	for _, n := range names { // --threads is --max-threads
		if len(name) >= partOfName && strings.Contains(n, name) {
			return n
		}
	}
	return ""
}
