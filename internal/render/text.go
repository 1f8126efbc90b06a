package render

import (
	"cmp"
	"io"
	"slices"
	"strings"

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

const (
	fewListeners = 3  // up to this many are all shown in detail
	maxDetails   = 20 // beyond these even those in trouble get one line each
)

// Text writes the snapshot as a screen for people: the answer, or with Verbose
// everything that is known.
func Text(w io.Writer, s *model.Snapshot, o TextOptions) error {
	sc := term.New(o.Width, o.Color)
	about := snapshotText{sc, s}
	if o.Verbose {
		about.verbose()
	} else {
		about.answers(o)
	}
	return sc.Write(w, "text")
}

// verbose writes what the tool could not know first, then each listener, the worst
// first, then what it could not read and how to read it.
func (s snapshotText) verbose() {
	s.header()
	s.notes()
	detailed, brief := detailedFirst(s.snap.Listeners)
	for _, l := range detailed {
		s.Rule()
		listenerText{s.Screen, l}.all(s.snap)
	}
	tableText{s.Screen}.brief(brief, len(detailed) > 0)
	s.omitted()
	s.unavailable(s.snap.Unavailable)
}

// worstFirst are the listeners, those that lose most first.
func worstFirst(in []model.Listener) []*model.Listener {
	all := model.ByAddress(in)
	slices.SortStableFunc(all, func(a, b *model.Listener) int {
		return cmp.Or(cmp.Compare(b.Verdict.Status, a.Verdict.Status), cmp.Compare(lost(b), lost(a)))
	})
	return all
}

// detailedFirst parts the listeners into those that get a screen of their own and
// those that get a line in the table.
func detailedFirst(in []model.Listener) (detailed, brief []*model.Listener) {
	all := worstFirst(in)
	if len(all) <= fewListeners {
		return all, nil
	}
	n := 0
	for n < len(all) && n < maxDetails && all[n].Verdict.Status > model.StatusOK {
		n++
	}
	return all[:n], all[n:]
}

func lost(l *model.Listener) uint64 {
	if l.Losses == nil {
		return 0
	}
	return l.Losses.DroppedPackets
}

// snapshotText is what a screen says of a snapshot besides its listeners.
type snapshotText struct {
	*term.Screen
	snap *model.Snapshot
}

// header says where and when: screens get pasted into tickets.
func (s snapshotText) header() {
	s.Paragraph(0, term.Dim.Of(strings.Join(s.about(), " · ")))
	if n := len(s.snap.Listeners); n > 1 {
		s.tally(s.snap.Listeners)
	}
}

func (s snapshotText) about() []string {
	parts := []string{"tcpdiag"}
	if s.snap.Host != "" {
		parts = append(parts, term.Printable(s.snap.Host))
	}
	if s.snap.Kernel != "" {
		parts = append(parts, "Linux "+term.Printable(s.snap.Kernel))
	}
	if !s.snap.Time.IsZero() {
		parts = append(parts, s.snap.Time.Format("2006-01-02 15:04:05 MST"))
	}
	parts = append(parts, window(s.snap))
	if s.snap.ScanAge != nil {
		parts = append(parts, "scanned "+term.HowLong(*s.snap.ScanAge)+" ago")
	}
	return parts
}

// window is what the losses span, in words.
func window(snap *model.Snapshot) string {
	if snap.Interval <= 0 {
		return "one snapshot"
	}
	return "watched for " + term.HowLong(snap.Interval)
}

// tally is "12 listeners: 1 losing, 11 ok".
func (s snapshotText) tally(ls []model.Listener) {
	var counts [model.NumStatuses]int
	for i := range ls {
		counts[ls[i].Verdict.Status]++
	}
	spans := []term.Span{term.Text(phrase.Number(len(ls)) + " listeners:")}
	for st := model.NumStatuses - 1; st >= 0; st-- {
		if counts[st] > 0 {
			spans = append(spans, term.StatusStyle(st).Of(phrase.Number(counts[st])+" "+st.String()), term.Dim.Of(term.Dot))
		}
	}
	s.Paragraph(0, spans[:len(spans)-1]...)
}

func (s snapshotText) notes() {
	for _, n := range s.snap.Notes {
		s.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of(term.Printable(n)))
	}
	if len(s.snap.Listeners) == 0 {
		s.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of("Nothing listens here."))
	}
}

func (s snapshotText) omitted() {
	if s.snap.Omitted > 0 {
		s.Blank()
		s.Paragraph(0, term.Dim.Of(term.Plural(s.snap.Omitted, "more listener is", "more listeners are")+" not watched (--max-listeners)."))
	}
}
