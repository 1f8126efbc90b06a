// Package render turns a snapshot into what people and programs read: the answer on a
// screen, with -v everything that is known, the JSON document, a recorded incident and the
// runbook of a cause. It does no I/O beyond the writer it is given, reads no clock and
// knows no kernel.
//
// Text (text.go) is where to begin. answer*.go is the answer and its stages, text_listener.go
// and those that it calls are one listener with -v, text_table.go is many. Below is term, the
// terminal; above are watch (one snapshot after the other), runreport, planreport and fleetreport.
//
// What is not known is left out of the JSON and is "n/a (reason)" on the
// screen; it is never shown as zero.
package render

import (
	"io"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// TextOptions say what the screen can show.
type TextOptions struct {
	Width  int  // columns; kept between 40 and 120, 0 means 80
	Height int  // lines that an answer is to fit; 0 means 24
	Color  bool // ANSI colours; only on a terminal
	// Verbose adds to each answer what it rests on: evidence, sources of limits, other
	// findings, counts by packet, and what could not be read.
	Verbose bool
	// Root: it was read as root, so that sudo would not read more.
	Root bool
	// Remote is the command that asked another machine, "" for this one: it reads as much as it
	// may there.
	Remote string
}

// How many listeners are shown how.
const (
	MaxDetailed = 3  // up to this many are all shown in detail
	maxDetails  = 20 // beyond these even those in trouble get one line each
)

// Text writes the snapshot as a screen for people: the answer, or with Verbose
// everything that is known.
func Text(w io.Writer, s *model.Snapshot, o TextOptions) error {
	sc := term.New(o.Width, o.Color)
	about := SnapshotText{sc, s}
	if o.Verbose {
		about.verbose()
	} else {
		about.answers(o)
	}
	return sc.Write(w, "text")
}

// verbose writes what the tool could not know first, then each listener, the worst
// first, then what it could not read and how to read it.
func (s SnapshotText) verbose() {
	s.Header()
	s.Notes()
	detailed, brief := detailedFirst(s.Snap.Listeners)
	for _, l := range detailed {
		s.Rule()
		ListenerText{s.Screen, l}.all(s.Snap)
	}
	TableText{s.Screen}.brief(brief, len(detailed) > 0)
	s.Omitted()
	s.Unavailable(s.Snap.Unavailable)
}
