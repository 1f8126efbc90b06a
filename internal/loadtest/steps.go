package loadtest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// limitChange is one of the limits, as it was in the run and as it would have served it.
type limitChange struct {
	limit    string // as in model.Step
	name     string // Tomcat's
	setting  advice.Setting
	found    *model.Setting[int]
	text     string // of its step, where the answer has none
	from, to int
}

// advise has the answer's steps say what would have served the whole run: those of the worst moment
// know nothing of it. What only finds something out, or is done elsewhere, stays as it is.
func (r *Result) advise() {
	if lossOf(r.Worst.Verdict.Cause) == model.CauseListenerClosed && r.Down > 0 && r.down == unknown {
		r.listensAgain()
	}
	if r.Settings == nil || r.Settings.Limits == nil || r.Latest.Connector.Processes > 1 {
		return
	}
	a := &r.Worst.Verdict.Answer
	var do []model.Step
	said := make(map[string]model.Step)
	changes := r.limitChanges()
	for _, step := range a.Do {
		if !slices.ContainsFunc(changes, func(c limitChange) bool { return c.limit == step.Limit }) {
			do = append(do, step)
		}
		said[step.Limit] = step
	}
	for _, c := range changes {
		if c.to <= c.from {
			continue
		}
		step, ok := said[c.limit] // what lowers it may be right of the worst moment, and is no text for what raises it
		if !ok || step.Lowers() {
			step = model.Step{Text: c.text, Setting: c.setting.Name(&r.Latest), File: advice.FoundIn(c.found), Limit: c.limit}
		}
		step.From, step.To, step.Effect = strconv.Itoa(c.from), strconv.Itoa(c.to), ""
		do = append(do, step)
		if not, _, _ := strings.Cut(a.Not, ":"); strings.Contains(not, c.name) || strings.Contains(not, step.Setting) {
			a.Not = "" // it does not help alone, and is part of what does
		}
	}
	a.Do = do
}

// listensAgain has the answer say what became of a port on which nothing listened for a while: of that moment it says
// what to do as long as nothing does.
func (r *Result) listensAgain() {
	a := &r.Worst.Verdict.Answer
	if r.Points[0].Down {
		a.Why = "The load began before the server listened."
		a.Do = []model.Step{advice.Action("Begin the load when the server answers")}
		return
	}
	a.Why = "The server stopped listening within the run, and listened again later: it was restarted, or it crashed and was started again."
	a.Do = []model.Step{
		advice.Action("Read the application's log of that time: why it stopped"),
		advice.Action("Before a planned stop, take the instance out of the load balancer, and wait until no new connections come"),
	}
}

func (r *Result) limitChanges() []limitChange {
	now, to, k := r.Settings.InForce(), r.Settings.Limits, r.Latest.Connector
	return []limitChange{
		{reading.StageMaxThreads, "maxThreads", advice.MaxThreadsSetting(), k.MaxThreads, "Raise the number of threads", now.Threads, to.Threads},
		{reading.StageMaxConnections, "maxConnections", advice.MaxConnectionsSetting(), k.MaxConnections, "Let more clients in", now.MaxConnections, to.MaxConnections},
		{reading.StageAcceptQueue, "acceptCount", advice.AcceptCountSetting(), k.AcceptCount, "Make the accept queue longer, and restart: listen() takes it once", now.AcceptCount, to.AcceptCount},
	}
}

// suffices reports whether limits are no more than those that were in force, so that it is not by them
// that clients were lost.
func (s *Settings) suffices() bool {
	now := s.InForce()
	return s.Limits != nil && !slices.ContainsFunc([][2]int{{s.Limits.Threads, now.Threads}, {s.Limits.MaxConnections, now.MaxConnections}, {s.Limits.AcceptCount, now.AcceptCount}},
		func(l [2]int) bool { return l[1] > 0 && l[0] > l[1] })
}
