// Package runreport says what a load test came to (api.Run), as a screen, a line, Markdown,
// JUnit XML and JSON, and what differs between two tests of one port.
package runreport

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/loadtest"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// JSON writes the result of a load test as one JSON document of schema api.RunSchema.
func JSON(w io.Writer, r *api.Run) error { return render.Document(w, r, "  ") }

// Line is what a run has come to, in one line: "00:12  LOSING  :8080  340 of 2,000 clients …".
func Line(c *loadtest.Course, since time.Duration) string {
	l := &c.Latest
	parts := []string{fmt.Sprintf("tcpdiag %02d:%02d", int(since.Minutes()), int(since.Seconds())%60), strings.ToUpper(l.Verdict.Status.String()), render.Where(l)}
	var offered, away, dropped uint64
	for i := range c.Points {
		offered, away, dropped = offered+c.Points[i].Offered, away+c.Points[i].TurnedAway, dropped+c.Points[i].Dropped
	}
	switch {
	case offered > 0:
		noun, _ := diagnosis.Callers(c.Proxies)
		parts = append(parts, phrase.Count(offered, noun)+", "+phrase.Number(away)+" turned away")
	case dropped > 0:
		parts = append(parts, phrase.Count(dropped, "packet")+" dropped")
	}
	if q := l.AcceptQueue; q != nil {
		parts = append(parts, fmt.Sprintf("accept queue %d/%d", q.Length, q.Capacity()))
	}
	if l.Verdict.Cause != model.CauseNone {
		parts = append(parts, string(l.Verdict.Cause))
	}
	return strings.Join(parts, "  ")
}

// Text writes the answer for a whole load test: what became of the clients, why, what
// to change, and where the limit was. before is an earlier run to compare with, or nil.
func Text(w io.Writer, r *api.Run, before *api.Run, o render.TextOptions) error {
	s := screenText{term.New(o.Width, o.Color), r, before}
	s.head()
	for i := range r.Listeners {
		l := &r.Listeners[i]
		if i >= render.MaxDetailed && l.Status == model.StatusOK.String() {
			s.Paragraph(0, term.Dim.Of(phrase.Plural(len(r.Listeners)-i, "more listener was", "more listeners were")+" ok."))
			break
		}
		s.listener(l)
	}
	return s.Write(w, "run")
}

type screenText struct {
	*term.Screen
	r, before *api.Run
}

func (s screenText) head() {
	parts := []string{"tcpdiag run", term.Printable(s.r.Command), "exit code " + fmt.Sprint(s.r.ExitCode), "ran for " + inSeconds(s.r.Seconds)}
	if s.r.Repeated > 1 {
		parts = append(parts, fmt.Sprintf("the worst of %d runs, run %d", s.r.Repeated, s.r.Shown))
	}
	s.Blank()
	s.Paragraph(0, term.Dim.Of(strings.Join(parts, " · ")))
	switch {
	case s.r.Problem != "":
		s.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of("Nothing was observed: "+term.Printable(s.r.Problem)))
	case len(s.r.Listeners) == 0:
		s.Wrapped([]term.Span{term.Warn.Of("! ")}, 2, term.Warn.Of("No server was found here: give --port or --pid, or --all."))
	}
}

