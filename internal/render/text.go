package render

import (
	"fmt"
	"io"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// TextOptions say what the screen can show.
type TextOptions struct {
	Width int  // columns; kept between 40 and 120, 0 means 80
	Color bool // ANSI colours; only on a terminal
}

// Text writes the snapshot as a screen for people.
func Text(w io.Writer, s *backlog.Snapshot, _ TextOptions) error {
	for _, l := range byAddress(s.Listeners) {
		if _, err := fmt.Fprintln(w, l.Verdict.Status, l.ID, l.Port, l.Verdict.Cause, l.Verdict.Summary); err != nil {
			return fmt.Errorf("render: text: %w", err)
		}
	}
	return nil
}
