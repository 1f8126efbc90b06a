package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/tcpdiag/tcpdiag/cmd/tcpdiag-archive/internal/records"
	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/watch"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

// readOptions are the flags of what reads a bucket.
type readOptions struct{ bucket, cluster string }

func (o *readOptions) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.bucket, "bucket", "", "URL of the object store, required: s3://, gs://, azblob:// or file://")
	cmd.Flags().StringVar(&o.cluster, "cluster", "", "only of this cluster")
}

// listOptions are those of list.
type listOptions struct {
	readOptions
	namespace, output string
	since             time.Duration
	most              int
}

func newListCommand() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the recordings in a bucket, the latest first",
		Example: `  tcpdiag-archive list --bucket s3://incidents?region=eu-west-1 --since 48h --namespace shop`,
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd, cmd.OutOrStdout()) },
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.namespace, "namespace", "", "only of this namespace")
	cmd.Flags().DurationVar(&o.since, "since", 24*time.Hour, "only those that began within this time")
	cmd.Flags().IntVar(&o.most, "limit", 50, "how many at most")
	cmd.Flags().StringVarP(&o.output, "output", "o", "text", "text or json")
	return cmd
}

func (o *listOptions) run(cmd *cobra.Command, w io.Writer) error {
	switch {
	case o.most < 1 || o.most > 1000:
		return usagef("--limit %d: give a number from 1 to 1000", o.most)
	case o.since <= 0 || o.since > maxDays*24*time.Hour:
		return usagef("--since %v: give a time to %dh", o.since, maxDays*24)
	case o.output != "text" && o.output != "json":
		return usagef("--output: give text or json")
	}
	ctx := cmd.Context()
	a, err := openArchive(ctx, o.bucket)
	if err != nil {
		return err
	}
	defer a.close()
	now := time.Now()
	list, more, err := a.list(ctx, query{cluster: o.cluster, namespace: o.namespace, from: now.Add(-o.since), to: now.Add(ahead), most: o.most})
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range list {
		g.Go(func() error { // without the right to read there is the key alone
			if about, err := a.bucket.Attributes(ctx, list[i].Key); err == nil {
				list[i].About = known(about.Metadata)
			}
			return nil
		})
	}
	_ = g.Wait()
	if o.output == "json" {
		return json.NewEncoder(w).Encode(map[string]any{"schema": "tcpdiag.archive/v1", "recordings": list, "more": more})
	}
	return listed(w, list, more)
}

// ahead is how much the clock of a machine may be ahead of this one's.
const ahead = 24 * time.Hour

// known is what an archiver writes of an object, bounded: anybody may have.
func known(about map[string]string) map[string]string {
	out := make(map[string]string)
	for _, name := range []string{"sha256", "status", "cause", "host", "began", "lasted", "turned_away"} {
		if value := about[name]; value != "" {
			out[name] = records.Printable(value)
		}
	}
	return out
}

func listed(w io.Writer, list []found, more bool) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "no recording began in this time")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "BEGAN (UTC)\tCLUSTER\tNAMESPACE\tPOD\tSTATUS\tCAUSE\tLASTED\tTURNED AWAY\tID")
	for i := range list {
		f := &list[i]
		of := func(name string) string {
			return cmp.Or(f.About[name], "-")
		}
		row := []string{f.Began.Format("2006-01-02 15:04:05"), f.Cluster, f.Namespace, f.Pod, of("status"), of("cause"), of("lasted"), of("turned_away"), f.ID}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(w, "and more: --limit, --namespace, --since")
	}
	return nil
}

func newReportCommand() *cobra.Command {
	var o readOptions
	var output, save string
	cmd := &cobra.Command{
		Use:   "report ID|KEY",
		Short: "Report what happened in a recorded incident",
		Long: `report reads a recording from the bucket and reports what happened, as tcpdiag
report does; its machine need not exist any more. With --output it writes a
self-contained HTML page, with --save the recording itself, for tcpdiag replay.`,
		Example: `  tcpdiag-archive report 000007-20260102T031205Z-8080 --bucket s3://incidents?region=eu-west-1 -o incident.html`,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			a, key, err := o.find(cmd, names[0])
			if err != nil {
				return err
			}
			defer a.close()
			if save != "" {
				data, err := a.read(cmd.Context(), key)
				if err != nil {
					return err
				}
				if err := os.WriteFile(save, data, 0o644); err != nil { //nolint:gosec // a report is to be read by others
					return fmt.Errorf("--save: %w", err)
				}
			}
			story, err := a.story(cmd.Context(), key)
			if err != nil {
				return err
			}
			if output == "" {
				return render.Incident(cmd.OutOrStdout(), story, textOptions(cmd.OutOrStdout()))
			}
			var page bytes.Buffer
			if err := web.IncidentReport(&page, story, version.Version); err != nil {
				return err
			}
			if err := os.WriteFile(output, page.Bytes(), 0o644); err != nil { //nolint:gosec // as above
				return fmt.Errorf("--output: %w", err)
			}
			return nil
		},
	}
	o.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "write a self-contained HTML page to this file")
	cmd.Flags().StringVar(&save, "save", "", "write the recording to this file")
	return cmd
}

func newReplayCommand() *cobra.Command {
	var o readOptions
	var output string
	cmd := &cobra.Command{
		Use:   "replay ID|KEY",
		Short: "Show a recorded incident again, a line a moment, and judge it again",
		Long: `replay shows every moment of a recording as tcpdiag watch would have in a log, and
judges it again from the evidence that was recorded. It fails where a verdict is not the
recorded one. For the screen with time controls: report --save FILE, tcpdiag replay FILE.`,
		Example: `  tcpdiag-archive replay 000007-20260102T031205Z-8080 --bucket s3://incidents?region=eu-west-1`,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, names []string) error {
			if output != "lines" && output != "json" {
				return usagef("--output: give lines or json")
			}
			a, key, err := o.find(cmd, names[0])
			if err != nil {
				return err
			}
			defer a.close()
			data, err := a.read(cmd.Context(), key)
			if err != nil {
				return err
			}
			if err := replay(data, output, cmd.OutOrStdout(), cmd.ErrOrStderr()); err != nil {
				return fmt.Errorf("%s: %s", key, oneLine(err.Error()))
			}
			return nil
		},
	}
	o.register(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "lines", "lines or json")
	return cmd
}

func (o *readOptions) find(cmd *cobra.Command, name string) (*archive, string, error) {
	a, err := openArchive(cmd.Context(), o.bucket)
	if err != nil {
		return nil, "", err
	}
	key, err := a.find(cmd.Context(), name, o.cluster)
	if err != nil {
		a.close()
		return nil, "", err
	}
	return a, key, nil
}

func replay(data []byte, output string, w, stderr io.Writer) error {
	r, err := recording.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	again := recording.Rejudge(r)
	moments, err := again.All()
	if err != nil {
		return err
	}
	add := watch.NewLines(w, time.Second).Add
	if output == "json" {
		add = watch.NewJSONLines(w, time.Second).Add
	}
	for _, m := range moments {
		if err := add(m); err != nil {
			return err
		}
	}
	return again.Conclude(stderr)
}

// textOptions are those of a terminal, or of a file.
func textOptions(w io.Writer) render.TextOptions {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) { //nolint:gosec // a descriptor
		return render.TextOptions{}
	}
	o := render.TextOptions{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil { //nolint:gosec // as above
		o.Width = width
	}
	return o
}
