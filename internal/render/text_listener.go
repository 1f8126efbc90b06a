package render

import (
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// listenerText is one listener on a screen.
type listenerText struct {
	*term.Screen
	l *model.Listener
}

// all writes the whole funnel of one listener, the verdict on top.
func (s listenerText) all(snap *model.Snapshot) {
	answerText{s.Screen, s.l, snap}.all(whole)
	s.summary()
	s.identity()
	s.details(snap)
}

// details are what the verdict rests on, and what to do.
func (s listenerText) details(snap *model.Snapshot) {
	if s.l.Listening() {
		s.Blank()
		s.funnel()
		s.Blank()
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
	s.Blank()
	text := term.Printable(s.l.Verdict.Summary)
	if c := s.l.Verdict.Cause; c != model.CauseNone {
		s.Row(term.StatusStyle(s.l.Verdict.Status).Of(term.Printable(string(c))), term.Text(text))
		return
	}
	s.Row(term.Label("summary"), term.Text(text))
}

// verdict is the line to read when there is time for one: how it stands,
// where, which limit does it, and what that does to clients.
func (s listenerText) verdict() {
	v := &s.l.Verdict
	head := []term.Span{s.Badge(v.Status), term.Bold.Of("  " + whereOf(s.l))}
	if v.Cause != model.CauseNone {
		head = append(head, term.StatusStyle(v.Status).Of("  "+term.Printable(string(v.Cause))))
	}
	summary := term.Printable(v.Summary)
	if used := term.Columns(head); used+2+lipgloss.Width(summary) <= s.Width {
		s.Line(append(head, term.Text("  "), term.Bold.Of(summary))...)
		return
	}
	s.Line(head...)
	s.Paragraph(term.Indent, term.Bold.Of(summary))
}

// whereOf is the address, or the port that nothing listens on.
func whereOf(l *model.Listener) string {
	if !l.Listening() {
		return "port " + strconv.Itoa(int(l.Port))
	}
	return term.Printable(l.ID.String())
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
		parts = append(parts, "container "+term.Cut(term.Printable(p.Container), 12))
	}
	if s.l.Members > 1 {
		parts = append(parts, phrase.Number(s.l.Members)+" sockets (SO_REUSEPORT), the fullest shown")
	}
	if len(parts) > 0 {
		s.Row(term.Label("server"), term.Text(strings.Join(parts, " · ")))
	}
	switch p := s.l.Process; {
	case p != nil && p.Frozen:
		s.Paragraph(term.Indent, term.Bad.Of("The process is frozen with its cgroup: it accepts nothing until that is thawed."))
	case p != nil && p.Stopped:
		s.Paragraph(term.Indent, term.Bad.Of("The process is stopped (state T): it accepts nothing until it gets SIGCONT."))
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
		parts = append(parts, "container "+term.Cut(term.Printable(p.Container), 12))
	}
	return parts
}

// podOf is "NAMESPACE/POD (CONTAINER)".
func podOf(p *model.Pod) string {
	if p.Container == "" {
		return term.Printable(p.String())
	}
	return term.Printable(p.String() + " (" + p.Container + ")")
}

func ownerOf(p *model.Process) string {
	if p == nil {
		return "owner n/a (not visible to this user)"
	}
	return term.Printable(p.Comm) + " " + strconv.Itoa(p.PID)
}

func serverOf(k *model.Connector) []string {
	var parts []string
	switch kind := k.Kind(); {
	case kind.Title != "":
		parts = append(parts, strings.TrimSpace(kind.Title+" "+term.Printable(k.Version)))
	case kind.JVM:
		parts = append(parts, "a JVM, no Tomcat recognised")
	}
	if k.Framework == "spring-boot" {
		parts = append(parts, strings.TrimSpace("Spring Boot "+term.Printable(k.FrameworkVersion)))
	}
	if k.Protocol != "" {
		parts = append(parts, term.Printable(k.Protocol))
	}
	if k.TLS {
		parts = append(parts, "TLS")
	}
	if k.HTTP2 {
		parts = append(parts, "HTTP/2")
	}
	if k.Executor != "" {
		parts = append(parts, "executor "+term.Printable(k.Executor))
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
		parts = append(parts, "the oldest has waited "+term.HowLong(*q.OldestWait))
	}
	if q.Peak != nil && *q.Peak > 0 {
		peak := "peak " + phrase.Number(*q.Peak)
		if q.PeakAge > 0 {
			peak += ", " + term.HowLong(q.PeakAge) + " ago"
		}
		parts = append(parts, peak)
	}
	if len(parts) > 0 {
		s.Row(term.Label("queue"), term.Text(strings.Join(parts, " · ")))
	}
}

// phases are where the accepted connections stand; phases nobody is in are
// not worth a word.
func (s listenerText) phases() {
	c := s.l.Connections
	if c == nil {
		return
	}
	spans := make([]term.Span, 0, 2*model.NumPhases)
	for p, n := range c.Phases {
		if n > 0 {
			spans = append(spans, phase(model.Phase(p), n), term.Dim.Of(term.Dot))
		}
	}
	if c.Reset != nil && *c.Reset > 0 {
		spans = append(spans, term.Warn.Of(phrase.Number(*c.Reset)+" without a socket (reset by the client?)"), term.Dim.Of(term.Dot))
	}
	if len(spans) == 0 {
		spans = []term.Span{term.Dim.Of("no connections"), term.Span{}}
	}
	spans = spans[:len(spans)-1]
	if c.Partial {
		spans = append(spans, term.Warn.Of("(the kernel cut the scan short: at least so many)"))
	}
	if c.Sampled > 0 {
		spans = append(spans, term.Dim.Of(phrase.Sprintf("(each ±%d: %d were asked)", c.Error, c.Sampled)))
	}
	s.Row(term.Label("phases"), spans...)
}

func phase(p model.Phase, n int) term.Span {
	st := term.Plain
	if p == model.Waiting {
		st = term.Warn
	}
	return st.Of(phrase.Number(n) + " " + term.Spaced(p.String()))
}

// capacity spells the sum out: the "one" is the kernel's, and everybody who
// load-tests a Tomcat wonders about it.
func (s listenerText) capacity() {
	n := s.l.Capacity()
	if n == nil {
		return
	}
	s.Row(term.Label("capacity"), term.Text(phrase.Number(*n)+" clients at once"),
		term.Dim.Of("= "+phrase.Number(s.l.Connector.MaxConnections.Value)+" + backlog "+phrase.Number(s.l.AcceptQueue.Limit)+" + 1"))
}

func (s listenerText) chain() {
	if len(s.l.Verdict.Chain) < 2 {
		return
	}
	names := make([]string, len(s.l.Verdict.Chain))
	for i, c := range s.l.Verdict.Chain {
		names[i] = term.Printable(string(c))
	}
	s.Row(term.Label("chain"), term.Bold.Of(strings.Join(names, " → ")), term.Dim.Of("(full stages)"))
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
			s.Row(term.Label(n.name), term.Warn.Of(term.Printable(n.note)))
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
		s.Blank()
		s.Row(severityStyle(f.Severity).Of(term.Printable(f.Code)), term.Text(term.Printable(f.Evidence)))
		if f.Advice != "" {
			do, why := firstSentence(term.Printable(f.Advice))
			s.Wrapped([]term.Span{term.Text(term.Blanks(term.TextColumn)), severityStyle(f.Severity).Of("→ ")}, term.TextColumn+2, term.Bold.Of(do), term.Text(why))
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

func severityStyle(v model.Severity) term.Style {
	switch v {
	case model.SeverityCritical:
		return term.Bad
	case model.SeverityWarning:
		return term.Warn
	default:
		return term.Good
	}
}
