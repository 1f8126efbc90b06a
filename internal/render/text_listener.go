package render

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// listenerText is one listener on a screen.
type listenerText struct {
	*screen
	l *model.Listener
}

// all writes the whole funnel of one listener, the verdict on top.
func (s listenerText) all(snap *model.Snapshot) {
	answerText{s.screen, s.l, snap}.all(whole)
	s.summary()
	s.identity()
	s.details(snap)
}

// details are what the verdict rests on, and what to do.
func (s listenerText) details(snap *model.Snapshot) {
	if s.l.Listening() {
		s.blank()
		s.funnel()
		s.blank()
		s.queue()
		s.phases()
		s.downstream()
		s.stacks()
		s.capacity()
	}
	s.losses(snap)
	s.chain()
	s.settingNotes(s.l.Connector)
	s.findings()
}

// summary is the verdict in one sentence, with its cause.
func (s listenerText) summary() {
	s.blank()
	text := printable(s.l.Verdict.Summary)
	if c := s.l.Verdict.Cause; c != model.CauseNone {
		s.row(span{printable(string(c)), statusStyle(s.l.Verdict.Status)}, span{text: text})
		return
	}
	s.row(label("summary"), span{text: text})
}

// verdict is the line to read when there is time for one: how it stands,
// where, which limit does it, and what that does to clients.
func (s listenerText) verdict() {
	v := &s.l.Verdict
	head := []span{s.badge(v.Status), {"  " + whereOf(s.l), bold}}
	if v.Cause != model.CauseNone {
		head = append(head, span{"  " + printable(string(v.Cause)), statusStyle(v.Status)})
	}
	summary := printable(v.Summary)
	if used := columns(head); used+2+lipgloss.Width(summary) <= s.width {
		s.line(append(head, span{text: "  "}, span{summary, bold})...)
		return
	}
	s.line(head...)
	s.paragraph(indent, span{summary, bold})
}

// badge is a coloured block, or just the word.
func (s *screen) badge(st model.Status) span {
	word := statusWord(st)
	if s.color {
		word = " " + word + " "
	}
	return span{word, badgeStyle(st)}
}

// statusWord is a status on a screen.
func statusWord(st model.Status) string {
	if st == model.StatusLosing {
		return "LOSING CLIENTS"
	}
	return strings.ToUpper(st.String())
}

func columns(spans []span) int {
	n := 0
	for _, sp := range spans {
		n += sp.width()
	}
	return n
}

// whereOf is the address, or the port that nothing listens on.
func whereOf(l *model.Listener) string {
	if !l.Listening() {
		return "port " + strconv.Itoa(int(l.Port))
	}
	return printable(l.ID.String())
}

// identity says who listens, in one dim line.
func (s listenerText) identity() {
	var parts []string
	if s.l.Listening() {
		if s.l.Pod != nil {
			parts = append(parts, podOf(s.l.Pod))
		}
		parts = append(parts, ownerOf(s.l.Process))
	}
	if k := s.l.Connector; k != nil {
		parts = append(parts, serverOf(k)...)
	}
	if p := s.l.Process; p != nil && p.Container != "" {
		parts = append(parts, "container "+cut(printable(p.Container), 12))
	}
	if s.l.Members > 1 {
		parts = append(parts, phrase.Number(s.l.Members)+" sockets (SO_REUSEPORT), the fullest shown")
	}
	if len(parts) > 0 {
		s.row(label("server"), span{text: strings.Join(parts, " · ")})
	}
	switch p := s.l.Process; {
	case p != nil && p.Frozen:
		s.paragraph(indent, span{"The process is frozen with its cgroup: it accepts nothing until that is thawed.", bad})
	case p != nil && p.Stopped:
		s.paragraph(indent, span{"The process is stopped (state T): it accepts nothing until it gets SIGCONT.", bad})
	}
}

// ownersOf are the pod, the process and the container, in the order in which a person looks for
// them. A pod's container is not named by its id.
func ownersOf(l *model.Listener) []string {
	if l.Pod != nil {
		return []string{podOf(l.Pod), ownerOf(l.Process)}
	}
	parts := []string{ownerOf(l.Process)}
	if p := l.Process; p != nil && p.Container != "" {
		parts = append(parts, "container "+cut(printable(p.Container), 12))
	}
	return parts
}

// podOf is "NAMESPACE/POD (CONTAINER)".
func podOf(p *model.Pod) string {
	if p.Container == "" {
		return printable(p.String())
	}
	return printable(p.String() + " (" + p.Container + ")")
}

func ownerOf(p *model.Process) string {
	if p == nil {
		return "owner n/a (not visible to this user)"
	}
	return printable(p.Comm) + " " + strconv.Itoa(p.PID)
}

