package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/docs"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

func newExplainCommand() *cobra.Command {
	topics := render.Topics(docs.Troubleshooting)
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return &cobra.Command{
		Use:   "explain [CAUSE]",
		Short: "Print what a cause means, what to check and what to change",
		Long: `explain prints the runbook of a cause or a finding: what was seen, what clients
see of it, what to check, what to change and what does not help. Without an
argument it lists all of them.`,
		Example: `  tcpdiag explain
  tcpdiag explain max_connections`,
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(func(cmd *cobra.Command) error { return explain(cmd.OutOrStdout(), topics, names, args) })(cmd, args)
		},
	}
}

func explain(w io.Writer, topics []render.Topic, names, args []string) error {
	if len(args) == 0 {
		return render.TopicList(w, topics, textOptions(w))
	}
	name := strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(args[0]))
	i := slices.Index(names, name)
	if i < 0 {
		if near := nearest(name, names); near != "" {
			return usagef("explain %q: no such cause; did you mean %s?", args[0], near)
		}
		return usagef("explain %q: no such cause; tcpdiag explain lists them", args[0])
	}
	return render.Runbook(w, topics[i], textOptions(w))
}
