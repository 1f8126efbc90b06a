package command

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/ask"
	"github.com/tcpdiag/tcpdiag/cmd/kubectl-tcpdiag/internal/kube"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

// snapshot is what kubectl tcpdiag does without a command.
func (o *options) snapshot(cmd *cobra.Command, args []string) error {
	results, err := o.results(cmd, args)
	if err != nil {
		return err
	}
	sayWays(cmd.ErrOrStderr(), results)
	failed := failures(cmd.ErrOrStderr(), results)
	if failed != nil && answered(results) == 0 {
		return failed
	}
	if err := o.write(cmd.OutOrStdout(), results); err != nil {
		return err
	}
	if worst := worstOf(results); o.exitStatus && worst != model.StatusOK {
		return &statusError{worst}
	}
	return failed
}

// results are the first answers of all that are selected.
func (o *options) results(cmd *cobra.Command, args []string) ([]result, error) {
	client, asker, namespace, err := o.asker(cmd)
	if err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	pods, err := o.pods(ctx, client, namespace, args)
	if err != nil {
		return nil, o.explain(err, namespace)
	}
	var results []result
	if len(args) == 0 && o.labels == "" {
		results, err = watched(ctx, asker, pods)
	} else {
		results = open(ctx, asker, pods)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case len(results) == 0:
		return nil, fmt.Errorf("no sidecar and no node agent watches any of the %d pods %s: name one, and it is asked by an ephemeral container", len(pods), in(namespace))
	}
	return results, nil
}

func (o *options) write(w io.Writer, results []result) error {
	if o.output == "json" {
		return writeJSON(w, results)
	}
	screen := screenOf(w)
	screen.Verbose = o.verbose
	if listeners(results) == 1 || o.verbose {
		return writeEach(w, results, screen)
	}
	return writeTable(w, results, screen)
}

// screenOf asks the terminal, if it is one.
func screenOf(w io.Writer) (o render.TextOptions) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o
	}
	if width, height, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width, o.Height = width, height
	}
	o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return o
}

// explain adds the Role that the right to find pods is in.
func (o *options) explain(err error, namespace string) error {
	way := o.ask.Via
	if way == "" {
		way = kube.Sidecar
	}
	return ask.WithRole(err, way, namespace, o.ask.AgentsNamespace)
}
