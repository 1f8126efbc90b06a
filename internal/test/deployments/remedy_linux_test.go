package deployments

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// remedy is a case whose advice is followed: the same load on the same server before
// and after.
type remedy struct {
	finding string // the code of the finding that has the advice
	load    string // in words
	world   world
	press   rig.Load
	tries   []try
	unrun   string // why it cannot be shown here: it has no row then
}

// world is what the server is started with, and in.
type world struct {
	embedded bool     // the program of its own, not the Spring Boot application
	settings []string // name=value
	jvm      rig.JVM
	sysctl   map[string]string
	started  func(*rig.Case, *rig.Server) // after the start, before the load
	flags    []string                     // of tcpdiag
}

// try is one thing that the advice says.
type try struct {
	says  string // what the advice matches; its groups are the values to set
	did   string // in words; %s are the groups
	apply func(*world, []string)
	act   func(*rig.Case, *rig.Server, []string) // on the running server; without it the server is started again
	press rig.Load                               // nil is the remedy's
	vain  bool                                   // the advice says that this would not help
	after string                                 // the verdict's cause afterwards, where it is not the loss that has to change
}

// with is the same with other values of some settings.
func (w world) with(settings ...string) world {
	w.settings = slices.Clone(w.settings)
	for _, s := range settings {
		name, _, _ := strings.Cut(s, "=")
		w.settings = slices.DeleteFunc(w.settings, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		w.settings = append(w.settings, s)
	}
	return w
}

// trial is what came of one run.
type trial struct {
	demo.Outcomes
	verdict, cause string
	steps          []rig.Step
}

func (t trial) String() string { return t.Outcomes.String() }

// follow runs a remedy before and after, and adds a line for each thing tried.
func follow(c *rig.Case, r remedy) []advised {
	defer c.SetSysctl(r.world.sysctl)()
	s := serve(c, r.world)
	before, advice := pressed(c, s, r.world, r.press, r.finding)
	if advice == "" {
		return []advised{{Finding: r.finding, Load: r.load, Before: before.String(), Verdict: before.verdict, Wrong: "there is no such finding"}}
	}
	var lines []advised
	for _, t := range r.tries {
		line := advised{Finding: r.finding, Load: r.load, Advice: advice, Before: before.String(), Verdict: before.verdict}
		attempt(c, r, t, s, before, &line)
		lines = append(lines, line)
	}
	return lines
}

// attempt follows one part of the advice.
func attempt(c *rig.Case, r remedy, t try, s *rig.Server, before trial, line *advised) {
	groups := regexp.MustCompile(t.says).FindStringSubmatch(line.Advice)
	if groups == nil {
		line.Wrong = fmt.Sprintf("the advice does not say %q", t.says)
		return
	}
	line.Did = described(t.did, groups[1:])
	world, press := r.world, r.press
	world.sysctl = maps.Clone(world.sysctl)
	if t.apply != nil {
		t.apply(&world, groups)
	}
	if t.press != nil {
		press = t.press
	}
	if t.act == nil {
		c.Unwind()
		undo := c.SetSysctl(world.sysctl)
		defer undo()
		s = serve(c, world)
	} else {
		t.act(c, s, groups)
	}
	after, _ := pressed(c, s, world, press, "")
	line.After, line.Then = after.String(), after.verdict
	line.judge(t, before, after)
	if changed := r.world.differs(world); len(changed) == 1 && t.press == nil {
		line.holdEffect(before.effect(changed[0]), after)
	}
}

// differs are the settings that another world has and this one has not.
func (w world) differs(other world) (changed []string) {
	for _, s := range other.settings {
		if !slices.Contains(w.settings, s) {
			changed = append(changed, s)
		}
	}
	return changed
}

// effect is what was said that a setting alone would do, "" where nothing was.
func (t trial) effect(setting string) string {
	for _, s := range t.steps {
		if s.Setting+"="+digits(s.To) == setting {
			return s.Effect
		}
	}
	return ""
}

func described(did string, groups []string) string {
	args := make([]any, 0, len(groups))
	for _, g := range groups[:min(len(groups), strings.Count(did, "%s"))] {
		args = append(args, g)
	}
	return fmt.Sprintf(did, args...)
}

// pressed loads the server, and asks tcpdiag meanwhile.
func pressed(c *rig.Case, s *rig.Server, w world, press rig.Load, finding string) (t trial, advice string) {
	done := make(chan demo.Outcomes, 1)
	go func() { done <- press(c, s) }()
	flags := w.flags
	if !slices.Contains(flags, "--interval") {
		flags = append([]string{"--interval", "2s"}, flags...)
	}
	said := c.Ask(rig.Port, flags...)
	t.Outcomes = <-done
	c.Must(t.LocalError)
	if said.Listener == nil {
		return t, ""
	}
	v := said.Listener.Verdict
	t.verdict, t.cause, t.steps = strings.TrimSpace(v.Status+" "+v.Cause), v.Cause, v.Answer.Do
	for _, f := range v.Findings {
		if f.Code == finding {
			return t, f.Advice
		}
	}
	return t, ""
}

// serve starts the server and has it compile what a request needs.
func serve(c *rig.Case, w world) *rig.Server {
	_ = os.Remove(filepath.Join(c.Dir, "truth.json"))
	for i, setting := range w.settings {
		w.settings[i] = strings.ReplaceAll(setting, "KEYSTORE", c.KeystoreFile())
	}
	var s *rig.Server
	if w.embedded {
		s = c.Embedded(w.jvm, append([]string{"protocol=HTTP/1.1"}, w.settings...)...)
	} else {
		s = c.Boot("none", w.jvm, w.settings...)
	}
	c.Until("the server listens", func() bool {
		if s.Ended() {
			c.Must(errors.New("the server has ended"))
		}
		return s.Says(0).LocalPort > 0 || c.Connects(rig.Port)
	})
	if c.Connects(rig.Port) {
		warm(c, w)
	}
	if w.started != nil {
		w.started(c, s)
	}
	return s
}

// warm has the server compile what a request needs; of what fails nothing is counted.
func warm(c *rig.Case, w world) {
	o := rig.Patient("/hello?ms=0")
	o.Clients, o.Rate = 20, 50
	if slices.ContainsFunc(w.settings, isTLS) {
		o.TLS = rig.Unverified()
	}
	rig.Burst(c.Ctx, o)
}

// TestAdvice follows all that is advised.
func TestAdvice(t *testing.T) {
	table := readAdvice()
	for _, r := range remedies() {
		if r.unrun != "" {
			continue
		}
		t.Run(r.load, func(t *testing.T) {
			c := rig.New(t, nil, r.load)
			var lines []advised
			t.Cleanup(func() { // not AtLast: the case ends, and another server starts, for each thing tried
				if lines == nil {
					lines = []advised{{Finding: r.finding, Load: r.load, Wrong: strings.Join(c.Row.Wrong, "; ")}}
				}
				table.put(t, r.load, lines)
			})
			for _, line := range follow(c, r) {
				lines = append(lines, line)
				c.Holds(line.Wrong == "", "%s", line)
			}
		})
	}
}
