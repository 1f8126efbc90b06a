package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

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
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionText())
			return err
		}),
	}
}

// versionText is what is known of the build, on two lines.
func versionText() string {
	var of []string
	for _, part := range [][2]string{{"branch: ", version.Branch}, {"revision: ", version.Revision}} {
		if part[1] != "" {
			of = append(of, part[0]+part[1])
		}
	}
	built := "built"
	if version.BuildUser != "" {
		built += " by " + version.BuildUser
	}
	if version.BuildDate != "" {
		built += " at " + version.BuildDate
	}
	return fmt.Sprintf("tcpdiag, version %s (%s)\n  %s with %s for %s/%s", version.Version, strings.Join(of, ", "), built, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
