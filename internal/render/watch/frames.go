// Package watch draws one snapshot after another: Frames is a screen that a person steers,
// with the history of each listener (history.go, track.go) as a chart below its answer; Lines and
// JSONLines are a line for each listener or snapshot and interval, for files and pipes.
// Nothing here is safe for concurrent use, or reads a clock: time is the snapshots'.
package watch

import (
	"slices"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Frames are the screens of watch: what every snapshot shows, what was before, and
// where the reader has turned to. Not safe for concurrent use.
type Frames struct {
	options render.TextOptions
	height  int

	now    *model.Snapshot
	past   *history
	paused *still // what is shown meanwhile; nil: the present

	selected *identity // nil: whichever is worst
	scroll   int       // lines of the listener that are above the screen
	caption  string    // in place of what the keys do
}

// still is a moment that the reader holds on to.
type still struct {
	snap *model.Snapshot
	past *history
}

// NewFrames begins with an empty history of intervals of this length.
func NewFrames(interval time.Duration) *Frames { return &Frames{past: newHistory(interval)} }

// Resize gives the screen's size, in columns and lines.
func (f *Frames) Resize(o render.TextOptions, height int) { f.options, f.height = o, height }

// Add takes a snapshot; a paused screen shows it later.
func (f *Frames) Add(snap *model.Snapshot) {
	f.now = snap
	f.past.add(snap)
}

// Pause holds the screen, or resumes it.
func (f *Frames) Pause() {
	if f.paused != nil || f.now == nil {
		f.paused = nil
		return
	}
	f.paused = &still{f.now, f.past.clone()}
}

// Caption stands in the last line, in place of what the keys do.
func (f *Frames) Caption(text string) { f.caption = text }

// Select turns to the listener that many places on, in the order of the list.
func (f *Frames) Select(step int) {
	all := model.ByAddress(f.shown().snap.Listeners)
	if len(all) == 0 {
		return
	}
	i := (slices.Index(all, f.turned(all)) + step + len(all)) % len(all)
	f.selected, f.scroll = new(identityOf(all[i])), 0
}

// Follow turns to the worst listener, and again whenever another one is.
func (f *Frames) Follow() { f.selected, f.scroll = nil, 0 }

// Scroll moves the listener's text; View keeps it within its bounds.
func (f *Frames) Scroll(lines int) { f.scroll += lines }

func (f *Frames) shown() *still {
	switch {
	case f.paused != nil:
		return f.paused
	case f.now == nil:
		return &still{&model.Snapshot{}, f.past}
	}
	return &still{f.now, f.past}
}

// turned is the listener on the screen.
func (f *Frames) turned(all []*model.Listener) *model.Listener {
	for _, l := range all {
		if f.selected != nil && identityOf(l) == *f.selected {
			return l
		}
	}
	worst := all[0]
	for _, l := range all[1:] {
		if worseThan(l, worst) {
			worst = l
		}
	}
	return worst
}

// View is the screen: exactly as many lines as it has, none wider than it.
func (f *Frames) View() string {
	if f.now == nil || f.height <= 0 {
		return ""
	}
	on := f.shown()
	all := model.ByAddress(on.snap.Listeners)
	head, body := term.New(f.options.Width, f.options.Color), term.New(f.options.Width, f.options.Color)
	above, below := render.SnapshotText{Screen: head, Snap: on.snap}, render.SnapshotText{Screen: body, Snap: on.snap}
	above.Header()
	above.Notes()
	if len(all) > 0 {
		l := f.turned(all)
		if len(all) > 1 {
			list(head, all, l, max(f.height/4, 1))
		}
		watched(body, on, l)
	}
	below.Omitted()
	below.Unavailable(on.snap.Unavailable)
	return f.fit(head.Lines(), body.Lines())
}

// fit cuts the listener's lines to what fits between the head and the keys.
func (f *Frames) fit(head, body []string) string {
	head = head[:min(len(head), max(f.height-1, 0))]
	room := f.height - len(head) - 1
	f.scroll = max(0, min(f.scroll, len(body)-room))
	below := len(body) - f.scroll - room
	body = body[f.scroll:min(len(body), f.scroll+room)]
	blank := make([]string, room-len(body))
	return strings.Join(slices.Concat(head, body, blank, f.keys(below).Lines()), "\n")
}

// keys is the last line: what can be done, and whether there is more to read.
func (f *Frames) keys(below int) *term.Screen {
	s := term.New(f.options.Width, f.options.Color)
	var spans []term.Span
	pause := "space pause"
	if f.paused != nil {
		spans = append(spans, term.BadgeWarn.Of(" PAUSED "), term.Text(" "))
		pause = "space go on"
	}
	keys := []string{"q quit", pause}
	if f.caption != "" {
		keys = []string{f.caption, "space holds", "←→ moment", "+- speed", "q quit"}
	}
	switch {
	case below > 0:
		keys = append(keys, "↑↓ scroll ("+phrase.Number(below)+" more)")
	case f.scroll > 0:
		keys = append(keys, "↑↓ scroll")
	}
	if len(f.shown().snap.Listeners) > 1 {
		keys = append(keys, "tab next listener", "esc the worst")
	}
	s.Line(append(spans, term.Dim.Of(strings.Join(keys, " · ")))...)
	return s
}
