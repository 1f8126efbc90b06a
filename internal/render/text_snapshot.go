package render

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// worstFirst are the listeners, those that lose most first.
func worstFirst(in []model.Listener) []*model.Listener {
	all := model.ByAddress(in)
	slices.SortStableFunc(all, func(a, b *model.Listener) int {
		return cmp.Or(cmp.Compare(b.Verdict.Status, a.Verdict.Status), cmp.Compare(DroppedPackets(b), DroppedPackets(a)))
	})
	return all
}

// detailedFirst parts the listeners into those that get a screen of their own and
// those that get a line in the table.
func detailedFirst(in []model.Listener) (detailed, brief []*model.Listener) {
	all := worstFirst(in)
	if len(all) <= MaxDetailed {
		return all, nil
	}
	n := 0
	for n < len(all) && n < maxDetails && all[n].Verdict.Status > model.StatusOK {
		n++
	}
	return all[:n], all[n:]
}

// DroppedPackets is how many of a listener were dropped while it was watched.
func DroppedPackets(l *model.Listener) uint64 {
	if l.Losses == nil {
		return 0
	}
	return l.Losses.DroppedPackets
}

// SnapshotText is what a screen says of a snapshot besides its listeners.
type SnapshotText struct {
	*term.Screen
	Snap *model.Snapshot
}

// Header says where and when: screens get pasted into tickets.
func (s SnapshotText) Header() {
	about := strings.Join(s.about(true), " · ")
	if short := strings.Join(s.about(false), " · "); utf8.RuneCountInString(about) > s.Width && utf8.RuneCountInString(short) <= s.Width {
		about = short
	}
	s.Paragraph(0, term.Dim.Of(about))
	if n := len(s.Snap.Listeners); n > 1 {
		s.countStatuses(s.Snap.Listeners)
	}
}

// about is what a screen begins with; the kernel where there is room for it in one line.
func (s SnapshotText) about(kernel bool) []string {
	parts := []string{"tcpdiag"}
	if s.Snap.Host != "" {
		parts = append(parts, term.Printable(s.Snap.Host))
	}
	if kernel && s.Snap.Kernel != "" {
		parts = append(parts, "Linux "+term.Printable(s.Snap.Kernel))
	}
	if !s.Snap.Time.IsZero() {
		parts = append(parts, s.Snap.Time.Format("2006-01-02 15:04:05 MST"))
	}
	parts = append(parts, window(s.Snap))
	if s.Snap.ScanAge != nil {
		parts = append(parts, "scanned "+term.HowLong(*s.Snap.ScanAge)+" ago")
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

// countStatuses is "12 listeners: 1 losing, 11 ok".
func (s SnapshotText) countStatuses(ls []model.Listener) {
	var counts [model.NumStatuses]int
	for i := range ls {
		counts[ls[i].Verdict.Status]++
	}
	spans := []term.Span{term.Text(phrase.Number(len(ls)) + " listeners:")}
	for st := model.NumStatuses - 1; st >= 0; st-- {
		if counts[st] > 0 {
			spans = append(spans, term.StatusStyle(st).Of(phrase.Number(counts[st])+term.Nbsp+st.String()), term.Dim.Of(term.Dot))
		}
	}
	s.Paragraph(0, spans[:len(spans)-1]...)
}

// Notes writes what keeps the snapshot from being whole.
func (s SnapshotText) Notes() {
	for _, n := range s.Snap.Notes {
		n = term.Printable(n)
		if said, command, ok := strings.Cut(n, ": sudo "); ok { // it is copied
			n = said + ": " + strings.ReplaceAll("sudo "+command, " ", term.Nbsp)
		}
		s.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of(n))
	}
	if len(s.Snap.Listeners) == 0 {
		s.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of("Nothing listens here."))
	}
}

// Omitted writes how many listeners are not watched.
func (s SnapshotText) Omitted() {
	if s.Snap.Omitted > 0 {
		s.Blank()
		s.Paragraph(0, term.Dim.Of(phrase.Plural(s.Snap.Omitted, "more listener is", "more listeners are")+" not watched (--max-listeners)."))
	}
}