func (s screenText) listener(l *api.RunListener) {
	st := term.StatusNamed(l.Status)
	s.Blank()
	badge := s.Badge(st)
	if st == model.StatusLosing && l.Clients.NoneLost() {
		badge = s.BadgeOf(st, "DROPPED PACKETS")
	}
	head := []term.Span{badge, term.Text("  "), term.Bold.Of(":" + fmt.Sprint(l.Port))}
	if l.Process != "" {
		head = append(head, term.Text("  "+term.Printable(l.Process)+" "+fmt.Sprint(l.PID)))
	}
	s.Line(head...)
	s.Row(term.Label("What"), term.StatusStyle(st).Of(What(l)))
	if why := runWhy(l); why != "" {
		s.Row(term.Label("Why"), term.Text(term.Printable(why)))
	}
	for i, do := range runDo(l) {
		name, command := "", l.Verdict.Answer.Do[i].Command
		if i == 0 {
			name = "Do"
		}
		if command != "" {
			do = strings.TrimSuffix(do, " "+command)
		}
		s.Row(term.Label(name), term.Text(fmt.Sprintf("%d  ", i+1)), term.Text(term.Printable(do)))
		if command != "" {
			s.Command(term.TextColumn, term.Printable(command))
		}
	}
	for _, row := range runFacts(l) {
		s.Row(term.Label(row[0]), term.Text(term.Printable(row[1])))
	}
	for i, line := range Variation(l) {
		name := ""
		if i == 0 {
			name = "Runs"
		}
		s.Row(term.Label(name), term.Text(line))
	}
	if b := ListenerOf(s.before, l); b != nil {
		for i, change := range Changes(b, l) {
			name := ""
			if i == 0 {
				name = "Before"
			}
			s.Row(term.Label(name), term.Text(change))
		}
	}
}

// Said is what is said of a listener: the answer, and the rows below it.
type Said struct {
	What, Why, Not string
	Do             [][2]string // what to do, and the command or the setting of it
	Facts          [][2]string
}

// Answer is what is said of a listener in the whole run.
func Answer(l *api.RunListener) Said {
	out := Said{What: What(l), Why: runWhy(l), Do: runSteps(l), Facts: runFacts(l)}
	if a := l.Verdict.Answer; a != nil && l.Status != model.StatusOK.String() {
		out.Not = a.Not
	}
	return out
}

// What is what became of the clients, in one or two sentences.
func What(l *api.RunListener) string {
	c := l.Clients
	switch {
	case l.Status == model.StatusDown.String() && l.Connections == 0 && (c == nil || c.Offered == 0):
		return "Nothing listened: who came then was refused."
	case c != nil && c.Offered == 0 && valueOr(c.Checks) > 0:
		return "No client sent a request." + runChecks(c) + runDown(l)
	case c != nil && c.Offered == 0:
		return "No client connected." + runDown(l)
	case c != nil && c.TurnedAway == 0:
		got := " got an answer"
		if c.Answered == nil {
			got = " got in, and whether they had an answer was not seen"
		}
		return phrase.Capital(runAll(c)) + got + runOpen(c) + "." + runChecks(c) + runDown(l)
	case c != nil && c.Refused == c.Offered:
		return fmt.Sprintf("Nothing listened: %s %s refused.", runAll(c), phrase.Verb(c.Refused, "was", "were"))
	case c != nil:
		return fmt.Sprintf("%s of %s got no answer: %s%s.%s%s", phrase.Number(c.TurnedAway), phrase.Count(c.Offered, runNoun(c)), strings.Join(runEnds(c), ", "), runOpen(c), runChecks(c), runDown(l))
	case l.DroppedPackets > 0:
		return fmt.Sprintf("%s of clients %s dropped; %s. How many clients that were is not known without CAP_NET_RAW.",
			phrase.Count(l.DroppedPackets, "packet"), phrase.Verb(l.DroppedPackets, "was", "were"), runMade(l))
	case l.Connections == 0:
		return "No client connected."
	}
	return fmt.Sprintf("No packet of a client was dropped; %s. Clients that gave up inside are not seen without CAP_NET_RAW.", runMade(l))
}

func runMade(l *api.RunListener) string {
	return phrase.Count(l.Connections, "connection") + phrase.Verb(l.Connections, " was made", " were made")
}

// runNoun is what its clients are called.
func runNoun(c *api.RunClients) string {
	noun, _ := diagnosis.Callers(c.Proxies)
	return noun
}

func runAll(c *api.RunClients) string {
	switch {
	case c.Served < c.Offered || c.Unknown() > 0:
		return phrase.Number(c.Served) + " of " + phrase.Count(c.Offered, runNoun(c))
	case mayHaveGivenUp(c):
		return phrase.Count(c.Offered, runNoun(c))
	case c.Offered == 1:
		return "the one client"
	}
	return "all " + phrase.Count(c.Offered, runNoun(c))
}

