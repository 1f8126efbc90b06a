package web

import (
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// answerView is a verdict's answer on the page.
type answerView struct {
	Headline       string // "Losing clients on :8080"
	At             string // ":8080", which is in it
	What, Why, Not string
	Do             []stepView
	Buttons        bool // to copy with; not on paper
}

// stepView is one action. Copy is what its button copies: a command, or a setting as it
// is written in a file of properties, or in server.xml; "" where there is nothing to copy.
type stepView struct {
	Text, Copy, Now, Effect string
}

func newAnswer(l *model.Listener) answerView {
	a := printableAnswer(l.Verdict.Answer)
	v := answerView{Headline: headline(l), At: model.Printable(shortAddress(l)), What: a.What, Why: a.Why, Not: a.Not}
	if v.What == "" { // a recording made before there were answers
		v.What = model.Printable(l.Verdict.Summary)
	}
	for _, s := range a.Do {
		v.Do = append(v.Do, newStep(s))
	}
	return v
}

func newStep(s model.Step) stepView {
	v := stepView{Text: s.Text, Copy: s.Command, Effect: s.Effect}
	if s.Setting == "" {
		return v
	}
	if v.Copy == "" {
		v.Copy = s.Setting + "=" + s.To
		if first := s.Setting[0]; !strings.Contains(s.Setting, ".") && 'a' <= first && first <= 'z' { // a Connector's attribute
			v.Copy = s.Setting + `="` + s.To + `"`
		}
		if strings.Contains(s.Setting, " ") { // no name that stands in a file
			v.Copy, v.Text = "", v.Text+": "+s.Setting+" "+s.To
		}
	}
	if s.From != "" {
		v.Now = "now " + s.From
	}
	if s.File != "" {
		v.Now = strings.TrimPrefix(v.Now+", from "+s.File, ", ")
	}
	return v
}

// headline is how a listener stands, in words.
func headline(l *model.Listener) string {
	at := model.Printable(shortAddress(l))
	switch l.Verdict.Status {
	case model.StatusLosing:
		return "Losing clients on " + at
	case model.StatusDown:
		return "Nothing listens on " + at
	case model.StatusSaturated:
		return "Clients wait on " + at
	case model.StatusWarning:
		if !l.Listening() {
			return "Nothing listens here on " + at
		}
		if l.Verdict.Cause.IsLimit() {
			return "Soon full: " + at
		}
		return "Warning: " + at
	}
	return "OK: " + at
}

// shortAddress is ":8080" where it listens on every address.
func shortAddress(l *model.Listener) string {
	if a := l.ID.Address; l.Listening() && l.ID.Device == "" && a.Addr().IsUnspecified() {
		return ":" + strconv.Itoa(int(a.Port()))
	}
	return address(l)
}

// flow are the stages as boxes, from the client inwards, with where packets are dropped
// and which is to be fixed first.
func flow(l *model.Listener) []stage {
	out := stages(l)
	dropping, root := stageTitle(diagnosis.DroppingStage(l)), stageTitle(diagnosis.RootStage(l))
	if p := diagnosis.BusiestPeer(l); p != nil && root == diagnosis.Backend {
		out = append(out, newStage(diagnosis.Backend, p.InFlight, p.Connections, p.InFlight >= p.Connections))
	}
	for i := range out {
		s := &out[i]
		s.Note = Sentence(diagnosis.StageNote(l, limitName(s.Name)))
		if s.Name == root && (s.Class == "losing" || s.Class == "warning") {
			s.Root = true
		}
		if s.Name == dropping { // it may have room at this moment, and is not green
			s.Drops, s.Class = true, "losing"
		}
	}
	return out
}

// stageTitle is a stage's name on the page; "" stays it.
func stageTitle(limit string) string {
	switch limit {
	case "":
		return ""
	case "syn_backlog":
		return "SYN backlog"
	}
	return stageName(limit)
}

// limitName is stageTitle the other way round.
func limitName(title string) string {
	for _, limit := range []string{"syn_backlog", "max_connections", "max_threads"} {
		if stageTitle(limit) == title {
			return limit
		}
	}
	return strings.ReplaceAll(title, " ", "_")
}

// settings are the limits in force and where they come from.
func settings(l *model.Listener) (out []setting) {
	k := l.Connector
	if k == nil {
		return nil
	}
	add := func(name string, s *model.Setting[int]) {
		if s == nil {
			return
		}
		value := phrase.Number(s.Value)
		if s.Value < 0 {
			value = "no limit"
		}
		out = append(out, setting{name, value, model.Printable(s.Origin()), model.Printable(s.Note)})
	}
	add("maxThreads", k.MaxThreads)
	add("maxConnections", k.MaxConnections)
	add("acceptCount", k.AcceptCount)
	if q := l.AcceptQueue; q != nil {
		out = append(out, setting{"backlog in force", phrase.Number(q.Limit), "the kernel (Send-Q)", ""})
	}
	return out
}

type setting struct{ Name, Value, From, Note string }
