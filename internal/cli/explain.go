package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

func newExplainCommand() *cobra.Command {
	all := diagnosis.Runbooks()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Code
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
		RunE: command.Run(func(cmd *cobra.Command) error {
			return explain(cmd.OutOrStdout(), all, names, cmd.Flags().Args())
		}),
	}
}

func explain(w io.Writer, all []causes.Runbook, names, args []string) error {
	if len(args) == 0 {
		return render.Runbooks(w, all, command.TextOptionsOf(w))
	}
	name := strings.ToLower(strings.NewReplacer("-", "_", " ", "_").Replace(args[0]))
	if r, known := diagnosis.Explain(name); known {
		return render.Runbook(w, &r, command.TextOptionsOf(w))
	}
	if near := command.Nearest(name, names); near != "" {
		return command.Usagef("explain %q: no such cause; did you mean %s?", args[0], near)
	}
	return command.Usagef("explain %q: no such cause; tcpdiag explain lists them", args[0])
}
