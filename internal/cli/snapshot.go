package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/predict"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/schedule"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// snapshotOptions are the flags of snapshot.
type snapshotOptions struct {
	command.Targets
	interval   time.Duration
	output     string
	verbose    bool
	exitStatus bool
	report     string
	line       string // the command line, for the report
	threadDump bool
}

func newSnapshotCommand() *cobra.Command {
	var o snapshotOptions
	cmd := &cobra.Command{
		Use:   "snapshot [PORT...]",
		Short: "Report every listener once: verdict and advice on one screen",
		Long: `snapshot reads everything twice, --interval apart, and samples the accept queues
in between. While clients wait and none of those that came has had an answer, it
looks on for up to five seconds more. For each listener it reports how full every
stage is, what was lost, which limit is the cause, and what to change. Without
--port, --pid or --all it reports every Tomcat on this machine.`,
		Example: `  tcpdiag snapshot
  tcpdiag snapshot 8080 --interval 5s
  tcpdiag snapshot --port 8080 --max-connections 8192 --max-threads 200
  tcpdiag snapshot --pid 4711                     # also in another network namespace
  tcpdiag snapshot --output json | jq '.listeners[].verdict'
  tcpdiag snapshot --report overload.html         # a page to attach to a ticket
  sudo -u app tcpdiag snapshot --thread-dump      # what the threads do, by the JVM's own account
  tcpdiag snapshot --port 8080 --exit-status      # 0 ok, 10 warning, 11 saturated, 12 losing, 13 down`,
		Args: command.PortsOnly,
		RunE: o.command,
	}
	o.flags(cmd)
	return cmd
}

func (o *snapshotOptions) flags(cmd *cobra.Command) {
	o.Register(cmd.Flags())
	command.CompleteTargets(cmd)
	command.TimeVar(cmd.Flags(), &o.interval, "interval", time.Second, "time between the two readings; 0 reads once, without losses, clients and peaks")
	command.OutputVar(cmd, &o.output, "text or json", "text", "json")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "also print what the answer rests on: evidence, where limits are set, other findings, what could not be read")
	cmd.Flags().BoolVar(&o.exitStatus, "exit-status", false, "exit with the worst listener's status: 0 ok, 10 warning, 11 saturated, 12 losing, 13 down")
	cmd.Flags().StringVar(&o.report, "report", "", "also write the result as a self-contained HTML page to this file")
	command.RegisterThreadDump(cmd.Flags(), &o.threadDump, "once")
}

// command is what snapshot does, and tcpdiag without a command.
func (o *snapshotOptions) command(cmd *cobra.Command, args []string) error {
	return command.Run(func(cmd *cobra.Command) error {
		if err := o.Add(args); err != nil {
			return err
		}
		if err := o.validate(); err != nil {
			return err
		}
		o.line = commandLine(cmd, args)
		return o.run(cmd.Context(), cmd.OutOrStdout())
	})(cmd, args)
}

// commandLine is how the command was called. A URL may hold a password, and is left out.
func commandLine(cmd *cobra.Command, args []string) string {
	words := append([]string{cmd.CommandPath()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		switch {
		case f.Name == "actuator":
			words = append(words, "--actuator URL")
		case f.Value.Type() == "bool":
			words = append(words, "--"+f.Name)
		default:
			words = append(words, "--"+f.Name+" "+f.Value.String())
		}
	})
	return strings.Join(words, " ")
}

// longestInterval bounds a snapshot: what takes longer is the agent's work.
const longestInterval = time.Hour

func (o *snapshotOptions) validate() error {
	if o.interval < 0 || o.interval > longestInterval {
		return command.Usagef("--interval %v: give a time from 0 (one snapshot) to %v", o.interval, longestInterval)
	}
	if err := o.Validate(); err != nil {
		return err
	}
	return command.ValidOutput(o.output)
}

// settings are the scheduler's for one snapshot.
func (o *snapshotOptions) settings() schedule.Options {
	opt := schedule.Defaults()
	o.Options(&opt)
	opt.MaxListeners = 0
	opt.Window = max(opt.Window, 2*o.interval)
	opt.Lately = opt.Window
	return opt
}

func (o *snapshotOptions) run(ctx context.Context, w io.Writer) error {
	snap, err := o.take(ctx, o.settings())
	if err != nil {
		return err
	}
	if err := o.write(w, snap); err != nil {
		return err
	}
	if err := o.writeReport(snap); err != nil {
		return err
	}
	if worst := command.WorstStatus(snap); o.exitStatus && worst != model.StatusOK {
		return &command.StatusError{Status: worst}
	}
	return nil
}

// take takes the whole snapshot: what it opened stays open where it was interrupted
// and has not ended.
func (o *snapshotOptions) take(ctx context.Context, opt schedule.Options) (*model.Snapshot, error) {
	s, err := command.NewScheduler(opt)
	if err != nil {
		return nil, err
	}
	if o.interval == 0 && o.Handshakes == clients.Auto { // no time in which a packet could come
		o.Handshakes = clients.Off
	}
	f, err := o.Follower(s)
	if err != nil {
		s.Close()
		return nil, err
	}
	left, err := command.Interruptible(ctx, func(ctx context.Context) error { return o.observe(ctx, s, f) })
	if !left {
		defer s.Close()
		defer f.Close()
	}
	if err != nil {
		return nil, err
	}
	if o.threadDump {
		if err := command.DumpOnce(ctx, s); err != nil {
			return nil, err
		}
	}
	return predict.Snapshot(s.Snapshot()), nil
}

// observe follows the clients from the first snapshot to the second.
func (o *snapshotOptions) observe(ctx context.Context, s *schedule.Scheduler, f *clients.Follower) error {
	if o.interval == 0 {
		return s.Observe(ctx, 0)
	}
	g, ctx := errgroup.WithContext(ctx)
	within, looked := context.WithCancel(ctx)
	g.Go(func() error { return f.Run(within) })
	g.Go(func() error {
		defer looked()
		return s.Observe(ctx, o.interval)
	})
	return g.Wait()
}

// writeReport writes the page, where it is wanted, to a new file or over an old one.
func (o *snapshotOptions) writeReport(snap *model.Snapshot) error {
	if o.report == "" {
		return nil
	}
	var page bytes.Buffer
	if err := web.Report(&page, snap, version.Version, o.line); err != nil {
		return err
	}
	if err := os.WriteFile(o.report, page.Bytes(), 0o644); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

func (o *snapshotOptions) write(w io.Writer, snap *model.Snapshot) error {
	if o.output == "json" {
		return render.JSON(w, snap)
	}
	screen := command.TextOptionsOf(w)
	screen.Verbose = o.verbose
	return render.Text(w, snap, screen)
}
