package render

import (
	"net/netip"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// The grid of an answer: its four words stand at the left, what they say next to them.
const (
	answerIndent = 1
	answerColumn = 8
	commandStart = 10 // a command begins a little further, so that it is found
)

// answerText is a listener's answer on a screen: how it stands, What, Why, Do, Not.
type answerText struct {
	*screen
	l    *model.Listener
	snap *model.Snapshot
}

// all writes it as short as level says: see brevity.
func (s answerText) all(level brevity) {
	s.head()
	a := &s.l.Verdict.Answer
	what := a.What
	if what == "" { // a recording made before there were answers
		what = s.l.Verdict.Summary
	}
	s.part("What", span{printable(what), bold})
	s.recent()
	if a.Why != "" {
		s.part("Why", span{text: printable(a.Why)})
	}
	for i := range a.Do {
		s.step(i, &a.Do[i], level)
	}
	if a.Not != "" {
		s.part("Not", span{text: printable(a.Not)})
	}
}

// head is the badge, the address and who listens there, on one line.
func (s answerText) head() {
	spans := []span{s.badge(s.l.Verdict.Status), {"  " + shortWhere(s.l), bold}}
	if !s.color {
		spans = append([]span{{text: blanks(answerIndent)}}, spans...)
	}
	room := s.width - columns(spans) - 2
	who := strings.Join(s.who(), " · ")
	for parts := s.who(); len(parts) > 1 && lipgloss.Width(who) > room; {
		parts = parts[:len(parts)-1]
		who = strings.Join(parts, " · ")
	}
	if who != "" {
		spans = append(spans, span{"  " + who, dim})
	}
	s.line(spans...)
}

// who are the process and the server, what may be left out last.
func (s answerText) who() []string {
	if !s.l.Listening() {
		if last := s.l.Last; last != nil && last.PID != 0 {
			was := "was " + printable(last.Comm) + " " + strconv.Itoa(last.PID)
			if last.Pod != nil {
				was += " of " + podOf(last.Pod)
			}
			return []string{was}
		}
		return nil
	}
	parts := ownersOf(s.l)
	if k := s.l.Connector; k != nil {
		parts = append(parts, serverOf(k)...)
	}
	if s.l.Members > 1 {
		parts = append(parts, strconv.Itoa(s.l.Members)+" sockets")
	}
	return parts
}

// shortWhere is ":8080" where it listens on every address.
func shortWhere(l *model.Listener) string {
	a := l.ID.Address
	if l.Listening() && l.ID.Device == "" && (a.Addr() == netip.IPv6Unspecified() || a.Addr() == netip.IPv4Unspecified()) {
		return ":" + strconv.Itoa(int(a.Port()))
	}
	return whereOf(l)
}

func (s answerText) part(word string, spans ...span) {
	s.wrapped(answerHead(word, ""), answerColumn, spans...)
}

func answerHead(word, number string) []span {
	rest := padLeft(number, answerColumn-answerIndent-len(word)-2)
	return []span{{text: blanks(answerIndent)}, {word, bold}, {rest, bold}, {text: "  "}}
}

// step is one action; the first has the word Do before it.
func (s answerText) step(i int, st *model.Step, level brevity) {
	word := ""
	if i == 0 {
		word = "Do"
	}
	text := printable(st.Text)
	if st.Command != "" || st.Setting != "" {
		text += ":"
	}
	spans := []span{{text: text}}
	if st.Setting != "" {
		spans = append(spans, s.setting(st, level)...)
	}
	s.wrapped(answerHead(word, strconv.Itoa(i+1)), answerColumn, spans...)
	if st.Command != "" {
		s.command(printable(st.Command))
	}
	if st.Effect != "" && level < withoutEffects {
		s.paragraph(answerColumn, span{"predicted: " + printable(st.Effect), good})
	}
}

// setting keeps its two values on one line.
func (s answerText) setting(st *model.Step, level brevity) []span {
	change := printable(st.To)
	if st.From != "" {
		change = printable(st.From) + nbsp + "→" + nbsp + change
	}
	spans := []span{{printable(st.Setting), plain}, {change, changeStyle}}
	if st.File != "" && level < withoutFiles {
		spans = append(spans, span{"(" + printable(st.File) + ")", dim})
	}
	return spans
}

// command writes it in one piece, to be copied: it begins further left, or runs
// beyond the edge, sooner than that it is broken.
func (s answerText) command(text string) {
	start := max(min(commandStart, s.width-lipgloss.Width(text)), 0)
	s.b.WriteString(blanks(start) + span{text, commandStyle}.ansi(s.color) + "\n")
}
