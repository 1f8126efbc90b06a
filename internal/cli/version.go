package cli

import (
	"fmt"
	"runtime/debug"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
)

// stampVersion takes the version of what the go command itself built, where the linker
// was told none (see the Makefile): that of the module, and the commit's hash.
func stampVersion() {
	info, ok := debug.ReadBuildInfo()
	if ok && version.Version == "" {
		version.Version = info.Main.Version
	}
	if version.Revision == "" {
		version.Revision = version.GetRevision()
	}
}

// newVersionCommand prints what the linker stamped in, or the go command.
func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version, revision and Go version",
		Example: "  tcpdiag version",
		Args:    cobra.NoArgs,
		RunE: command.Run(func(cmd *cobra.Command) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), version.Print("tcpdiag"))
			return err
		}),
	}
}
