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
	"regexp"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
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

// brevity is what a screen leaves out to fit its height, each with those before it.
type brevity int

const (
	whole             brevity = iota
	withoutAbout              // the line with host, kernel and time
	withoutLost               // how many packets were lost
	withoutAir                // blank lines
	withoutCalmStages         // only stages that are near full, or marked
	withoutFiles              // where a setting stands is in -v
	withoutEffects
	shortest = withoutEffects
)

const (
	defaultHeight = 24
	promptLines   = 1 // the shell's next prompt, below the screen
)

// answers writes what a person reads first: one listener's answer with its stages, or a
// table of several, the worst first, and the answer of the worst. It is as short as the
// screen's height needs.
func (s SnapshotText) answers(o TextOptions) {
	height := o.Height
	if height <= 0 {
		height = defaultHeight
	}
	for level := whole; level <= shortest; level++ {
		try := SnapshotText{term.New(o.Width, o.Color), s.Snap}
		try.answerScreen(level, o, height)
		if level == shortest || try.Height() <= height-promptLines {
			s.Raw(try.String())
			return
		}
	}
}

func (s SnapshotText) answerScreen(level brevity, o TextOptions, height int) {
	s.Notes()
	list := worstFirst(s.Snap.Listeners)
	if len(list) == 0 {
		s.footer(nil, level, o)
		return
	}
	if len(list) == 1 {
		about := AnswerText{s.Screen, list[0], s.Snap}
		about.all(level)
		s.air(level)
		if list[0].Listening() {
			about.stages(level)
			s.air(level)
		}
		if level < withoutLost {
			about.lost()
		}
		s.footer(list[0], level, o)
		return
	}
	s.countStatuses(s.Snap.Listeners)
	TableText{s.Screen}.worst(list, max(height/3, 4))
	worst := list[0]
	if worst.Verdict.Status > model.StatusOK {
		s.air(level)
		AnswerText{s.Screen, worst, s.Snap}.all(level)
	}
	s.air(level)
	s.Omitted()
	s.footer(worst, level, o)
}

// air is a blank line where there is room for it.
func (s SnapshotText) air(level brevity) {
	if level < withoutAir {
		s.Blank()
	}
}

// footer is where more is to be read, and what could not be.
func (s SnapshotText) footer(l *model.Listener, level brevity, o TextOptions) {
	if o.Remote != "" {
		s.remoteFooter(l, level, o)
		return
	}
	more := "More: tcpdiag -v"
	if l != nil {
		port := strconv.Itoa(int(l.Port))
		switch v := &l.Verdict; {
		case len(s.Snap.Listeners) > 1 && l.Listening() && v.Status > model.StatusOK:
			more = "More: tcpdiag " + port + "  (its stages)"
		case v.Status == model.StatusOK:
			more = "Where the limits are set: tcpdiag -v"
		default:
			more = "Evidence, sources: tcpdiag " + port + " -v"
		}
		if c := l.Verdict.Cause; c != model.CauseNone {
			explain := "tcpdiag explain " + term.Printable(string(c))
			if both := more + " · " + explain; lipgloss.Width(both) <= s.Width-answerIndent {
				more = both
			} else { // a command is in one piece
				s.Paragraph(answerIndent, term.Dim.Of(more))
				more = explain
			}
		}
	}
	s.Paragraph(answerIndent, term.Dim.Of(more))
	s.denied(l, o)
	if level < withoutAbout && (l == nil || l.Verdict.Status > model.StatusOK) {
		s.Paragraph(answerIndent, term.Dim.Of(strings.Join(s.whereAndWhen(), " · ")))
	}
}

// remoteFooter is the same of what another machine said.
func (s SnapshotText) remoteFooter(l *model.Listener, level brevity, o TextOptions) {
	more := "Evidence, sources: " + term.Printable(o.Remote) + " -v"
	if n := len(s.Snap.Unavailable); n > 0 {
		more += " (" + phrase.Count(n, "reading") + " not possible)"
	}
	s.Paragraph(answerIndent, term.Dim.Of(more))
	if level < withoutAbout && (l == nil || l.Verdict.Status > model.StatusOK) {
		s.Paragraph(answerIndent, term.Dim.Of(strings.Join(s.whereAndWhen(), " · ")))
	}
}

// whereAndWhen is for the ticket that the screen is pasted into.
func (s SnapshotText) whereAndWhen() (parts []string) {
	if s.Snap.Host != "" {
		parts = append(parts, term.Printable(s.Snap.Host))
	}
	if !s.Snap.Time.IsZero() {
		parts = append(parts, s.Snap.Time.Format("2006-01-02 15:04:05 MST"))
	}
	return append(parts, window(s.Snap))
}

// denied is what could not be read, in one line, with the one command that can.
func (s SnapshotText) denied(l *model.Listener, o TextOptions) {
	in := s.Snap.Unavailable
	if len(in) == 0 {
		return
	}
	n, missing := 0, []string(nil)
	for _, u := range in {
		if !rightsHelp(u) {
			continue
		}
		n++
		for _, c := range regexp.MustCompile(`CAP_[A-Z_]+`).FindAllString(u.How, -1) {
			if !slices.Contains(missing, c) {
				missing = append(missing, c)
			}
		}
	}
	switch {
	case n == 0:
		s.Paragraph(answerIndent, term.Warn.Of(phrase.Count(len(in), "reading")+" not possible: -v"))
	case !o.Root:
		command := "sudo tcpdiag snapshot"
		if l != nil && l.Port != 0 {
			command += " --port " + strconv.Itoa(int(l.Port))
		}
		whole := strings.ReplaceAll(command, " ", term.Nbsp) // it is copied
		s.Paragraph(answerIndent, term.CommandStyle.Of(whole), term.Warn.Of("("+phrase.Count(n, "reading")+" denied: -v)"))
	case len(missing) > 0:
		s.Paragraph(answerIndent, term.Warn.Of("This root lacks "+strings.Join(missing, ", ")+" ("+phrase.Count(n, "reading")+" denied: -v)"))
	default:
		s.Paragraph(answerIndent, term.Warn.Of(phrase.Count(n, "reading")+" denied: -v"))
	}
}

// rightsHelp reports whether another user or a capability could read it.
func rightsHelp(u model.Unavailable) bool {
	return strings.Contains(u.How, "CAP_") || strings.Contains(u.How, "run as") || strings.Contains(u.Why, "permission denied") || strings.Contains(u.Why, "not permitted")
}
