package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/assistant"
	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/incident"
)

// mcpOptions are the flags of mcp.
type mcpOptions struct {
	command.Targets
	agent      string
	httpConfig string
	dir        string
}

func newMCPCommand() *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Answer the questions of an AI assistant, which starts it",
		Long: `mcp answers an assistant by the Model Context Protocol on standard input and
output: which listeners there are, why clients are refused or wait, what a cause
means, what other limits would do, what was recorded. It only reads. It takes no
thread dumps, and reaches no address but the one that is given.

With --agent it asks an agent's API. Without, it reads this machine as snapshot
does, and the recordings in --incident-dir.

--http.config.file has the settings of the HTTP client in Prometheus's format:
basic_auth, authorization, tls_config.`,
		Example: `  tcpdiag mcp                                         # this machine
  tcpdiag mcp --port 8080                             # and no other listener
  tcpdiag mcp --agent http://10.0.3.7:10889
  tcpdiag mcp --agent https://node7:10889 --http.config.file client.yml`,
		Args: cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			source, err := o.source(cmd)
			if err != nil {
				return err
			}
			server, err := assistant.New(source, version.Version)
			if err != nil {
				return err
			}
			return assistant.Serve(cmd.Context(), server, io.NopCloser(cmd.InOrStdin()), writeCloser{cmd.OutOrStdout()})
		}),
	}
	cmd.Flags().StringVar(&o.agent, "agent", "", "base URL of the agent to ask, such as http://127.0.0.1:10889; this machine is read where none is given")
	cmd.Flags().StringVar(&o.httpConfig, "http.config.file", "", "file with the HTTP client's settings for --agent, in Prometheus's format")
	cmd.Flags().StringVar(&o.dir, "incident-dir", command.IncidentDir, "directory with recordings, without --agent")
	o.Register(cmd.Flags())
	command.CompleteFlags(cmd)
	command.Complete(cmd, "incident-dir", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	command.Complete(cmd, "agent", cobra.FixedCompletions([]cobra.Completion{"http://127.0.0.1:10889"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeCloser leaves standard output open.
type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// source is what the flags name. What is read of this machine goes with no agent.
func (o *mcpOptions) source(cmd *cobra.Command) (assistant.Source, error) {
	if o.agent == "" {
		if o.httpConfig != "" {
			return nil, command.Usagef("--http.config.file goes with --agent")
		}
		return &machine{Targets: o.Targets, dir: o.dir, reading: make(chan struct{}, 1)}, o.Validate()
	}
	for _, name := range []string{"port", "pid", "all", "all-namespaces", "max-connections", "accept-count", "max-threads", "actuator", "handshakes", "incident-dir"} {
		if cmd.Flags().Changed(name) {
			return nil, command.Usagef("--%s goes without --agent: the agent has its own", name)
		}
	}
	base, err := assistant.AgentURL(o.agent)
	if err != nil {
		return nil, command.Usagef("%v", err)
	}
	return assistant.NewAgent(base, o.httpConfig)
}

// machine is this machine as a source.
type machine struct {
	command.Targets
	dir     string
	reading chan struct{} // holds one: two snapshots at a time would cost twice
}

// TakesInterval is true.
func (m *machine) TakesInterval() bool { return true }

// Snapshot reads what the flags name; where they name nothing, a port may be any.
func (m *machine) Snapshot(ctx context.Context, query assistant.Query) (*api.Snapshot, error) {
	select {
	case m.reading <- struct{}{}:
		defer func() { <-m.reading }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	o := snapshotOptions{Targets: m.Targets, interval: query.Interval}
	if free := len(m.Ports) == 0 && len(m.Pids) == 0; free && query.Port != 0 {
		o.Ports = command.Ports{query.Port}
	}
	snap, err := o.take(ctx, o.settings())
	if err != nil {
		return nil, err
	}
	out := api.NewSnapshot(snap)
	return assistant.OfPort(&out, query.Port), nil
}

// Incidents are the recordings in the directory; none where there is no such directory.
func (m *machine) Incidents(context.Context) (*api.Incidents, error) {
	out := api.NewIncidents(nil)
	err := m.read(func(l *incident.Library) error {
		list, err := l.List()
		out = api.NewIncidents(list)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return &out, err
}

// Incident is one of them.
func (m *machine) Incident(_ context.Context, id string) (*api.Incident, error) {
	var out api.Incident
	err := m.read(func(l *incident.Library) error {
		story, err := l.Read(id)
		if err == nil {
			out = api.NewIncident(story)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, assistant.ErrUnknown
	}
	return &out, err
}

func (m *machine) read(do func(*incident.Library) error) error {
	l, err := incident.OpenLibrary(m.dir)
	if err != nil {
		return err
	}
	defer l.Close()
	return do(l)
}
