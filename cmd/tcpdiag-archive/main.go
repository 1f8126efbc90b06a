package main

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

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // an image with nothing else in it has no certificates

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The exit codes are those of tcpdiag.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// usageError is a mistake in the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	log.SetOutput(io.Discard) // net/http quotes there what strangers send
	root := newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var usage usageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "tcpdiag-archive: %v (see %s --help)\n", err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(stderr, "tcpdiag-archive: %s\n", oneLine(err.Error()))
	return exitError
}

// longestError bounds what a library says, and a server through it.
const longestError = 600

// oneLine is an error of a library that needs several, without what a terminal would obey.
func oneLine(text string) string {
	text = model.Printable(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " "))
	if len(text) > longestError {
		text = strings.ToValidUTF8(text[:longestError], "") + "…"
	}
	return text
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tcpdiag-archive",
		Short: "Take incidents that tcpdiag recorded to a log pipeline and an object store",
		Long: `tcpdiag-archive takes the incidents that tcpdiag's agent records away from the
machine that they were seen on: as OTLP log records, and as recordings in an object
store (S3, Google Cloud Storage, Azure, a folder), from which it makes reports.`,
		Example: `  tcpdiag-archive run --incident-dir /var/lib/tcpdiag --otlp-endpoint http://collector:4318 --bucket s3://incidents?region=eu-west-1
  tcpdiag-archive list --bucket s3://incidents?region=eu-west-1 --since 24h
  tcpdiag-archive report 000007-20260102T031205Z-8080 --bucket s3://incidents?region=eu-west-1 -o incident.html`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version.Print("tcpdiag-archive"),
		Args:          cobra.NoArgs,
		RunE:          func(*cobra.Command, []string) error { return usagef("give a command") },
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newRunCommand(), newListCommand(), newReportCommand(), newReplayCommand(), newHealthcheckCommand())
	return root
}

// args reports a wrong number of arguments as a mistake of the command line.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
