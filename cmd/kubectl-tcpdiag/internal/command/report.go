package command

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/web"
)

func newReport(o *options) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "report [POD | TYPE/NAME]...",
		Short: "Write the answer as a self-contained HTML page",
		Example: `  kubectl tcpdiag report deploy/orders -o orders.html
  kubectl tcpdiag report -l app=orders -o -       # to standard output`,
		ValidArgsFunction: o.completeTargets,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			results, err := o.results(cmd, args)
			if err != nil {
				return err
			}
			sayWays(cmd.ErrOrStderr(), results)
			failed := failures(cmd.ErrOrStderr(), results)
			if listeners(results) == 0 && failed != nil {
				return failed
			}
			var page bytes.Buffer
			if err := web.Report(&page, merged(results).Model(), version.Version, "kubectl tcpdiag report "+strings.Join(args, " ")); err != nil {
				return err
			}
			if file == "-" {
				_, err = page.WriteTo(cmd.OutOrStdout())
				return err
			}
			if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
				return fmt.Errorf("--output: %w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "tcpdiag: the page is %s\n", file)
			return failed
		}),
	}
	cmd.Flags().StringVarP(&file, "output", "o", "tcpdiag.html", "file to write; - for standard output")
	return cmd
}
