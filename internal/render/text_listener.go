package render

import (
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// ListenerText is one listener on a screen.
type ListenerText struct {
	*term.Screen
	L *model.Listener
}

// all writes the whole funnel of one listener, the verdict on top.
func (s ListenerText) all(snap *model.Snapshot) {
	AnswerText{s.Screen, s.L, snap}.all(whole)
	s.summary()
	s.identity()
	s.Details(snap)
}

// Details are what the verdict rests on, and what to do.
func (s ListenerText) Details(snap *model.Snapshot) {
	if s.L.Listening() {
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
	s.settingNotes(s.L.Connector)
	s.findings()
}

// summary is the verdict in one sentence, with its cause.
func (s ListenerText) summary() {
	s.Blank()
	text := term.Printable(s.L.Verdict.Summary)
	if c := s.L.Verdict.Cause; c != model.CauseNone {
		s.Row(term.StatusStyle(s.L.Verdict.Status).Of(term.Printable(string(c))), term.Text(text))
		return
	}
	s.Row(term.Label("summary"), term.Text(text))
}

// Verdict is the line to read when there is time for one: how it stands,
// where, which limit does it, and what that does to clients.
func (s ListenerText) Verdict() {
	v := &s.L.Verdict
	head := []term.Span{s.Badge(v.Status), term.Bold.Of("  " + Where(s.L))}
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

// identity says who listens, in one dim line.
func (s ListenerText) identity() {
	var parts []string
	if s.L.Listening() {
		if s.L.Pod != nil {
			parts = append(parts, podOf(s.L.Pod))
		}
		parts = append(parts, ownerOf(s.L.Process))
	}
	if k := s.L.Connector; k != nil {
		parts = append(parts, serverOf(k)...)
	}
	if p := s.L.Process; p != nil && p.Container != "" {
		parts = append(parts, "container "+term.Cut(term.Printable(p.Container), 12))
	}
	if s.L.Members > 1 {
		parts = append(parts, phrase.Number(s.L.Members)+" sockets (SO_REUSEPORT), the fullest shown")
	}
	if len(parts) > 0 {
		s.Row(term.Label("server"), term.Text(strings.Join(parts, " · ")))
	}
	switch p := s.L.Process; {
	case p != nil && p.Dumping:
		s.Paragraph(term.Indent, term.Bad.Of("The process has crashed, and its core dump is written: it accepts nothing more."))
	case p != nil && p.Frozen:
		s.Paragraph(term.Indent, term.Bad.Of("The process is frozen with its cgroup: it accepts nothing until that is thawed."))
	case p != nil && p.Stopped:
		s.Paragraph(term.Indent, term.Bad.Of("The process is stopped (state T): it accepts nothing until it gets SIGCONT."))
	}
}

// queue says what the accept queue's length does not.
func (s ListenerText) queue() {
	q := s.L.AcceptQueue
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
func (s ListenerText) phases() {
	c := s.L.Connections
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
		spans = []term.Span{term.Dim.Of("no connections"), {}}
	}
	spans = spans[:len(spans)-1]
	if c.Partial {
		spans = append(spans, term.Warn.Of("(the kernel cut the scan short: at least so many)"))
	}
	if c.Subset > 0 {
		spans = append(spans, term.Dim.Of(phrase.Sprintf("(each ±%d: %d were asked)", c.Error, c.Subset)))
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
func (s ListenerText) capacity() {
	n := s.L.Capacity()
	if n == nil {
		return
	}
	s.Row(term.Label("capacity"), term.Text(phrase.Number(*n)+" clients at once"),
		term.Dim.Of("= "+phrase.Number(s.L.Connector.MaxConnections.Value)+" + backlog "+phrase.Number(s.L.AcceptQueue.Limit)+" + 1"))
}

func (s ListenerText) chain() {
	if len(s.L.Verdict.Chain) < 2 {
		return
	}
	names := make([]string, len(s.L.Verdict.Chain))
	for i, c := range s.L.Verdict.Chain {
		names[i] = term.Printable(string(c))
	}
	s.Row(term.Label("chain"), term.Bold.Of(strings.Join(names, " → ")), term.Dim.Of("(full stages)"))
}

// settingNotes are settings that do not mean what they say: ignored by the
// server, or clamped by the kernel.
func (s ListenerText) settingNotes(k *model.Connector) {
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
func (s ListenerText) findings() {
	for _, f := range s.L.Verdict.Findings {
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

// shownGroups is how many places of threads the screen has room for.
const shownGroups = 6

// stacks are where a thread dump shows the threads that work on requests; where it
// knows none as such, all that do not wait for work.
func (s ListenerText) stacks() {
	if s.L.Process == nil || s.L.Process.Stacks == nil {
		return
	}
	d := s.L.Process.Stacks
	title, shown := "thread dump", 0
	for i := range d.Groups {
		g := &d.Groups[i]
		if g.Idle || g.Worker != (d.Workers > 0) {
			continue
		}
		if shown++; shown > shownGroups {
			s.Row(term.Label(title), term.Dim.Of("and more"))
			break
		}
		s.Row(term.Label(title), term.Bold.Of(phrase.Number(g.Threads)+" × "), term.Text(term.Printable(g.Where())), term.Dim.Of(term.Dot),
			term.Dim.Of(strings.ToLower(strings.ReplaceAll(g.State, "_", " "))))
		title = ""
	}
	if idle := d.Workers - d.Busy(); idle > 0 {
		s.Row(term.Label(title), term.Dim.Of(phrase.Number(idle)+" wait for a request"))
		title = ""
	}
	if v := d.Scheduler; v != nil {
		s.Row(term.Label(title), term.Text(phrase.Sprintf("%d of %s taken", v.Mounted, phrase.Count(v.Parallelism, "carrier"))), term.Dim.Of(term.Dot),
			term.Dim.Of(phrase.Sprintf("%s for one", countWaiting(v.Queued))))
		title = ""
	}
	if d.Deadlocked {
		s.Row(term.Label(title), term.Bad.Of("the JVM found a deadlock"))
		title = ""
	}
	if s.L.OnVirtualThreads() && !d.VirtualShown {
		s.Row(term.Label(title), term.Dim.Of("virtual threads that wait could not be had"))
	}
}

// countWaiting reads "18 virtual threads wait".
func countWaiting(n int) string {
	return phrase.Count(n, "virtual thread") + " " + phrase.Verb(n, "waits", "wait")
}
