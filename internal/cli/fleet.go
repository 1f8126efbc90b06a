package cli

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/fleet"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/fleetreport"
)

// fleetOptions are the flags of fleet.
type fleetOptions struct {
	prometheus string
	httpConfig string
	at         string
	of         fleet.Selection
	limit      int
	timeout    time.Duration
	output     string
	exitStatus bool
}

// mostListeners bounds a table, and an answer.
const mostListeners = 1000

func newFleetCommand() *cobra.Command {
	var o fleetOptions
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "List the listeners of all agents, worst first, from a Prometheus",
		Long: `fleet asks a Prometheus that scrapes the agents for every listener of every
node, and prints one table, the worst first: its status and cause, how much of its
queue, connections and threads is taken, and how many clients it turned away in the
last 3 minutes. Mimir and Thanos have the same API.

It asks the recording rules of deploy/prometheus (alerting.rules.yml and
fleet.rules.yml), and where there is nothing of them the agents' own series.

--http.config.file has the settings of the HTTP client in Prometheus's format:
authorization (a bearer token's file), basic_auth, tls_config, http_headers (Mimir's
X-Scope-OrgID).`,
		Example: `  tcpdiag fleet --prometheus http://prometheus:9090
  tcpdiag fleet --prometheus http://prometheus:9090 --at 03:12          # last night
  tcpdiag fleet --prometheus http://prometheus:9090 --namespace shop -n 100
  tcpdiag fleet --prometheus https://mimir/prometheus --http.config.file client.yml
  tcpdiag fleet --prometheus http://prometheus:9090 --output json | jq '.listeners[0]'
  tcpdiag fleet --prometheus http://prometheus:9090 --exit-status       # 0 ok, 10 warning, 11 saturated, 12 losing, 13 down`,
		Args: cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error { return o.run(cmd.Context(), cmd.OutOrStdout(), time.Now()) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.prometheus, "prometheus", "", "base URL of the Prometheus, such as http://prometheus:9090")
	flags.StringVar(&o.httpConfig, "http.config.file", "", "file with the HTTP client's settings, in Prometheus's format")
	flags.StringVar(&o.at, "at", "", "show a moment of the past: 03:12 (today's or yesterday's), -2h, or a time of RFC 3339")
	flags.StringVar(&o.of.Namespace, "namespace", "", "only listeners of pods in this Kubernetes namespace")
	flags.StringVar(&o.of.Cluster, "cluster", "", "only series whose label cluster is this")
	flags.IntVarP(&o.limit, "limit", "n", 20, "maximum number of listeners to list")
	command.TimeVar(flags, &o.timeout, "timeout", 10*time.Second, "maximum time to wait for the answers")
	flags.BoolVar(&o.exitStatus, "exit-status", false, "exit with the worst listener's status: 0 ok, 10 warning, 11 saturated, 12 losing, 13 down")
	command.OutputVar(cmd, &o.output, "text or json", "text", "json")
	command.Complete(cmd, "prometheus", cobra.FixedCompletions([]cobra.Completion{"http://127.0.0.1:9090"}, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"at", "namespace", "cluster", "limit", "timeout"} {
		command.Complete(cmd, name, cobra.NoFileCompletions)
	}
	return cmd
}

func (o *fleetOptions) run(ctx context.Context, w io.Writer, now time.Time) error {
	if o.prometheus == "" {
		return command.Usagef("fleet needs --prometheus URL, such as http://prometheus:9090")
	}
	base, err := fleet.ParseURL(o.prometheus)
	if err != nil {
		return command.Usagef("%v", err)
	}
	at, err := fleet.ParseAt(o.at, now)
	switch {
	case err != nil:
		return command.Usagef("--at %q: %v", o.at, err)
	case o.limit < 1 || o.limit > mostListeners:
		return command.Usagef("--limit %d: give a number from 1 to %d", o.limit, mostListeners)
	case o.timeout <= 0:
		return command.Usagef("--timeout %v: give a time such as 10s", o.timeout)
	}
	if err := command.ValidOutput(o.output); err != nil {
		return err
	}
	client, err := fleet.New(base, o.httpConfig, at)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	table, err := client.Table(ctx, o.of, o.limit)
	if err != nil {
		return err
	}
	if err := o.write(w, table); err != nil {
		return err
	}
	if worst := statusOf(table); o.exitStatus && worst != model.StatusOK {
		return &command.StatusError{Status: worst}
	}
	return nil
}

func (o *fleetOptions) write(w io.Writer, table *api.Fleet) error {
	if o.output == "json" {
		return fleetreport.JSON(w, table)
	}
	screen, ok := command.TerminalOf(w)
	if !ok {
		screen.Width = wideScreen // what follows in a pipe cuts no lines
	}
	return fleetreport.Text(w, table, screen)
}

// wideScreen is the widest that a screen may be.
const wideScreen = 120

func statusOf(table *api.Fleet) model.Status {
	for s := range model.NumStatuses {
		if s.String() == table.Status {
			return s
		}
	}
	return model.StatusOK
}
