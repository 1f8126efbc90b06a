package runreport

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// WriteTo writes a file where a flag asks for one; "-" is standard output.
func WriteTo(name, flag string, write func(io.Writer) error) (err error) {
	switch name {
	case "":
		return nil
	case "-":
		return write(os.Stdout)
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := write(f); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// The elements of JUnit XML that CI systems read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Time     string      `xml:"time,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name      string      `xml:"name,attr"`
		Class     string      `xml:"classname,attr"`
		Time      string      `xml:"time,attr"`
		Failure   *junitCause `xml:"failure,omitempty"`
		Error     *junitCause `xml:"error,omitempty"`
		SystemOut string      `xml:"system-out,omitempty"`
	}
	junitCause struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes the result as JUnit XML: a test case for each listener, which failed where
// its clients were lost, and one error where nothing could be observed. It is what the strictest
// of its readers take: Surefire's schema begins at testsuite, and has no timestamp.
func JUnit(w io.Writer, r *api.Run) error {
	suite := junitSuite{Name: "tcpdiag run " + term.Printable(r.Command), Time: fmt.Sprintf("%.3f", r.Seconds)}
	for i := range r.Listeners {
		c := junitOf(&r.Listeners[i], suite.Time)
		if c.Failure != nil {
			suite.Failures++
		}
		suite.Cases = append(suite.Cases, c)
	}
	if r.Problem != "" {
		suite.Errors = 1
		suite.Cases = append(suite.Cases, junitCase{Name: "observe", Class: "tcpdiag", Time: suite.Time, Error: &junitCause{"nothing was observed", "observe", term.Printable(r.Problem)}})
	}
	suite.Tests = len(suite.Cases)
	content, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return fmt.Errorf("render: junit: %w", err)
	}
	if _, err := io.WriteString(w, xml.Header+string(content)+"\n"); err != nil {
		return fmt.Errorf("render: junit: %w", err)
	}
	return nil
}

func junitOf(l *api.RunListener, time string) junitCase {
	c := junitCase{Name: fmt.Sprintf("port %d", l.Port), Class: "tcpdiag", Time: time}
	text := term.Printable(strings.Join(append([]string{What(l), runWhy(l)}, runDo(l)...), "\n"))
	if term.StatusNamed(l.Status) >= model.StatusLosing {
		c.Failure = &junitCause{term.Printable(What(l)), l.Status, text}
		return c
	}
	c.SystemOut = text
	return c
}

// Markdown writes the result for a job's summary.
func Markdown(w io.Writer, r, before *api.Run) error {
	var b strings.Builder
	fmt.Fprintf(&b, "## tcpdiag: %s\n\n", markdown(r.Command))
	if r.Problem != "" {
		fmt.Fprintf(&b, "Nothing was observed: %s\n", markdown(r.Problem))
	}
	if len(r.Listeners) > 0 {
		b.WriteString("| port | status | cause | clients | served | turned away | packets dropped |\n|---|---|---|---|---|---|---|\n")
	}
	for i := range r.Listeners {
		l := &r.Listeners[i]
		offered, served, away := "n/a", "n/a", "n/a"
		if c := l.Clients; c != nil {
			offered, served, away = fmt.Sprint(c.Offered), fmt.Sprint(c.Served), fmt.Sprint(c.TurnedAway)
		}
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s | %s | %d |\n", l.Port, l.Status, markdown(l.Cause), offered, served, away, l.DroppedPackets)
	}
	for i := range r.Listeners {
		if l := &r.Listeners[i]; l.Status != model.StatusOK.String() || i == 0 {
			markdownListener(&b, l, ListenerOf(before, l))
		}
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("render: markdown: %w", err)
	}
	return nil
}

func markdownListener(b *strings.Builder, l, before *api.RunListener) {
	fmt.Fprintf(b, "\n### Port %d\n\n**What**: %s\n", l.Port, markdown(What(l)))
	if why := runWhy(l); why != "" {
		fmt.Fprintf(b, "\n**Why**: %s\n", markdown(why))
	}
	for i, do := range runDo(l) {
		if i == 0 {
			b.WriteString("\n**Do**:\n\n")
		}
		fmt.Fprintf(b, "%d. %s\n", i+1, markdown(do))
	}
	for i, row := range runFacts(l) {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "* %s: %s\n", row[0], markdown(row[1]))
	}
	for i, line := range Variation(l) {
		if i == 0 {
			fmt.Fprintf(b, "\n**The %d runs** (mean ± 95 %%):\n\n", len(l.Repeats))
		}
		fmt.Fprintf(b, "* %s\n", markdown(line))
	}
	if before == nil {
		return
	}
	b.WriteString("\n**Compared with the run before**:\n\n| | before | now | |\n|---|---|---|---|\n")
	for _, c := range Comparison(before, l) {
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", markdown(c.Name), markdown(c.Before), markdown(c.Now), markdown(c.Note))
	}
}

// markdown writes text that a stranger may have named: no markup, on one line.
func markdown(text string) string {
	return strings.NewReplacer("\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "|", "\\|", "\n", " ").Replace(term.Printable(text))
}
