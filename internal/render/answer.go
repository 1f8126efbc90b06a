package render

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// The grid of an answer: its four words stand at the left, what they say next to them.
const (
	answerIndent = 1
	answerColumn = 8
	commandStart = 10 // a command begins a little further, so that it is found
)

// AnswerText is a listener's answer on a screen: how it stands, What, Why, Do, Not.
type AnswerText struct {
	*term.Screen
	L    *model.Listener
	Snap *model.Snapshot
}

// all writes it as short as level says: see brevity.
func (s AnswerText) all(level brevity) {
	s.head()
	a := &s.L.Verdict.Answer
	what := a.What
	if what == "" { // a recording made before there were answers
		what = s.L.Verdict.Summary
	}
	s.part("What", term.Bold.Of(term.Printable(what)))
	s.recent()
	s.whyAndDo(a, level)
}

func (s AnswerText) whyAndDo(a *model.Answer, level brevity) {
	if a.Why != "" {
		s.part("Why", term.Text(term.Printable(a.Why)))
	}
	for i := range a.Do {
		s.step(i, &a.Do[i], level)
	}
	if a.Not != "" {
		s.part("Not", term.Text(term.Printable(a.Not)))
	}
}

// Compact writes it without blank lines.
func (s AnswerText) Compact() { s.all(withoutAir) }

// head is the badge, the address and who listens there, on one line.
func (s AnswerText) head() {
	spans := []term.Span{s.Badge(s.L.Verdict.Status), term.Bold.Of("  " + shortWhere(s.L))}
	if !s.Color {
		spans = append([]term.Span{term.Text(term.Blanks(answerIndent))}, spans...)
	}
	room := s.Width - term.Columns(spans) - 2
	who := strings.Join(s.who(), " · ")
	for parts := s.who(); len(parts) > 1 && lipgloss.Width(who) > room; {
		parts = parts[:len(parts)-1]
		who = strings.Join(parts, " · ")
	}
	if who = cutName(who, max(room, 0)); who != "" {
		spans = append(spans, term.Dim.Of("  "+who))
	}
	s.Line(spans...)
}

// who are the process and the server, what may be left out last.
func (s AnswerText) who() []string {
	if !s.L.Listening() {
		if last := s.L.Last; last != nil && last.PID != 0 {
			was := "was " + term.Printable(last.Comm) + " " + strconv.Itoa(last.PID)
			if last.Pod != nil {
				was += " of " + podOf(last.Pod)
			}
			return []string{was}
		}
		return nil
	}
	parts := ownersOf(s.L)
	if k := s.L.Connector; k != nil {
		parts = append(parts, serverOf(k)...)
	}
	if s.L.Members > 1 {
		parts = append(parts, strconv.Itoa(s.L.Members)+" sockets")
	}
	return parts
}

func (s AnswerText) part(word string, spans ...term.Span) {
	s.Wrapped(answerHead(word, ""), answerColumn, spans...)
}

func answerHead(word, number string) []term.Span {
	rest := term.PadLeft(number, answerColumn-answerIndent-len(word)-2)
	return []term.Span{term.Text(term.Blanks(answerIndent)), term.Bold.Of(word), term.Bold.Of(rest), term.Text("  ")}
}

// step is one action; the first has the word Do before it.
func (s AnswerText) step(i int, st *model.Step, level brevity) {
	word := ""
	if i == 0 {
		word = "Do"
	}
	text := term.Printable(st.Text)
	explained := strings.Contains(text, ": ") // a second colon is read twice
	if (st.Command != "" || st.Setting != "") && !explained {
		text += ":"
	}
	spans := []term.Span{term.Text(text)}
	if st.Setting != "" && !explained {
		spans = append(spans, s.setting(st, level)...)
	}
	s.Wrapped(answerHead(word, strconv.Itoa(i+1)), answerColumn, spans...)
	if st.Setting != "" && explained {
		s.Paragraph(commandStart, s.setting(st, level)...)
	}
	if st.Command != "" {
		s.Command(commandStart, term.Printable(st.Command))
	}
	if st.Effect != "" && level < withoutEffects {
		s.Paragraph(answerColumn, term.Good.Of("predicted: "+term.Printable(st.Effect)))
	}
}

// setting keeps its two values on one line.
func (s AnswerText) setting(st *model.Step, level brevity) []term.Span {
	change := term.Printable(st.To)
	if st.From != "" {
		change = term.Printable(st.From) + term.Nbsp + "→" + term.Nbsp + change
	}
	spans := []term.Span{term.Plain.Of(term.Printable(st.Setting)), term.ChangeStyle.Of(change)}
	if st.File != "" && level < withoutFiles {
		spans = append(spans, term.Dim.Of("("+term.Printable(st.File)+")"))
	}
	return spans
}

// recent says what was lost before, of a listener that loses nothing now: never in red.
func (s AnswerText) recent() {
	if said := diagnosis.Quiet(s.L, s.Snap.Time); said != "" {
		s.Paragraph(answerColumn, term.Warn.Of(term.Printable(said)))
	}
}
