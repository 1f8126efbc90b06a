// Package cli is the command line: one file a command, each flags → Options →
// run, and two commands that have packages of their own, agentcmd and runcmd. What they share
// is in package command. Data goes to standard output, logs to standard error, and errors become
// exit codes in one place (command.ExitCode).
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/agentcmd"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/cli/runcmd"
)

// UntilSignal returns a context that ends with SIGINT or SIGTERM. Once it has ended, the next
// of them ends the process, as no handler is left.
func UntilSignal() context.Context {
	ctx, end := context.WithCancel(context.Background())
	first := make(chan os.Signal, 1)
	signal.Notify(first, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-first
		signal.Stop(first)
		end()
	}()
	return ctx
}

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
	var status *command.StatusError
	var ran *command.RunError
	switch {
	case err == nil, errors.As(err, &status):
	case errors.As(err, &ran):
		if hint := ""; ran.Err != nil {
			if command.Called(ran.Err) {
				hint = " (see " + cmd.CommandPath() + " --help)"
			}
			fmt.Fprintf(stderr, "tcpdiag: run: %v%s\n", ran.Err, hint)
		}
	case command.ExitCode(err) == command.ExitUsage:
		fmt.Fprintf(stderr, "tcpdiag: %v (see %s --help)\n", err, cmd.CommandPath())
	default:
		fmt.Fprintf(stderr, "tcpdiag: %s\n", strings.ReplaceAll(err.Error(), "\n", "\ntcpdiag: "))
	}
	return command.ExitCode(err)
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
		Version:       versionText(),
		Args:          command.OrPorts,
		RunE:          o.command,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(command.FlagError)
	root.SuggestionsMinimumDistance = 2
	o.flags(root)
	root.AddCommand(newSnapshotCommand(), newWatchCommand(), runcmd.New(), agentcmd.New(), newFleetCommand(), newPlanCommand(), newDemoCommand(), newReportCommand(), newReplayCommand(), newMCPCommand(), newExplainCommand(), newHealthcheckCommand(), newVersionCommand(), newManCommand(), newIDsCommand())
	root.AddCommand(command.ChildCommands()...)
	command.CompleteAll(root)
	return root
}