// runChecks are those that asked nothing, and are not among the clients offered: checks of the port, and those that had given up before
// they were let in.
func runChecks(c *api.RunClients) string {
	n, why := valueOr(c.Checks), ""
	if n == 0 {
		return ""
	}
	if mayHaveGivenUp(c) {
		why = ": they only check the port, or had given up before they were let in"
	}
	more := " more"
	if c.Offered == 0 {
		more = ""
	}
	return " " + phrase.Capital(phrase.Number(n)) + more + " connected and sent nothing" + why + "."
}

// mayHaveGivenUp: some of those that sent nothing may have been clients. One in Go whose time is over while it connects
// drops the connection when it is made.
func mayHaveGivenUp(c *api.RunClients) bool { return valueOr(c.Checks) > 0 && c.Delayed > 0 }

func runOpen(c *api.RunClients) string {
	if n := c.Unknown(); n > 0 {
		return fmt.Sprintf(" (what became of %s more is not known)", phrase.Number(n))
	}
	return ""
}

// runDown is for how long nothing listened, as while a server is restarted.
func runDown(l *api.RunListener) string {
	if l.DownSeconds == 0 {
		return ""
	}
	return " Nothing listened for " + inSeconds(l.DownSeconds) + "."
}

// runEnds are the ways in which clients were turned away.
func runEnds(c *api.RunClients) (out []string) {
	for _, e := range []struct {
		n     uint64
		words string
	}{
		{c.GaveUp, "gave up connecting"},
		{c.Stalled, "waited and never got in"},
		{c.GaveUpInside(), "got in and gave up waiting"},
		{c.Closed, phrase.Verb(c.Closed, "was", "were") + " closed by the server without an answer"},
		{c.Reset, phrase.Verb(c.Reset, "was", "were") + " reset"},
		{c.Refused, phrase.Verb(c.Refused, "was", "were") + " refused"},
	} {
		if e.n > 0 {
			out = append(out, phrase.Number(e.n)+" "+e.words)
		}
	}
	return out
}

func runWhy(l *api.RunListener) string {
	if l.Status == model.StatusOK.String() {
		return ""
	}
	if a := l.Verdict.Answer; a != nil && a.Why != "" {
		return a.Why
	}
	return l.Verdict.Summary
}

// runDo are the steps, in the order in which a person would take them.
func runDo(l *api.RunListener) (out []string) {
	for _, step := range runSteps(l) {
		text := step[0]
		if step[1] != "" {
			text += ": " + step[1]
		}
		out = append(out, text)
	}
	return out
}

func runSteps(l *api.RunListener) (out [][2]string) {
	a := l.Verdict.Answer
	if a == nil || l.Status == model.StatusOK.String() {
		return nil
	}
	for _, step := range a.Do {
		code := step.Command
		switch {
		case code != "" || step.Setting == "" || step.To == "":
		case step.From != "":
			code = step.Setting + " " + step.From + " → " + step.To
		default:
			code = step.Setting + "=" + step.To
		}
		out = append(out, [2]string{step.Text, code})
	}
	return out
}

// runFacts are the rows below the answer.
func runFacts(l *api.RunListener) (rows [][2]string) {
	if f := l.FirstLimit; f != nil {
		rate := ""
		if f.ClientsPerSecond > 0 {
			rate = fmt.Sprintf(", at %s clients/s", phrase.Decimal(f.ClientsPerSecond))
		}
		rows = append(rows, [2]string{"First limit", fmt.Sprintf("%s after %s%s", f.Cause, inSeconds(f.AtSeconds), rate)})
	}
	if k := l.Knee; k != nil && k.ClientsPerSecond+float64(valueOr(k.Inside)+valueOr(k.AtOnce)) > 0 {
		rows = append(rows, [2]string{"Served all", runKnee(k, l.Clients.NoneLost())})
	}
	switch s := l.Settings; {
	case s != nil:
		rows = append(rows, [2]string{"Settings", runSettings(l)})
	case SettingsNote(l) != "":
		rows = append(rows, [2]string{"Settings", SettingsNote(l)})
	}
	return rows
}

