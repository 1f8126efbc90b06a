package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tcpdiag/tcpdiag/internal/cli/command"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	dir    string
	output string
	speed  float64
}

func newReplayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE|ID",
		Short: "Show a recorded incident again and judge it again",
		Long: `replay shows a recorded incident as watch would have shown it, and judges every
moment again from the evidence that was recorded. It fails where a verdict is not
the recorded one: another version of tcpdiag may judge differently.

On a terminal it is a screen: space holds it, left and right go back and forth by
a moment, page up and page down by ten, home and end to the first and the last,
+ and - change the speed, q ends. Otherwise it writes a line for each moment.`,
		Example: `  tcpdiag replay 000007-20260102T031205Z-8080
  tcpdiag replay incident.tcpdiag --speed 10
  tcpdiag replay incident.tcpdiag --output json | jq -c '.listeners[].verdict.cause'`,
		Args: command.OneRecording(&o.dir),
		RunE: func(cmd *cobra.Command, args []string) error {
			return command.Run(func(cmd *cobra.Command) error {
				if err := o.validate(); err != nil {
					return err
				}
				return o.run(cmd.Context(), args[0], cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&o.dir, "incident-dir", command.IncidentDir, "directory that an ID is looked for in")
	command.CompleteIncidents(cmd)
	command.OutputVar(cmd, &o.output, "text (a screen on a terminal that can show one, else lines), lines or json", "text", "lines", "json")
	cmd.Flags().Float64Var(&o.speed, "speed", 1, "how many times faster than it was, on a terminal")
	return cmd
}

func (o *replayOptions) validate() error {
	if o.speed < .1 || o.speed > 1000 {
		return command.Usagef("--speed %v: give a number from 0.1 to 1000", o.speed)
	}
	if o.output != "text" && o.output != "lines" && o.output != "json" {
		return command.Usagef("--output %q: give text, lines or json", o.output)
	}
	return nil
}

func (o *replayOptions) run(ctx context.Context, name string, stdin io.Reader, w, stderr io.Writer) error {
	in, err := command.OpenRecording(name, o.dir, stdin)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	defer func() { _ = in.Close() }()
	r, err := recording.NewReader(in)
	if err != nil {
		return fmt.Errorf("replay: %s: %w", name, err)
	}
	j := recording.Rejudge(r)
	moments, err := j.All()
	if err != nil {
		return fmt.Errorf("replay: %s: %w", name, err)
	}
	if err := o.show(ctx, w, moments); err != nil {
		return err
	}
	if err := j.Conclude(stderr); err != nil {
		return fmt.Errorf("replay: %s: %w", name, err)
	}
	return nil
}

// show is a screen with a speed, or everything at once.
func (o *replayOptions) show(ctx context.Context, w io.Writer, moments []*model.Snapshot) error {
	screen, ok := command.TerminalOf(w)
	if ok && screenWanted(o.output) {
		return newReplayScreen(moments, o.speed, screen).run(ctx, w)
	}
	snapshots := make(chan *model.Snapshot)
	done, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(snapshots)
		for _, s := range moments {
			select {
			case snapshots <- s:
			case <-done.Done():
				return
			}
		}
	}()
	return (&watchOptions{interval: replayInterval, output: o.output}).show(w, snapshots)
}
