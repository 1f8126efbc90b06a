package web

import (
	"fmt"
	"hash/fnv"
	"math"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// card is one listener on the page.
type card struct {
	ID        string // of its element
	Link      string // permalink, relative to the page
	Address   string
	Status    string
	Cause     string
	Who       string
	Summary   string
	Recent    string // what was lost before, where nothing is now
	Stages    []stage
	Room      string // heading of the clients' bar
	Clients   []part
	Attempts  string // heading of the outcomes' bar
	Outcomes  []part
	Answered  string // how long they had waited
	Waits     string // heading of the peers
	Peers     []peer
	Findings  []finding
	Answer    answerView
	Settings  []setting
	past      func() *charts
	Queue     string
	QueueFill int
}

// Charts are drawn where they are asked for: a page that is open has new ones with each column only.
func (c *card) Charts() *charts {
	if c.past == nil {
		return nil
	}
	return c.past()
}

// same reports whether two are drawn alike, but for their charts.
func (c *card) same(other *card) bool {
	a, b := *c, *other
	a.past, b.past = nil, nil
	return reflect.DeepEqual(a, b)
}

// stage is a limit and how much of it is used.
type stage struct {
	Name, Used, Share, Class, Note string
	Percent                        int
	Drops, Root                    bool // packets are dropped here; it is to be fixed first
}

// part is a share of the clients inside, as a piece of the bar.
type part struct {
	Name  string
	Class string
	N     int
	X, W  float64 // of 100
}

type finding struct{ Code, Advice, Evidence string }

// address names a listener for people: an expected port where nothing listens
// has none.
func address(l *model.Listener) string {
	if !l.Listening() {
		return fmt.Sprintf("port %d", l.Port)
	}
	return l.ID.String()
}

// elementID is a name for a listener that is safe in HTML.
func elementID(l *model.Listener) string {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %s", l.ID.NetNS, address(l))
	return "l" + strconv.FormatUint(h.Sum64(), 36)
}

func permalink(l *model.Listener) string {
	q := url.Values{"port": {strconv.Itoa(int(l.Port))}}
	if l.Pod != nil {
		q.Set("pod", l.Pod.String())
		return "?" + q.Encode()
	}
	switch {
	case l.Process != nil:
		q.Set("process", l.Process.Comm)
	case l.Last != nil && l.Last.PID != 0:
		q.Set("process", l.Last.Comm)
	}
	return "?" + q.Encode()
}

// newRow is what a line shows of a listener.
func newRow(l *model.Listener) card {
	c := card{
		ID: elementID(l), Link: permalink(l), Address: model.Printable(address(l)),
		Status: l.Verdict.Status.String(), Cause: model.Printable(string(l.Verdict.Cause)), Who: who(l),
	}
	if q := l.AcceptQueue; q != nil {
		c.Queue = phrase.Number(min(q.Length, q.Capacity())) + " of " + phrase.Number(q.Capacity())
		c.QueueFill = percent(q.Ratio())
	}
	return c
}

func newCard(l *model.Listener) card {
	c := newRow(l)
	c.Summary, c.Stages = model.Printable(l.Verdict.Summary), flow(l)
	c.Room, c.Clients = clients(l)
	c.Attempts, c.Outcomes = outcomes(l)
	if l.Losses != nil && l.Losses.Clients != nil {
		c.Answered = diagnosis.FirstBytes(l.Losses.Clients)
	}
	c.Waits, c.Peers = peers(l)
	c.Answer, c.Settings = newAnswer(l), settings(l)
	for _, f := range l.Verdict.Findings {
		c.Findings = append(c.Findings, finding{Code: model.Printable(f.Code), Advice: model.Printable(f.Advice), Evidence: model.Printable(f.Evidence)})
	}
	return c
}

// who is the process, the server and the framework, where known.
func who(l *model.Listener) string {
	var out []string
	if l.Pod != nil {
		out = append(out, podOf(l.Pod))
	}
	if p := l.Process; p != nil {
		out = append(out, fmt.Sprintf("%s %d", p.Comm, p.PID))
	}
	if last := l.Last; last != nil {
		if last.PID != 0 {
			out = append(out, fmt.Sprintf("was %s %d", last.Comm, last.PID))
		}
		if last.Pod != nil {
			out = append(out, podOf(last.Pod))
		}
		out = append(out, "down since "+last.Seen.UTC().Format("15:04:05 MST"))
	}
	if k := l.Connector; k != nil {
		if title := k.Kind().Title; title != "" {
			out = append(out, strings.TrimSpace(title+" "+k.Version))
		}
		if k.Framework == "spring-boot" {
			out = append(out, strings.TrimSpace("Spring Boot "+k.FrameworkVersion))
		}
	}
	return model.Printable(strings.Join(out, " · "))
}

func podOf(p *model.Pod) string {
	if p.Container == "" {
		return p.String()
	}
	return p.String() + " (" + p.Container + ")"
}

func percent(ratio float64) int { return max(0, min(100, int(100*ratio))) }

// stageName is a limit's name in plain words.
func stageName(name string) string {
	switch name {
	case "max_connections":
		return "connections"
	case "max_threads":
		return "threads"
	}
	return strings.ReplaceAll(name, "_", " ")
}

// stages are the limits from the client inwards.
func stages(l *model.Listener) []stage {
	var out []stage
	if b := l.SynBacklog; b != nil && b.Limit > 0 {
		out = append(out, newStage("SYN backlog", b.Length, b.Limit, false))
	}
	if q := l.AcceptQueue; q != nil && len(l.Limits) == 0 {
		out = append(out, newStage("accept queue", min(q.Length, q.Capacity()), q.Capacity(), q.Full()))
	}
	for _, m := range l.Limits {
		used := m.Used
		if m.Name == string(model.CauseAcceptQueue) { // for a moment it holds one more for each further processor
			used = min(used, m.Max)
		}
		out = append(out, newStage(stageName(m.Name), used, m.Max, m.Ratio >= 1))
	}
	return out
}

// newStage says full only where that is known: of the SYN backlog the counters
// decide, never its length.
func newStage(name string, used, most int, full bool) stage {
	ratio := float64(used) / float64(max(most, 1))
	s := stage{Name: name, Used: phrase.Number(used) + " / " + phrase.Number(most), Percent: percent(ratio), Class: "ok"}
	s.Share = fmt.Sprintf("%d %%", s.Percent)
	if used > 0 && s.Percent == 0 {
		s.Share = "<1 %"
	}
	switch {
	case full:
		s.Share, s.Class = "FULL", "losing"
	case ratio >= .8:
		s.Class = "warning"
	}
	return s
}

// clients are those inside by phase, from the thread outwards.
func clients(l *model.Listener) (string, []part) {
	c, q := l.Connections, l.AcceptQueue
	if c == nil || c.Partial || q == nil {
		return "", nil
	}
	inside := c.SlotsInUse() + q.Length
	heading := "Clients inside: " + phrase.Number(inside)
	room := inside
	if n := l.Capacity(); n != nil {
		heading, room = heading+" of "+phrase.Number(*n), max(inside, *n)
	}
	if c.Error > 0 {
		heading += phrase.Sprintf(" (each part ±%d)", c.Error)
	}
	parts := []part{
		{Name: "in service", Class: "service", N: c.Phases[model.InService]},
		{Name: "waiting for a thread", Class: "waiting", N: c.Phases[model.Waiting]},
		{Name: "sending", Class: "sending", N: c.Phases[model.Sending]},
		{Name: "idle", Class: "idle", N: c.Phases[model.Idle]},
		{Name: "streaming", Class: "sending", N: c.Phases[model.Streaming]},
		{Name: "closed by the client", Class: "closed", N: c.Phases[model.ClientClosed]},
		{Name: "unclassified", Class: "unclassified", N: c.Phases[model.Unclassified]},
		{Name: "reset", Class: "closed", N: c.SlotsInUse() - c.Accepted},
		{Name: "in the accept queue", Class: "queued", N: q.Length},
	}
	return heading, placed(parts, room)
}

// placed sets the pieces side by side and leaves out the empty ones.
func placed(parts []part, room int) []part {
	var out []part
	x := 0.0
	for _, p := range parts {
		if p.N > 0 {
			p.X, p.W = hundredth(x), hundredth(100*float64(p.N)/float64(room))
			x += p.W
			out = append(out, p)
		}
	}
	return out
}

// hundredth keeps two decimals: more are bytes that nobody sees.
func hundredth(v float64) float64 { return math.Round(100*v) / 100 }

// outcomes are the attempts to connect that were decided lately, by how they
// ended; nothing where handshakes are not followed. The addresses that they came
// from are personal data, and stay off the page.
func outcomes(l *model.Listener) (heading string, parts []part) {
	if l.Losses == nil || l.Losses.Clients == nil {
		return "", nil
	}
	c := l.Losses.Clients
	total := 0
	add := func(n uint64, name, class string) {
		parts = append(parts, part{Name: name, Class: class, N: int(n)})
		total += int(n)
	}
	for o := range model.NumClientOutcomes {
		add(c.Outcomes[o], strings.ReplaceAll(o.String(), "_", " "), outcomeClass(o))
	}
	add(c.Untracked, "not followed", "unclassified")
	add(uint64(c.Trying()), "still trying", "closed")
	heading = "Attempts to connect in " + phrase.Seconds(c.Observed) + ": " + phrase.Number(total)
	if n := c.Answers.Checks; n > 0 {
		heading += ", " + phrase.Number(n) + " of them checks"
	}
	return heading, placed(parts, total)
}

// outcomeClass: green got in, orange late, red not at all.
func outcomeClass(o model.ClientOutcome) string {
	switch o {
	case model.ClientConnected:
		return "service"
	case model.ClientDelayed:
		return "waiting"
	case model.ClientHalfOpen:
		return "idle"
	}
	return "queued"
}
