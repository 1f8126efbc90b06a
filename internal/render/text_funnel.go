package render

import (
	"math"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// stage is one line of the funnel.
type stage struct {
	name      string
	used, max *int
	why       string // why used or max is not known
	unlimited bool
	source    string // where max comes from
	short     string // the same for narrow screens
	detail    string // what short leaves out
	fullIn    *time.Duration
	// neverFull is for the SYN backlog: whether it is full is said by
	// counters, never by its length.
	neverFull bool
}

func (s listenerText) funnel() {
	stages := append([]stage{synBacklog(s.l), acceptQueue(s.l), connections(s.l), threads(s.l), openFiles(s.l)}, otherLimits(s.l)...)
	used, most := 5, 5
	for i := range stages {
		stages[i].fullIn = fullIn(s.l, stages[i].name)
		used = max(used, lipgloss.Width(known(stages[i].used)))
		most = max(most, lipgloss.Width(stages[i].maximum()))
	}
	var cutShort []span
	for i := range stages {
		if s.stage(&stages[i], used, most) {
			cutShort = append(cutShort, span{stages[i].name + ": " + printable(stages[i].detail), dim}, span{dot, dim})
		}
	}
	if len(cutShort) > 0 {
		s.row(label("limits set by"), cutShort[:len(cutShort)-1]...)
	}
}

// stage also says whether there was no room for a detail of the source.
func (s *screen) stage(st *stage, used, most int) (shortened bool) {
	head := []span{
		{text: blanks(indent)},
		{padRight(cut(st.name, labelWidth), labelWidth+2), plain},
		{padLeft(known(st.used), used), bold},
		{" / ", dim},
		{padRight(st.maximum(), most), plain},
	}
	if st.used == nil || st.max == nil || *st.max <= 0 {
		note := st.source
		if st.why != "" {
			note = "(" + st.why + ")"
		}
		s.line(append(head, span{"  " + printable(note), dim})...)
		return false
	}
	ratio := float64(*st.used) / float64(*st.max)
	head = append(head, span{text: "  "})
	head = append(head, bar(ratio, s.barWidth(), st.level(ratio))...)
	head = append(head, span{padLeft(st.percent(ratio), 6), st.level(ratio)})
	note, shortened := st.note(s.width - columns(head) - 2)
	s.line(append(head, note)...)
	return shortened
}

// barWidth leaves room for the numbers and the settings' sources.
func (s *screen) barWidth() int { return max(0, min((s.width-52)/2, 26)) }

func (st *stage) maximum() string {
	if st.unlimited {
		return "no limit"
	}
	return known(st.max)
}

func (st *stage) level(ratio float64) style {
	switch {
	case st.neverFull:
		return plain
	case ratio >= 1:
		return bad
	case ratio >= .8:
		return warn
	default:
		return good
	}
}

// percent is rounded down: 100 % is said of nothing but a full stage.
func (st *stage) percent(ratio float64) string {
	if ratio >= 1 && !st.neverFull {
		return "FULL"
	}
	if ratio > 0 && ratio < .01 {
		return "<1 %"
	}
	return phrase.Number(int(ratio*100)) + " %"
}

// note is the forecast, or else where the limit comes from: whole where it
// fits, in a word where it does not.
func (st *stage) note(room int) (note span, shortened bool) {
	if st.fullIn != nil {
		return span{"  full in " + howLong(*st.fullIn), warn}, st.detail != ""
	}
	if text := printable(st.source); lipgloss.Width(text) <= room {
		return span{"  " + text, dim}, false
	}
	return span{"  " + printable(st.short), dim}, st.detail != ""
}

// bar fills width columns. What is not empty shows at least a sliver, and only
// what is full is filled. The blocks are an eighth lower than a line, so that
// the stages stay apart.
func bar(ratio float64, width int, st style) []span {
	full := int(math.Round(min(max(ratio, 0), 1) * float64(width)))
	if ratio < 1 {
		full = max(min(full, width-1), 0)
	}
	filled := strings.Repeat("▇", full)
	if full == 0 && ratio > 0 && width > 0 {
		filled = "▎"
	}
	return []span{{filled, st}, {strings.Repeat("·", width-lipgloss.Width(filled)), dim}}
}

// known is a number, or n/a.
func known(n *int) string {
	if n == nil {
		return "n/a"
	}
	return phrase.Number(*n)
}

func fullIn(l *model.Listener, stageName string) *time.Duration {
	for i := range l.Limits {
		if stageOf(l.Limits[i].Name) == stageName {
			return l.Limits[i].FullIn
		}
	}
	return nil
}

// stageOf is a limit's name on the screen.
func stageOf(limit string) string {
	switch limit {
	case "syn_backlog":
		return "SYN backlog"
	case "max_connections":
		return "connections"
	case "max_threads":
		return "threads"
	default:
		return printable(spaced(limit))
	}
}
