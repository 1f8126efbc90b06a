package command

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render"
)

// ValidOutput is an error where there is no such form of output.
func ValidOutput(output string) error {
	if output != "text" && output != "json" {
		return Usagef("--output %q: give text or json", output)
	}
	return nil
}

// WorstStatus is that of the worst listener; ok where there is none.
func WorstStatus(snap *model.Snapshot) model.Status {
	worst := model.StatusOK
	for i := range snap.Listeners {
		worst = max(worst, snap.Listeners[i].Verdict.Status)
	}
	return worst
}

// TextOptionsOf asks the terminal, if it is one.
func TextOptionsOf(w io.Writer) render.TextOptions {
	o, _ := TerminalOf(w)
	return o
}

// TerminalOf reports whether w is one, and what it can show: colour only without
// NO_COLOR (any value that is not empty) and TERM=dumb.
func TerminalOf(w io.Writer) (o render.TextOptions, ok bool) {
	o.Root = os.Geteuid() == 0
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return o, false
	}
	if width, height, err := term.GetSize(int(f.Fd())); err == nil {
		o.Width, o.Height = width, height
	}
	o.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return o, true
}
