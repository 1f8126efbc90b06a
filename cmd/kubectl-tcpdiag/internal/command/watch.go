package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func newWatch(o *options) *cobra.Command {
	var interval, lasts time.Duration
	cmd := &cobra.Command{
		Use:   "watch [POD | TYPE/NAME]...",
		Short: "Report continuously",
		Long: `watch shows what kubectl tcpdiag does, and again every interval: on a terminal in
place. Pods that are replaced meanwhile are followed where a workload, labels or nothing
is given. --output json writes one snapshot document per line and interval.`,
		Example: `  kubectl tcpdiag watch deploy/orders
  kubectl tcpdiag watch -l app=orders --interval 5s
  kubectl tcpdiag watch deploy/orders -o json | jq -c '.listeners[] | [.port, .verdict.cause]'`,
		ValidArgsFunction: o.completeTargets,
		RunE: run(func(cmd *cobra.Command, args []string) error {
			if interval < 100*time.Millisecond || interval > time.Hour {
				return usagef("--interval %v: give a time from 100ms to 1h", interval)
			}
			return o.watch(cmd, args, interval, lasts)
		}),
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "time between two updates")
	cmd.Flags().DurationVar(&lasts, "for", 0, "end after this time; 0: on Ctrl-C")
	registerOutput(cmd, &o.output)
	return cmd
}

func (o *options) watch(cmd *cobra.Command, args []string, interval, lasts time.Duration) error {
	q, results, err := o.question(cmd, args)
	if err != nil {
		return err
	}
	sayWays(cmd.ErrOrStderr(), results)
	if err := failures(cmd.ErrOrStderr(), results); err != nil && listeners(results) == 0 {
		return err
	}
	ctx, w := cmd.Context(), cmd.OutOrStdout()
	f, ok := w.(*os.File)
	terminal := ok && term.IsTerminal(int(f.Fd())) && o.output != "json"
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var end <-chan time.Time
	if lasts > 0 {
		end = time.After(lasts)
	}
	for {
		var screen bytes.Buffer
		if err := o.frame(&screen, w, results, terminal); err != nil {
			return err
		}
		if _, err := w.Write(screen.Bytes()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-end:
			return nil
		case <-tick.C:
		}
		again(ctx, results)
		results = q.renewed(ctx, results)
		if ctx.Err() != nil {
			return nil
		}
	}
}

// frame is one screen, or one line of JSON.
func (o *options) frame(screen *bytes.Buffer, w io.Writer, results []result, terminal bool) error {
	if o.output == "json" {
		return writeLine(screen, results)
	}
	if terminal {
		screen.WriteString("\x1b[H\x1b[2J")
	}
	options := screenOf(w)
	options.Verbose = o.verbose
	var err error
	if listeners(results) == 1 || o.verbose {
		err = writeEach(screen, results, options)
	} else {
		err = writeTable(screen, results, options)
	}
	for i := range results {
		if failed := results[i].err; failed != nil {
			fmt.Fprintf(screen, "%s/%s: %v\n", results[i].pod.Namespace, results[i].pod.Name, failed)
		}
	}
	if !terminal {
		fmt.Fprintln(screen)
	}
	return err
}
