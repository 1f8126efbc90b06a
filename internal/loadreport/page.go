// Package loadreport draws the result of a load test as one page: drawn once, complete without
// a script, nothing loaded from elsewhere. It is pure: a document goes in, a page comes out.
//
// Start at page.go; chart.go turns the course of a run into shapes.
package loadreport

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/runreport"
	"github.com/tcpdiag/tcpdiag/internal/web"
)

//go:embed assets
var assets embed.FS

// Report is what the page is made of.
type Report struct {
	Run     *api.Run
	Before  *api.Run // to compare with; nil without
	Command []string // with its arguments: the document has only its name
}

// page is what the template shows.
type page struct {
	Title     string
	Style     template.CSS
	Command   string
	Facts     []string // about the run: when, how long, where
	Problem   string
	Listeners []listener
	Omitted   int
	Missing   []api.Unavailable
	Footer    string
}

// listener is one of the run.
type listener struct {
	Status, Cause, Headline, Who string
	Said                         runreport.Said
	Outcomes                     []part // what became of its clients
	Charts                       []chart
	Runs                         []string
	Changes                      []runreport.Change
	Settings                     []settingView
	SettingsNote                 string // what is proposed, or why nothing is
	Proposed                     bool
	Rows                         []row // the course as a table
	RowSeconds                   string
}

// part of the clients, with its share of the bar in hundredths.
type part struct{ Name, Class, N, X, W string }

// settingView is a setting in the run, and what would have served its load and twice that.
type settingView struct {
	Name, Value, Source, Note string
	Smallest, Twice           string
	Raised                    bool
}

// row is a part of the course in numbers, for who does not see the charts.
type row struct{ At, Offered, Served, TurnedAway, Queue, Connections, Busy, FirstByte, Status, Cause string }

// maxRows bounds the table: a longer course is shown at fewer moments.
const maxRows = 120

// Write writes the page.
func Write(w io.Writer, r Report) error {
	text, err := assets.ReadFile("assets/report.html")
	if err != nil {
		return fmt.Errorf("loadreport: %w", err)
	}
	sheet, err := assets.ReadFile("assets/report.css")
	if err != nil {
		return fmt.Errorf("loadreport: %w", err)
	}
	t, err := template.New("report").Funcs(template.FuncMap{"sentence": web.Sentence}).Parse(string(text))
	if err != nil {
		return fmt.Errorf("loadreport: %w", err)
	}
	style, err := web.Style()
	if err != nil {
		return err
	}
	p := newPage(r)
	p.Style = template.CSS(style + string(sheet))
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("loadreport: %w", err)
	}
	if _, err := io.WriteString(w, web.Visible(b.String())); err != nil {
		return fmt.Errorf("loadreport: %w", err)
	}
	return nil
}