// SettingsNote is what the settings proposed rest on, or why there are none; "" where nothing is to
// be said of them.
func SettingsNote(l *api.RunListener) string {
	s := l.Settings
	switch {
	case s == nil && l.Status == model.StatusDown.String():
		return ""
	case s == nil && l.FirstLimit != nil && l.SettingsUnknown != "":
		return "not simulated: " + l.SettingsUnknown
	case s == nil:
		return ""
	case s.Smallest == nil:
		return "none serve this load: " + s.Why
	}
	note := ""
	if s.ForTwice == nil && s.WhyNotTwice != "" {
		note = "; twice the load: none, " + s.WhyNotTwice
	}
	if s.Counted {
		return "counted: connections are kept, each client holds one" + note
	}
	load := phrase.Count(s.AtOnce, "client") + " at once"
	if s.AtOnce == 0 {
		load = phrase.Decimal(s.ClientsPerSecond) + " clients/s, a tenth more than came"
	}
	return fmt.Sprintf("by simulation: %s, %s of work each, nobody waits longer than %s", load, inSeconds(s.ServiceTimeSeconds), inSeconds(s.MayWaitSeconds)) + note
}

// runKnee says it; who was dropped packets in a run that lost no client only waited.
func runKnee(k *api.RunKnee, noneLost bool) string {
	unit := "clients/s"
	if k.OfConnections || k.KeepAlive {
		unit = "connections/s"
	}
	inside := ""
	if n := valueOr(k.Inside); n > 0 {
		inside = fmt.Sprintf("%s inside at once", phrase.Count(n, "client"))
	}
	what := phrase.Decimal(k.ClientsPerSecond) + " " + unit
	switch {
	case !k.Reached || k.Error == 0:
	case k.Error >= k.ClientsPerSecond:
		what = "about " + what + " (it varied by more from second to second)"
	default:
		what = fmt.Sprintf("%s ± %s %s", decimal(k.ClientsPerSecond), decimal(k.Error), unit)
	}
	switch {
	case k.AtOnce != nil:
		what = phrase.Count(*k.AtOnce, "client") + " at once"
		if k.AtOnceError > 0 {
			what = fmt.Sprintf("%s ± %s clients at once", phrase.Number(*k.AtOnce), phrase.Number(k.AtOnceError))
		}
	case k.KeepAlive && inside != "":
		what = inside
	case inside != "":
		what += ", " + inside
	}
	if !k.Reached {
		return "the limit was not reached up to " + what
	}
	if k.ClientsPerSecond == 0 && k.AtOnce == nil {
		return "no time at which clients came and none was lost"
	}
	text := "up to " + what
	if k.Cause != "" {
		text += "; what ended it: " + k.Cause
	}
	how := "clients were lost"
	switch {
	case k.Late:
		how = "clients were answered later than --slo"
	case noneLost:
		how = "packets were dropped"
	}
	if beyond := valueOr(k.Beyond); beyond > 0 && k.AtOnce == nil && !k.KeepAlive {
		text += fmt.Sprintf("; %s from %s %s on", how, phrase.Decimal(beyond), unit)
	}
	return text
}

// decimal has a digit behind the point below 100.
func decimal(v float64) string {
	if v >= 100 {
		return phrase.Number(int(math.Round(v)))
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

func runSettings(l *api.RunListener) string {
	s := l.Settings
	if s.Smallest == nil {
		return SettingsNote(l)
	}
	text := "the smallest that serve this load: " + limitsText(s.Smallest, &s.InForce)
	if s.ForTwice != nil {
		text += "; twice the load: " + limitsText(s.ForTwice, &s.InForce)
	}
	return text + " (" + SettingsNote(l) + ")"
}

func limitsText(l, now *api.RunLimits) string {
	var parts []string
	add := func(name string, n, was int) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d (now %d)", name, n, was))
		}
	}
	add("max-threads", l.Threads, now.Threads)
	add("max-connections", l.MaxConnections, now.MaxConnections)
	add("accept-count", l.AcceptCount, now.AcceptCount)
	return strings.Join(parts, ", ")
}

func inSeconds(s float64) string { return phrase.Seconds(time.Duration(s * float64(time.Second))) }

func valueOr[T int | uint64 | float64](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
