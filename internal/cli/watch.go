package cli

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/config"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/watch"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
)

// watchOptions are the flags of watch.
type watchOptions struct {
	command.Targets
	interval time.Duration
	lasts    time.Duration
	output   string
}

func newWatchCommand() *cobra.Command {
	var o watchOptions
	cmd := &cobra.Command{
		Use:   "watch [PORT...]",
		Short: "Report continuously, for example beside a load test",
		Long: `watch shows the screen of snapshot on a terminal and updates it every interval,
with a history of each stage above it: the highest value within each interval,
from 100 samples of the accept queue per second. As in the agent, the verdict
covers the last minute. At its end it prints each listener's worst moment.

If the output is not a terminal it writes one line for each listener and
interval, with the packets dropped since the line before. --output json writes
one snapshot document per line.`,
		Example: `  tcpdiag watch
  tcpdiag watch 8080 --interval 200ms
  tcpdiag watch --port 8080 --for 5m | tee load-test.txt
  tcpdiag watch --output json | jq -c '.listeners[] | [.port, .verdict.cause]'`,
		Args: command.PortsOnly,
		RunE: command.Run(func(cmd *cobra.Command) error {
			if err := o.Add(cmd.Flags().Args()); err != nil {
				return err
			}
			if err := o.validate(); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout())
		}),
	}
	o.Register(cmd.Flags())
	command.CompleteTargets(cmd)
	command.TimeVar(cmd.Flags(), &o.interval, "interval", time.Second, "time between two updates")
	command.TimeVar(cmd.Flags(), &o.lasts, "for", 0, "end after this time; 0: on q or Ctrl-C")
	command.OutputVar(cmd, &o.output, "text (a screen on a terminal that can show one, else lines), lines or json", "text", "lines", "json")
	return cmd
}

func (o *watchOptions) validate() error {
	switch {
	case o.interval < config.MinScanInterval || o.interval > config.MaxScanInterval:
		return command.Usagef("--interval %v: give a time from %v to %v", o.interval, config.MinScanInterval, config.MaxScanInterval)
	case o.lasts < 0:
		return command.Usagef("--for %v: give a time from 0 (until q or Ctrl-C)", o.lasts)
	case o.output != "text" && o.output != "lines" && o.output != "json":
		return command.Usagef("--output %q: give text, lines or json", o.output)
	}
	return o.Validate()
}

func (o *watchOptions) run(ctx context.Context, w io.Writer) error {
	opt := schedule.Defaults()
	o.Options(&opt)
	opt.ScanInterval, opt.MaxListeners = o.interval, 0
	s, err := command.NewScheduler(opt)
	if err != nil {
		return err
	}
	f, err := o.Follower(s)
	if err != nil {
		s.Close()
		return err
	}
	var left bool
	defer func() {
		if !left {
			f.Close()
			s.Close()
		}
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if o.lasts > 0 {
		time.AfterFunc(o.lasts, stop)
	}
	g, ctx := errgroup.WithContext(ctx)
	snapshots := make(chan *model.Snapshot)
	g.Go(func() error {
		var err error
		if left, err = command.Interruptible(ctx, s.Run); ctx.Err() == nil {
			return err
		}
		return nil // the end may come in the midst of the first snapshot
	})
	g.Go(func() error {
		defer close(snapshots)
		command.FollowSnapshots(ctx, s, snapshots)
		return nil
	})
	g.Go(func() error { return f.Run(ctx) })
	g.Go(func() error {
		defer stop()
		return o.show(w, snapshots)
	})
	return g.Wait()
}

// show ends when there are no more snapshots, or the reader has seen enough.
func (o *watchOptions) show(w io.Writer, snapshots <-chan *model.Snapshot) error {
	screen, ok := command.TerminalOf(w)
	if ok && o.output == "text" && os.Getenv("TERM") != "dumb" {
		return newWatchScreen(o.interval, screen).run(w, snapshots)
	}
	add := watch.NewLines(w, o.interval).Add
	if o.output == "json" {
		add = watch.NewJSONLines(w, o.interval).Add
	}
	for snap := range snapshots {
		if err := add(snap); err != nil {
			return err
		}
	}
	return nil
}