func newPage(r Report) *page {
	run := r.Run
	p := &page{Command: commandLine(r.Command), Problem: run.Problem, Omitted: run.Omitted, Missing: run.Unavailable}
	if p.Command == "" {
		p.Command = run.Command
	}
	p.Title = "Load test: " + run.Command
	if len(run.Listeners) > 0 {
		l := &run.Listeners[0]
		p.Title = strings.TrimSpace(fmt.Sprintf("%s :%d %s", l.Status, l.Port, l.Cause)) + " - " + run.Command
	}
	if !run.Began.IsZero() {
		p.Facts = append(p.Facts, run.Began.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	p.Facts = append(p.Facts, "ran for "+seconds(run.Seconds), "exit code "+strconv.Itoa(run.ExitCode))
	if run.Repeated > 1 {
		p.Facts = append(p.Facts, fmt.Sprintf("the worst of %d runs, run %d", run.Repeated, run.Shown))
	}
	for _, l := range run.Listeners {
		p.Listeners = append(p.Listeners, newListener(&l, runreport.ListenerOf(r.Before, &l), run.SLOSeconds))
	}
	p.Footer = "Observed by tcpdiag " + run.Version
	if run.Host != "" {
		p.Footer += " on " + run.Host
	}
	if run.Kernel != "" {
		p.Footer += ", Linux " + run.Kernel
	}
	return p
}

// commandLine is the command as it would be typed.
func commandLine(args []string) string {
	var out []string
	for _, a := range args {
		plain := a != "" && !strings.ContainsFunc(a, func(r rune) bool {
			return !strings.ContainsRune("%+,-./:=@_", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
		})
		if !plain {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		out = append(out, model.Printable(a))
	}
	return strings.Join(out, " ")
}

func newListener(l, before *api.RunListener, slo float64) listener {
	out := listener{
		Status: l.Status, Cause: l.Cause, Headline: headline(l), Who: strings.TrimSpace(l.Address + " " + l.Process),
		Said: runreport.Answer(l), Runs: runreport.Variation(l),
	}
	if l.PID != 0 {
		out.Who += " " + strconv.Itoa(l.PID)
	}
	out.Outcomes = outcomes(l.Clients)
	if before != nil {
		out.Changes = runreport.Comparison(before, l)
	}
	out.Settings, out.Proposed = settings(l)
	out.SettingsNote = runreport.SettingsNote(l)
	out.Said.Facts = slices.DeleteFunc(out.Said.Facts, func(row [2]string) bool { return row[0] == "Settings" }) // the table has them
	if len(l.Course.Points) > 0 {
		out.Charts = charts(l, before, slo)
		out.Rows, out.RowSeconds = rows(l)
	}
	return out
}

func headline(l *api.RunListener) string {
	at := ":" + strconv.Itoa(int(l.Port))
	switch l.Status {
	case model.StatusLosing.String():
		if l.Clients.NoneLost() {
			return "Dropped packets of clients on " + at
		}
		return "Lost clients on " + at
	case model.StatusDown.String():
		if l.DownSeconds > 0 {
			at += " for " + seconds(l.DownSeconds)
		}
		return "Nothing listened on " + at
	case model.StatusSaturated.String():
		return "Clients waited on " + at
	case model.StatusWarning.String():
		if model.Cause(l.Cause).IsLimit() {
			return "Nearly full: " + at
		}
		return "Warning: " + at
	}
	return "OK: " + at
}

// charts are those of the course that show anything, from the client inwards.
func charts(l, before *api.RunListener, slo float64) (out []chart) {
	c := newCourse(l, before)
	add := func(one chart, worth bool) {
		if worth {
			out = append(out, one)
		}
	}
	rate := func(of func(p *api.RunPoint) *uint64, width float64) func(p *api.RunPoint) float64 {
		return func(p *api.RunPoint) float64 { return number(of(p)) / width }
	}
	offered := func(p *api.RunPoint) *uint64 { return p.Offered }
	served := func(p *api.RunPoint) *uint64 { return p.Served }
	keepAlive := l.Knee != nil && l.Knee.KeepAlive
	if !keepAlive && slices.ContainsFunc(c.Points, func(p api.RunPoint) bool { return p.Answered != nil }) {
		served = func(p *api.RunPoint) *uint64 { return p.Answered } // when it was, and not when it was sure that it would be
	}
	clients := []series{
		{class: "service", name: "served", of: rate(served, c.WidthSeconds)},
		{class: "queued", name: "turned away", of: rate(func(p *api.RunPoint) *uint64 { return p.TurnedAway }, c.WidthSeconds)},
		{class: "offered", name: "offered", of: rate(offered, c.WidthSeconds), line: true},
	}
	latency := []series{
		{class: "waiting", name: "99 of 100 within", of: func(p *api.RunPoint) float64 {
			return firstByte(p, func(y *api.RunLatency) *float64 { return y.P99Seconds })
		}},
		{class: "queue", name: "half of them within", of: func(p *api.RunPoint) float64 {
			return firstByte(p, func(y *api.RunLatency) *float64 { return y.P50Seconds })
		}},
	}
	queue := []series{{class: "queue", name: "longest in each second", of: func(p *api.RunPoint) float64 { return float64(p.AcceptQueue) }}}
	inside := []series{
		{class: "idle", name: "connections", of: func(p *api.RunPoint) float64 { return number(p.Connections) }},
		{class: "waiting", name: "of these with a request that no thread has taken", of: func(p *api.RunPoint) float64 { return number(p.Waiting) }},
	}
	busy := []series{{class: "service", name: "requests in service", of: func(p *api.RunPoint) float64 { return number(p.InService) }}}
	if before != nil {
		clients = append(clients, series{class: "before", name: "offered before", of: rate(offered, c.before.WidthSeconds), line: true, past: true})
		clients = append(clients, series{class: "before lost", name: "turned away before", of: rate(func(p *api.RunPoint) *uint64 { return p.TurnedAway }, c.before.WidthSeconds), line: true, past: true})
		for _, all := range []*[]series{&latency, &queue, &inside, &busy} {
			one := (*all)[0]
			one.class, one.name, one.line, one.past = "before", one.name+", before", true, true
			*all = append(*all, one)
		}
	}
	knee := 0.
	if k := l.Knee; k != nil && k.Reached && k.AtOnce == nil && !keepAlive {
		knee = k.ClientsPerSecond
	}
	add(c.chart("clients per second", "offered: began to connect; served: had their answer; turned away: when that was known", knee, "served all up to "+phrase.Decimal(knee)+"/s", clients...))
	add(c.chart("packets dropped per second", "packets, not clients: each client repeats its own", 0, "", series{class: "losing", name: "dropped", of: func(p *api.RunPoint) float64 { return float64(p.Dropped) / c.WidthSeconds }}))
	add(c.chart("seconds to the first byte", "by the kernel, from the client's first SYN on, of one client in sixteen", slo, "--slo "+seconds(slo), latency...))
	add(c.chart("accept queue", "connections that the kernel has made and the server has not accepted", inForce(l, "backlog in force")+1, "its room: "+phrase.Number(int(inForce(l, "backlog in force"))+1), queue...))
	add(c.chart("connections", "accepted by the server", inForce(l, "maxConnections"), "maxConnections: "+phrase.Number(int(inForce(l, "maxConnections"))), inside...))
	add(c.chart("threads", "requests in service", inForce(l, "maxThreads"), "maxThreads: "+phrase.Number(int(inForce(l, "maxThreads"))), busy...))
	return out
}

func firstByte(p *api.RunPoint, of func(*api.RunLatency) *float64) float64 {
	if p.FirstByte == nil || of(p.FirstByte) == nil {
		return unknown
	}
	return *of(p.FirstByte)
}

// inForce is a limit's value, 0 where there is none.
func inForce(l *api.RunListener, name string) float64 {
	for _, s := range l.InForce {
		if s.Name == name {
			return float64(max(0, s.Value))
		}
	}
	return 0
}

// rows are the course in numbers, at no more than maxRows moments.
func rows(l *api.RunListener) (out []row, width string) {
	points := l.Course.Points
	every := 1 + (len(points)-1)/maxRows
	for i := 0; i < len(points); i += every {
		p := &points[i]
		r := row{
			At: seconds(p.T), Offered: count(p.Offered), Served: count(p.Served), TurnedAway: count(p.TurnedAway), Queue: phrase.Number(p.AcceptQueue),
			Connections: count(p.Connections), Busy: count(p.InService), FirstByte: "n/a", Status: p.Status, Cause: p.Cause,
		}
		if s := firstByte(p, func(y *api.RunLatency) *float64 { return y.P99Seconds }); s >= 0 {
			r.FirstByte = seconds(s)
		}
		out = append(out, r)
	}
	return out, seconds(l.Course.WidthSeconds)
}

func count[T int | uint64](n *T) string {
	if n == nil {
		return "n/a"
	}
	return phrase.Number(*n)
}

func seconds(s float64) string { return phrase.Seconds(time.Duration(s * float64(time.Second))) }
