package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// reportOptions are the flags of report.
type reportOptions struct {
	dir    string
	output string
}

func newReportCommand() *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:        "report FILE|ID",
		SuggestFor: []string{"incident", "incidents"},
		Short:      "Report what happened in a recorded incident",
		Long: `report reads an incident that the agent recorded and reports what happened, what
clients saw, which limit was the cause and what to change, with a timeline and the
settings in force. With --output it writes a self-contained HTML page instead, which
opens without a network. A recording whose agent was killed is read up to
what was written.

The argument is a file, the ID of an incident in --incident-dir, or - for the
standard input.`,
		Example: `  tcpdiag report 000007-20260102T031205Z-8080
  tcpdiag report /var/lib/tcpdiag/000007-20260102T031205Z-8080.tcpdiag -o incident.html
  curl -s http://localhost:10889/api/v1/incidents/ID/recording | tcpdiag report -`,
		Args: command.OneRecording(&o.dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.Run(func(cmd *cobra.Command) error {
				return o.run(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout())
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&o.dir, "incident-dir", command.IncidentDir, "directory that an ID is looked for in")
	command.CompleteIncidents(cmd)
	cmd.Flags().StringVarP(&o.output, "output", "o", "", "write a self-contained HTML page to this file")
	return cmd
}

func (o *reportOptions) run(_ context.Context, name string, stdin io.Reader, w io.Writer) error {
	in, err := command.OpenRecording(name, o.dir, stdin)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer func() { _ = in.Close() }()
	story, err := incident.Read(in)
	if err != nil {
		return fmt.Errorf("report: %s: %w", name, err)
	}
	if o.output == "" {
		return render.Incident(w, story, command.TextOptionsOf(w))
	}
	var page bytes.Buffer
	if err := web.IncidentReport(&page, story, version.Version); err != nil {
		return err
	}
	if err := os.WriteFile(o.output, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return nil
}
