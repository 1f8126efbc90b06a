// Package command is the command line of kubectl tcpdiag.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // exec plugins, which clouds use, are always there
	"k8s.io/klog/v2"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The exit codes are those of tcpdiag snapshot.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake in how the command was called.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// failure is a command's own error, in distinction to cobra's complaints about flags.
type failure struct{ err error }

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// statusError carries the worst listener's status, for --exit-status.
type statusError struct{ status model.Status }

func (e *statusError) Error() string { return "the worst listener is " + e.status.String() }

// reported is a failure that was printed where it happened.
type reported struct{ n int }

func (e *reported) Error() string { return fmt.Sprintf("%d pods could not be asked", e.n) }

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	klog.SetOutput(io.Discard) // of libraries that quote what strangers send
	klog.LogToStderr(false)
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return exitCode(root.ExecuteContext(ctx), stderr)
}

func exitCode(err error, stderr io.Writer) int {
	var status *statusError
	var usage *usageError
	var shown *reported
	var failed *failure
	var coded *codeError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		if coded.err != nil {
			complain(stderr, coded.err)
		}
		return coded.code
	case errors.As(err, &status):
		return map[model.Status]int{model.StatusWarning: 10, model.StatusSaturated: 11, model.StatusLosing: 12, model.StatusDown: 13}[status.status]
	case errors.As(err, &shown):
		return exitFailure
	case errors.As(err, &usage) || !errors.As(err, &failed):
		fmt.Fprintf(stderr, "tcpdiag: %v (see kubectl tcpdiag --help)\n", err)
		return exitUsage
	}
	complain(stderr, err)
	return exitFailure
}

// complain prints an error and, where a right is missing, the Role that grants it.
func complain(stderr io.Writer, err error) {
	fmt.Fprintf(stderr, "tcpdiag: %s\n", strings.ReplaceAll(err.Error(), "\n", "\ntcpdiag: "))
	var explained *ask.Explained
	if errors.As(err, &explained) {
		fmt.Fprintf(stderr, "\nWhoever administers the cluster can grant it, by kubectl apply of\n\n%s\nand: %s\n", explained.Role, explained.Grant)
	}
}

const about = `kubectl tcpdiag reports why clients of a Tomcat in a pod are refused, reset or timed
out, which limit is the cause, and what to change.

It asks the tcpdiag sidecar of the pod; else the agent of the pod's node; else an
ephemeral container that it adds to the pod: of the target's user and group, without
privileges, which ends by itself after --lifetime. Nothing is restarted and nothing
exposed. It says which way it took, and what that could not see.

Without a pod it lists what the node agents and sidecars of the namespace watch
(-A: of all namespaces), the worst first.`

func newRoot() *cobra.Command {
	o := newOptions()
	root := &cobra.Command{
		Use:   "kubectl-tcpdiag [POD | TYPE/NAME]...",
		Short: "Report why clients of a Tomcat in a pod are refused, reset or timed out",
		Long:  about,
		Example: `  kubectl tcpdiag orders-7f9c6d5b4-x2x5z
  kubectl tcpdiag deploy/orders -n shop
  kubectl tcpdiag -l app=orders                   # one table, the worst first
  kubectl tcpdiag -A
  kubectl tcpdiag deploy/orders --thread-dump     # what the threads do
  kubectl tcpdiag watch deploy/orders
  kubectl tcpdiag report deploy/orders -o orders.html
  kubectl tcpdiag incidents -A
  kubectl tcpdiag run deploy/orders -- k6 run load.js    # a load test, and why it lost clients
  kubectl tcpdiag deploy/orders --exit-status     # 0 ok, 10 warning, 11 saturated, 12 losing, 13 down`,
		Args:              cobra.ArbitraryArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           version.Print("kubectl-tcpdiag"),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl tcpdiag"},
		ValidArgsFunction: o.completeTargets,
		RunE:              run(o.snapshot),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	o.register(root.PersistentFlags())
	registerOutput(root, &o.output)
	root.Flags().BoolVar(&o.exitStatus, "exit-status", false, "exit with the worst listener's status: 0 ok, 10 warning, 11 saturated, 12 losing, 13 down")
	o.completions(root)
	root.AddCommand(newWatch(o), newReport(o), newIncidents(o), newRun(o))
	return root
}

// run marks what a command returns as its own failure.
func run(fn func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := fn(cmd, args); err != nil {
			return &failure{err}
		}
		return nil
	}
}

func registerOutput(cmd *cobra.Command, output *string) {
	cmd.Flags().StringVarP(output, "output", "o", "text", "text or json")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}