func serverOf(k *model.Connector) []string {
	var parts []string
	switch kind := k.Kind(); {
	case kind.Title != "":
		parts = append(parts, strings.TrimSpace(kind.Title+" "+printable(k.Version)))
	case kind.JVM:
		parts = append(parts, "a JVM, no Tomcat recognised")
	}
	if k.Framework == "spring-boot" {
		parts = append(parts, strings.TrimSpace("Spring Boot "+printable(k.FrameworkVersion)))
	}
	if k.Protocol != "" {
		parts = append(parts, printable(k.Protocol))
	}
	if k.TLS {
		parts = append(parts, "TLS")
	}
	if k.HTTP2 {
		parts = append(parts, "HTTP/2")
	}
	if k.Executor != "" {
		parts = append(parts, "executor "+printable(k.Executor))
	}
	return parts
}

// queue says what the accept queue's length does not.
func (s listenerText) queue() {
	q := s.l.AcceptQueue
	if q == nil {
		return
	}
	var parts []string
	if q.OldestWait != nil {
		parts = append(parts, "the oldest has waited "+howLong(*q.OldestWait))
	}
	if q.Peak != nil && *q.Peak > 0 {
		peak := "peak " + phrase.Number(*q.Peak)
		if q.PeakAge > 0 {
			peak += ", " + howLong(q.PeakAge) + " ago"
		}
		parts = append(parts, peak)
	}
	if len(parts) > 0 {
		s.row(label("queue"), span{text: strings.Join(parts, " · ")})
	}
}

// phases are where the accepted connections stand; phases nobody is in are
// not worth a word.
func (s listenerText) phases() {
	c := s.l.Connections
	if c == nil {
		return
	}
	spans := make([]span, 0, 2*model.NumPhases)
	for p, n := range c.Phases {
		if n > 0 {
			spans = append(spans, phase(model.Phase(p), n), span{dot, dim})
		}
	}
	if c.Reset != nil && *c.Reset > 0 {
		spans = append(spans, span{phrase.Number(*c.Reset) + " without a socket (reset by the client?)", warn}, span{dot, dim})
	}
	if len(spans) == 0 {
		spans = []span{{"no connections", dim}, {}}
	}
	spans = spans[:len(spans)-1]
	if c.Partial {
		spans = append(spans, span{"(the kernel cut the scan short: at least so many)", warn})
	}
	if c.Sampled > 0 {
		spans = append(spans, span{phrase.Sprintf("(each ±%d: %d were asked)", c.Error, c.Sampled), dim})
	}
	s.row(label("phases"), spans...)
}

func phase(p model.Phase, n int) span {
	st := plain
	if p == model.Waiting {
		st = warn
	}
	return span{phrase.Number(n) + " " + spaced(p.String()), st}
}

// capacity spells the sum out: the "one" is the kernel's, and everybody who
// load-tests a Tomcat wonders about it.
func (s listenerText) capacity() {
	n := s.l.Capacity()
	if n == nil {
		return
	}
	s.row(label("capacity"), span{text: phrase.Number(*n) + " clients at once"},
		span{"= " + phrase.Number(s.l.Connector.MaxConnections.Value) + " + backlog " + phrase.Number(s.l.AcceptQueue.Limit) + " + 1", dim})
}

func (s listenerText) chain() {
	if len(s.l.Verdict.Chain) < 2 {
		return
	}
	names := make([]string, len(s.l.Verdict.Chain))
	for i, c := range s.l.Verdict.Chain {
		names[i] = printable(string(c))
	}
	s.row(label("chain"), span{strings.Join(names, " → "), bold}, span{"(full stages)", dim})
}

// settingNotes are settings that do not mean what they say: ignored by the
// server, or clamped by the kernel.
func (s listenerText) settingNotes(k *model.Connector) {
	if k == nil {
		return
	}
	for _, n := range []struct{ name, note string }{
		{"maxConnections", noteOf(k.MaxConnections)},
		{"acceptCount", noteOf(k.AcceptCount)},
		{"maxThreads", noteOf(k.MaxThreads)},
		{"minSpareThreads", noteOf(k.MinSpareThreads)},
		{"virtual threads", noteOf(k.VirtualThreads)},
	} {
		if n.note != "" {
			s.row(label(n.name), span{printable(n.note), warn})
		}
	}
}

func noteOf[T any](s *model.Setting[T]) string {
	if s == nil {
		return ""
	}
	return s.Note
}

// findings are what the evidence carries and what to do about it.
func (s listenerText) findings() {
	for _, f := range s.l.Verdict.Findings {
		if strings.HasSuffix(f.Code, "_note") {
			continue // the settings' own notes stand with the settings
		}
		s.blank()
		s.row(span{printable(f.Code), severityStyle(f.Severity)}, span{text: printable(f.Evidence)})
		if f.Advice != "" {
			do, why := firstSentence(printable(f.Advice))
			s.wrapped([]span{{text: blanks(textColumn)}, {"→ ", severityStyle(f.Severity)}}, textColumn+2, span{do, bold}, span{text: why})
		}
	}
}

// firstSentence parts what to do from its side effects and what would not help.
func firstSentence(text string) (first, rest string) {
	first, rest, found := strings.Cut(text, ". ")
	if found {
		first += "."
	}
	return first, rest
}

func severityStyle(v model.Severity) style {
	switch v {
	case model.SeverityCritical:
		return bad
	case model.SeverityWarning:
		return warn
	default:
		return good
	}
}

func label(name string) span { return span{name, dim} }
