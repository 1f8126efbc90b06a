package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	// Packages without a logger of ours quote what strangers send: net/http's client
	// an answer that nobody asked for, its server a handshake that fails.
	log.SetOutput(io.Discard)
	stampVersion()
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var status *statusError
	var ran *runError
	switch {
	case err == nil, errors.As(err, &status):
	case errors.As(err, &ran):
		if ran.err != nil {
			fmt.Fprintf(stderr, "tcpdiag: run: %v (see %s --help)\n", ran.err, cmd.CommandPath())
		}
	case exitCode(err) == exitUsage:
		fmt.Fprintf(stderr, "tcpdiag: %v (see %s --help)\n", err, cmd.CommandPath())
	default:
		fmt.Fprintf(stderr, "tcpdiag: %s\n", strings.ReplaceAll(err.Error(), "\n", "\ntcpdiag: "))
	}
	return exitCode(err)
}

func newRootCommand() *cobra.Command {
	var o snapshotOptions
	root := &cobra.Command{
		Use:   "tcpdiag [PORT...]",
		Short: "Report why clients of a Tomcat are refused, reset or timed out",
		Long: `tcpdiag reports why clients of a Tomcat are refused, reset or timed out, which
limit is the cause, and what to change. It reads what the kernel already knows
(netlink sock_diag, /proc) and what the application's configuration says.

Without a command it is tcpdiag snapshot.`,
		Example: `  tcpdiag                          every Tomcat here: verdict and advice
  tcpdiag 8080                     one listener, whatever server it is
  tcpdiag watch                    the same every second, with its history
  tcpdiag agent                    sample and export Prometheus metrics on :10889
  tcpdiag report FILE              what happened in a recorded incident
  tcpdiag demo                     see it work, with nothing else installed`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Print("tcpdiag"),
		Args:          commandOrPorts,
		RunE:          o.command,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.SuggestionsMinimumDistance = 2
	o.flags(root)
	root.AddCommand(newSnapshotCommand(), newWatchCommand(), newRunCommand(), newAgentCommand(), newFleetCommand(), newPlanCommand(), newDemoCommand(), newReportCommand(), newReplayCommand(), newMCPCommand(), newExplainCommand(), newHealthcheckCommand(), newVersionCommand(), newManCommand(), newDiscoverChildCommand(), newIDsCommand())
	return root
}
