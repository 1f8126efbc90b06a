package cli

import (
	"fmt"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
)

// newVersionCommand prints what the linker stamped in (see the Makefile).
func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, revision and Go version",
		Example: "  tcpdiag version",
		Args:    cobra.NoArgs,
		RunE: run(func(cmd *cobra.Command) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Print("tcpdiag"))
			return err
		}),
	}
}
