package rig

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Said is what tcpdiag says of a port, or of all there are.
type Said struct {
	c        *Case
	Document *Document
	Listener *Listener // nil where there is no entry
	All      string    // the JSON
}

// Ask takes a snapshot of a port (0 is all there are).
func (c *Case) Ask(port int, args ...string) *Said {
	c.Helper()
	c.Wait(settle)
	args = append([]string{"snapshot", "--output", "json"}, args...)
	if port != 0 {
		args = append(args, "--port", strconv.Itoa(port))
	}
	ctx, cancel := context.WithTimeout(c.Ctx, time.Minute)
	defer cancel()
	a := Artifacts{Tcpdiag: c.Tcpdiag()}
	if len(c.Outside) > 0 {
		args = slices.Concat(c.Outside[1:], []string{a.Tcpdiag}, args)
		a.Tcpdiag = c.Outside[0]
	}
	out, errs, _, err := a.Run(ctx, c.Viewer, args...)
	c.Must(err)
	s, err := c.said(port, out)
	if err != nil {
		c.Must(fmt.Errorf("%w\n%s", err, errs))
	}
	return s
}

func (c *Case) said(port int, text []byte) (*Said, error) {
	d, err := Decode(text)
	if err != nil {
		return nil, err
	}
	s := &Said{c: c, Document: d, All: string(text)}
	c.last = s.All
	if port != 0 {
		s.Listener = d.On(port)
	}
	if s.Listener != nil {
		v := s.Listener.Verdict
		c.Row.Said = strings.TrimSpace(v.Status + " " + v.Cause + ": " + v.Summary)
		for _, step := range v.Answer.Do {
			c.Holds(step.To == "" || step.From != step.To, "advises the value in force: %s is %s", step.Setting, step.From)
		}
	}
	return s, nil
}

// AgentPort is where the agents of cases serve.
const AgentPort = 10889

// AskAgent is what an agent says of the port that has watched it for some seconds: at
// the latest after half a minute what is expected, as another cause of the same status
// is shown when it has lasted.
func (c *Case) AskAgent(port int, want ...string) (s *Said) {
	c.Helper()
	agent, err := Artifacts{Tcpdiag: c.Tcpdiag()}.StartAgentAs(c.Ctx, c.Viewer, AgentPort, "--port", strconv.Itoa(port))
	c.Must(err)
	defer func() { _, _ = agent.Stop() }()
	for deadline := time.Now().Add(30 * time.Second); ; c.Wait(time.Second) {
		c.Wait(5 * time.Second)
		text, err := agent.Get(c.Ctx, "/api/v1/snapshot")
		c.Must(err)
		s, err = c.said(port, text)
		c.Must(err)
		if s.Listener == nil {
			c.Must(c.Ctx.Err())
			continue
		}
		if v := s.Listener.Verdict; matches(v.Status, v.Cause, want) || time.Now().After(deadline) {
			return s
		}
	}
}

// Both asks a one-shot and an agent, and expects one of some verdicts of each.
func (c *Case) Both(port int, want ...string) *Said {
	c.Helper()
	s := c.Ask(port, "--interval", "2s").Verdict(want...)
	text := c.Row.Said
	a := c.AskAgent(port, want...).Verdict(want...)
	if got := c.Row.Said; got != text {
		c.Row.Said = text + " The agent: " + got
	}
	s.All += a.All
	return s
}

// Verdict expects one of some: "saturated max_threads", "ok", "* max_threads".
func (s *Said) Verdict(want ...string) *Said {
	s.c.Helper()
	if s.Listener == nil {
		s.c.Holds(false, "no entry")
		return s
	}
	v := s.Listener.Verdict
	if busy := Crowded(); v.Cause == "cpu_saturated" && busy != "" {
		s.c.Row.Skipped = "undecided, " + busy
		return s
	}
	s.c.Holds(matches(v.Status, v.Cause, want), "%q is none of %q", strings.TrimSpace(v.Status+" "+v.Cause), want)
	return s
}

// Cause is the verdict's, "" where there is none.
func (s *Said) Cause() string {
	if s.Listener == nil {
		return ""
	}
	return s.Listener.Verdict.Cause
}

func matches(status, cause string, want []string) bool {
	got := strings.TrimSpace(status + " " + cause)
	return slices.Contains(want, got) || slices.Contains(want, "* "+cause)
}

// Silent expects that something is not said.
func (s *Said) Silent(texts ...string) *Said {
	s.c.Helper()
	for _, t := range texts {
		s.c.Holds(!strings.Contains(s.All, t), "says %q", t)
	}
	return s
}

// Names expects that something is said.
func (s *Said) Names(texts ...string) *Said {
	s.c.Helper()
	for _, t := range texts {
		s.c.Holds(strings.Contains(s.All, t), "does not say %q", t)
	}
	return s
}

// Crowded says that the threads of any process here have to wait for a CPU: what
// lacks one because others have it is said to.
func Crowded() string {
	load := LoadAverage()
	if cpus := runtime.NumCPU(); load > 2*float64(cpus) {
		return fmt.Sprintf("the load average of this machine was %.0f on %d CPUs", load, cpus)
	}
	return ""
}

// LoadAverage is that of the last minute.
func LoadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	load, _ := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	return load
}
