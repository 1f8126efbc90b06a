package render

import (
	"slices"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// answerBar is how wide a stage's bar is below an answer; a narrow screen has none.
const (
	answerBar = 12
	narrow    = 66
)

// stages are one line each, from the client inwards, with where packets are dropped and
// which stage is to be fixed first.
func (s AnswerText) stages(level brevity) {
	stages := s.shown(level)
	used, most, name := 1, 1, 12
	for i := range stages {
		used = max(used, lipgloss.Width(known(stages[i].used)))
		most = max(most, lipgloss.Width(stages[i].maximum()))
		name = max(name, lipgloss.Width(stages[i].name))
	}
	for i := range stages {
		s.stageLine(&stages[i], name, used, most)
	}
}

// shown are the stages of which there is something to see: without a half-open
// connection the SYN backlog is none, and where room is short the calm ones are left out.
func (s AnswerText) shown(level brevity) []Stage {
	all := append([]Stage{synBacklog(s.L), AcceptQueue(s.L), Connections(s.L), Threads(s.L), backend(s.L), openFiles(s.L)}, otherLimits(s.L)...)
	return slices.DeleteFunc(all, func(st Stage) bool {
		switch {
		case st.name == "":
			return true
		case s.marked(st.name):
			return false
		case st.neverFull && (st.used == nil || *st.used == 0):
			return true
		}
		return level >= withoutCalmStages && !st.nearFull()
	})
}

func (st *Stage) nearFull() bool {
	return st.used != nil && st.Max != nil && *st.Max > 0 && float64(*st.used)/float64(*st.Max) >= .8
}

func (s AnswerText) stageLine(st *Stage, name, used, most int) {
	head := []term.Span{
		term.Text(term.Blanks(answerIndent)),
		term.Plain.Of(term.PadRight(st.name, name+1)),
		term.Bold.Of(term.PadLeft(known(st.used), used+1)),
		term.Dim.Of(" / "),
		term.Plain.Of(term.PadRight(st.maximum(), most)),
	}
	gap := term.Text("  ")
	if st.used == nil || st.Max == nil || *st.Max <= 0 {
		head = append(head, s.whole(head, term.Dim.Of("  "+term.Printable(cmpOr(st.why, st.source))))...)
	} else {
		ratio := float64(*st.used) / float64(*st.Max)
		if s.Width >= narrow {
			head = append(append(head, gap), term.Bar(ratio, answerBar, st.level(ratio))...)
		}
		head = append(head, st.level(ratio).Of(term.PadLeft(st.percent(ratio), 6)))
	}
	for _, note := range s.notes(st) {
		head = append(head, s.whole(head, note)...)
	}
	s.Line(head...)
}

// whole is a note behind others on a line, without the clauses for which there is no room: of half a word nobody has
// anything.
func (s AnswerText) whole(line []term.Span, note term.Span) []term.Span {
	room := s.Width
	for _, sp := range line {
		room -= sp.Width()
	}
	for lipgloss.Width(note.Text) > room {
		end := strings.LastIndex(note.Text, ": ") // of what may be one of several nothing is left out
		if end < 0 {
			for _, clause := range []string{"; ", ", ", " for ", " (", "  "} {
				end = max(end, strings.LastIndex(note.Text, clause))
			}
		}
		if end <= 0 {
			return nil
		}
		note.Text = note.Text[:end]
	}
	return []term.Span{note}
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// notes are what is to be known of a stage, the marks first.
func (s AnswerText) notes(st *Stage) []term.Span {
	out := s.marks(st)
	if text := diagnosis.StageNote(s.L, limitOf(st.name)); text != "" {
		out = append(out, term.Dim.Of("  "+text))
	}
	return out
}

// marks are where to begin, and where clients are lost.
func (s AnswerText) marks(st *Stage) (out []term.Span) {
	name := st.name
	if name == s.root() && (st.used == nil || st.Max == nil || st.nearFull()) {
		out = append(out, term.FixStyle.Of("  ◀ "+s.wide("fix this first", "fix first")))
	}
	if name == s.dropping() {
		out = append(out, term.Bad.Of("  ◀ drops here"))
	}
	return out
}

func (s AnswerText) root() string { return onScreen(diagnosis.RootStage(s.L)) }

func (s AnswerText) dropping() string { return onScreen(diagnosis.DroppingStage(s.L)) }

// onScreen is a stage's name here; "" stays it.
func onScreen(stage string) string {
	if stage == "" {
		return ""
	}
	return StageOf(stage)
}

// limitOf is the limit that a stage on the screen is: stageOf the other way round.
func limitOf(name string) string {
	for _, limit := range []string{"syn_backlog", "max_connections", "max_threads"} {
		if StageOf(limit) == name {
			return limit
		}
	}
	return strings.ReplaceAll(name, " ", "_")
}

// wide is the longer of two forms where there is room.
func (s AnswerText) wide(long, short string) string {
	if s.Width < narrow {
		return short
	}
	return long
}

func (s AnswerText) marked(name string) bool {
	return name == s.root() || name == s.dropping()
}

// backend is the peer that the cause is, as a stage behind the threads; none where the
// cause is none.
func backend(l *model.Listener) Stage {
	p := diagnosis.BusiestPeer(l)
	if p == nil || diagnosis.RootStage(l) != diagnosis.Backend {
		return Stage{}
	}
	return Stage{name: "backend", used: &p.InFlight, Max: &p.Connections}
}

// lost says what was dropped and what clients see of it, in one line.
func (s AnswerText) lost() {
	lo := s.L.Losses
	if lo == nil || lo.DroppedPackets == 0 {
		return
	}
	text := phrase.Plural(lo.DroppedPackets, "packet", "packets") + " in " + term.HowLong(s.Snap.Interval)
	if len(lo.WorstCase) > 0 {
		text += "; clients may see: " + strings.ReplaceAll(worstCase(lo.WorstCase), ",", " or")
	}
	s.part("Lost", term.Text(text+"."))
}
