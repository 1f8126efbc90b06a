package command

import (
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
)

// DiscoverChild is the hidden command that reads what one observed process wrote
// and named; see examine.Serve.
const DiscoverChild = "discover-child"

// NewDiscoverChildCommand is that command.
func NewDiscoverChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    DiscoverChild,
		Short:  "Read one process's configuration (started by tcpdiag itself)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			proc, err := hostproc.NewFS(ProcMount)
			if err != nil {
				return err
			}
			return examine.Serve(proc, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}

// children start this very program, also where its file was replaced.
func children() *examine.Children {
	return examine.NewChildren("/proc/self/exe", DiscoverChild)
}
