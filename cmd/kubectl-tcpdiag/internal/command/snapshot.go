package command

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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
