package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxOpen is how many listeners are shown whole; the rest have a line each, and
// a page of their own behind it.
const maxOpen = 4

// choice is what a page shows: all listeners, or those that a permalink names, and how
// much of the past.
type choice struct {
	// port and process name the listeners: both stay when the server or its container is
	// started again. "" for all.
	port, process string
	// pod is "NAMESPACE/NAME": where it is known, the process says no more.
	pod string
	// listener and netns are those of links that were saved before.
	listener, netns string
	minutes         string // of the past; "" for as many as without
}

// choiceOf leaves out what makes no difference: pages that show the same have the same choice.
func choiceOf(q url.Values) choice {
	minutes := pastOf(q.Get("minutes")).minutes
	switch port, listener := q.Get("port"), q.Get("listener"); {
	case port != "":
		return choice{port: port, process: q.Get("process"), pod: q.Get("pod"), minutes: minutes}
	case listener != "":
		return choice{listener: listener, netns: q.Get("netns"), pod: q.Get("pod"), minutes: minutes}
	}
	return choice{minutes: minutes}
}

func (c choice) all() bool { return c.listener == "" && c.port == "" }

// includes also the port of a process on which nothing listens now.
func (c choice) includes(l *model.Listener) bool {
	switch {
	case c.all():
		return true
	case c.pod != "" && (l.Pod == nil || l.Pod.String() != c.pod):
		return false
	case c.port != "":
		return c.port == strconv.Itoa(int(l.Port)) && (c.process == "" || l.Process == nil || c.process == l.Process.Comm)
	}
	return c.listener == address(l) && (c.netns == "" || c.netns == strconv.FormatUint(l.ID.NetNS, 10))
}

// names is whether an incident at an address is of these listeners.
func (c choice) names(address string) bool {
	if c.port != "" {
		return strings.HasSuffix(address, ":"+c.port) || address == "port "+c.port
	}
	return c.all() || c.listener == address
}

func (c choice) text() string { return cmp.Or(c.listener, "port "+c.port) }

// query is the choice as a link has it.
func (c choice) query(minutes string) string {
	q := url.Values{}
	for name, value := range map[string]string{"port": c.port, "process": c.process, "pod": c.pod, "listener": c.listener, "netns": c.netns, "minutes": minutes} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q.Encode()
}

// view is everything that the page shows.
type view struct {
	Title    string
	Host     string
	Counts   string
	Age      string
	Clock    string
	Statuses []count
	Pasts    []pastLink
	Date     string
	Command  string // a report's own
	Kernel   string
	Notes    []string
	Cards    []card // whole
	Rows     []card // a line each
	Single   bool
	Missing  string // of a permalink's listener that is not there
	Version  string
	Report   bool // not live: attached to a ticket
	Stream   string
	// Incidents are the past ones, the latest first.
	Incidents []pastIncident
}

func newView(s *model.Snapshot, h *incident.History, c choice, version string, now time.Time) *view {
	v := newViewOf(s, h, c, version, now, maxOpen)
	for i := range v.Cards {
		v.Cards[i].Answer.Buttons = true
	}
	return v
}

// newViewOf shows the worst listeners whole, up to a number.
func newViewOf(s *model.Snapshot, h *incident.History, c choice, version string, now time.Time, whole int) *view {
	v := &view{Title: "tcpdiag", Single: !c.all(), Version: version, Stream: "api/v1/stream", Pasts: pastLinks(c)}
	if q := c.query(c.minutes); q != "" {
		v.Stream += "?" + q
	}
	if s == nil {
		v.Notes = []string{"The first scan is not done yet."}
		return v
	}
	v.Date = s.Time.UTC().Format("2006-01-02 15:04:05 UTC")
	v.Clock, v.Kernel = s.Time.UTC().Format("2006-01-02 15:04:05")+" UTC", model.Printable(s.Kernel)
	v.Host, v.Age = model.Printable(s.Host), phrase.Seconds(max(0, now.Sub(s.Time)))
	for _, n := range s.Notes {
		v.Notes = append(v.Notes, model.Printable(n))
	}
	if s.Omitted > 0 {
		v.Notes = append(v.Notes, phrase.Count(s.Omitted, "more listener")+" not watched (--max-listeners).")
	}
	v.list(s, h, c, whole)
	return v
}

// list fills in the listeners, the worst first.
func (v *view) list(s *model.Snapshot, h *incident.History, c choice, whole int) {
	worst := worstFirst(s.Listeners)
	v.Statuses = statusCounts(worst)
	v.Counts, v.Title = counts(worst), title(worst, v.Host)
	for i, l := range worst {
		if !c.includes(l) {
			continue
		}
		if len(v.Cards) == whole || i > 0 && l.Verdict.Status == model.StatusOK && len(worst) > whole && !v.Single {
			v.Rows = append(v.Rows, newRow(l))
			continue
		}
		one := newCard(l)
		one.Recent = Sentence(diagnosis.Quiet(l, s.Time))
		if h != nil {
			one.past = func() *charts { return newCharts(l, h.Before(l), pastOf(c.minutes)) }
		}
		v.Cards = append(v.Cards, one)
	}
	if len(v.Cards) == 0 && v.Single {
		v.Missing = model.Printable(c.text())
	}
}

// worstFirst orders by status, then by address: equal ones keep their places.
func worstFirst(in []model.Listener) []*model.Listener {
	out := model.ByAddress(in)
	slices.SortStableFunc(out, func(a, b *model.Listener) int { return cmp.Compare(b.Verdict.Status, a.Verdict.Status) })
	return out
}

// count is how many listeners have a status.
type count struct {
	N      int
	Status string
}

func statusCounts(listeners []*model.Listener) (out []count) {
	var n [model.NumStatuses]int
	for _, l := range listeners {
		n[l.Verdict.Status]++
	}
	for s := model.NumStatuses - 1; s >= 0; s-- {
		if n[s] > 0 {
			out = append(out, count{n[s], s.String()})
		}
	}
	return out
}

// counts is how many listeners have each status, the worst first.
func counts(listeners []*model.Listener) string {
	var n [model.NumStatuses]int
	for _, l := range listeners {
		n[l.Verdict.Status]++
	}
	var out []string
	for s := model.NumStatuses - 1; s >= 0; s-- {
		if n[s] > 0 {
			out = append(out, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	return strings.Join(out, " · ")
}

// title says how the worst listener stands: it is all that a tab shows.
func title(worst []*model.Listener, host string) string {
	at := "tcpdiag"
	if host != "" {
		at += " on " + host
	}
	if len(worst) == 0 {
		return at
	}
	w := worst[0]
	out := w.Verdict.Status.String()
	if w.Verdict.Status > model.StatusOK {
		out += " " + model.Printable(address(w))
		if w.Verdict.Cause != "" {
			out += " " + model.Printable(string(w.Verdict.Cause))
		}
	}
	return out + " - " + at
}
