package deployments

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// predictedCase is a load on a real server of which an agent says what an advised change would do.
type predictedCase struct {
	name  string
	world world
	load  demo.BurstOptions
	waves int           // how often the load comes, once where it is 0
	every time.Duration // from one time to the next
	users int           // who keep their connections, instead of load
	press rig.Load      // instead of load, of which it has the rate alone
	// beside is what happens while the clients come, each time; once is what does before the change alone.
	beside func(rig.Load) rig.Load
	once   func(*rig.Case, *rig.Server)
	none   string // why there is no prediction, where there is none
}

// counted is what clients counted, the share of them that had an answer, and whether nearly all that were let in
// waited for it.
type counted struct {
	text   string
	share  float64
	waited bool
}

// come lets the clients loose, and says what they counted.
func (o *predictedCase) come(c *rig.Case) counted {
	if o.users > 0 {
		return stay(c, o.users)
	}
	press := o.press
	if press == nil {
		press = func(c *rig.Case, _ *rig.Server) demo.Outcomes {
			return rig.Again(c.Ctx, max(1, o.waves), o.every, o.load)
		}
	}
	if o.beside != nil {
		press = o.beside(press)
	}
	out := press(c, nil)
	c.Must(out.LocalError)
	return counted{out.String(), float64(out.Of(demo.OK)) / float64(out.Total()), 10*out.Of(demo.ReadTimeout) <= out.Total()}
}

// stay are users that keep their connection, ask, and ask again after about a second, for
// half a minute; they wait for as long as it takes.
func stay(c *rig.Case, n int) counted {
	ctx, cancel := context.WithTimeout(c.Ctx, 30*time.Second)
	defer cancel()
	var requests, answered atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for had := false; ; had = true {
				if rig.Fetch(ctx, client, fmt.Sprintf("http://127.0.0.1:%d/hello?ms=5", rig.Port)) != nil {
					return
				}
				requests.Add(1)
				if !had {
					answered.Add(1)
				}
				rig.Wait(ctx, time.Duration(500+(i*37)%1000)*time.Millisecond)
			}
		})
	}
	all.Wait()
	return counted{fmt.Sprintf("%d of %d users had an answer, %d requests", answered.Load(), n, requests.Load()), float64(answered.Load()) / float64(n), true}
}

func boot(threads, connections, queue int) world {
	return world{settings: []string{
		fmt.Sprintf("server.tomcat.threads.max=%d", threads), fmt.Sprintf("server.tomcat.threads.min-spare=%d", threads),
		fmt.Sprintf("server.tomcat.max-connections=%d", connections), fmt.Sprintf("server.tomcat.accept-count=%d", queue),
	}}
}

// embedded is the program of its own, with the flags that tell an agent what it cannot find there.
func embedded(settings []string, flags ...string) world {
	return world{embedded: true, settings: append([]string{fmt.Sprint("port=", rig.Port)}, settings...), flags: append(flags, "--max-connections", "8192")}
}

// limited is the same with that many CPUs.
func (w world) limited(cpus string) world {
	w.started = func(c *rig.Case, s *rig.Server) { c.Quota(s, cpus) }
	return w
}

// and is the same with something else that is done when it has started.
func (w world) and(started func(*rig.Case, *rig.Server)) world {
	w.started = started
	return w
}

// asking has the clients ask another address.
func asking(address string, o demo.BurstOptions) demo.BurstOptions {
	o.Address = fmt.Sprintf("%s:%d", address, rig.Port)
	return o
}

// hoarding is a server whose heap is half full.
func hoarding(collector string) world {
	w := embedded([]string{"acceptCount=10"}, "--max-threads", "200").and(hoard)
	w.jvm.VM = heap(collector)
	return w
}

// fewPorts is a server that has 100 local ports to ask its backend with.
func fewPorts() world {
	w := embedded([]string{"maxThreads=60"}, "--max-threads", "60").and(func(c *rig.Case, _ *rig.Server) { portsFree(c); backend(c, "127.0.0.1", 100) })
	w.sysctl = map[string]string{"net.ipv4.ip_local_port_range": "40000 40099", "net.ipv4.tcp_tw_reuse": "0"}
	return w
}

// openLoad are clients that keep coming for a time, together those that come at the same moment.
func openLoad(rate float64, lasts time.Duration, path string, connect, read time.Duration) demo.BurstOptions {
	o := rig.Patient(path)
	o.Rate, o.Clients, o.ConnectTimeout, o.RequestTimeout = rate, int(rate*lasts.Seconds()), connect, read
	return o
}

func together(n int, path string, connect, read time.Duration) demo.BurstOptions {
	o := rig.Patient(path)
	o.Clients, o.ConnectTimeout, o.RequestTimeout = n, connect, read
	return o
}

// inTurn has them come one after the other: of SYNs that come before the first ACK a full queue drops none.
func inTurn(rate float64, o demo.BurstOptions) demo.BurstOptions {
	o.Rate = rate
	return o
}

func predictedCases() []predictedCase {
	const s = time.Second
	return []predictedCase{
		{name: "A9 scaled: 10 at once, threads, connections and queue of 1", world: boot(1, 1, 1), load: inTurn(100, together(10, "/hello?ms=3000", 2*s, 30*s))},
		{name: "C1: one thread, 3 requests/s of 1 s", world: boot(1, 8192, 100), load: openLoad(3, 60*s, "/hello?ms=1000", 2*s, 10*s)},
		{name: "C2: one connection, 5 requests/s of 500 ms", world: boot(200, 1, 100), load: openLoad(5, 60*s, "/hello?ms=500", 2*s, 10*s)},
		{name: "C3: one connection, a queue of 1, 5 requests/s of 500 ms", world: boot(200, 1, 1), load: openLoad(5, 60*s, "/hello?ms=500", 900*time.Millisecond, 5*s)},
		{name: "C4: 2 threads, 3 connections, a queue of 1, 8 requests/s of 1 s", world: boot(2, 3, 1), load: openLoad(8, 60*s, "/hello?ms=1000", 2*s, 10*s)},
		{name: "C5 scaled: 20 threads, 400 at once of 2 s, who wait 20 s", world: boot(20, 8192, 100), load: together(400, "/hello?ms=2000", 5*s, 20*s)},
		{name: "B1 scaled: files for some 56 connections, 30 requests/s of 2.5 s", world: world{jvm: rig.LimitedFiles("70")}, load: openLoad(30, 60*s, "/hello?ms=2500", 2*s, 10*s)},
		{
			name:  "D2 scaled: a limit of 0.1 CPUs, 20 requests/s that each take 10 ms of it",
			world: embedded([]string{"maxThreads=20", "minSpareThreads=20"}, "--max-threads", "20").limited("0.1"),
			load:  openLoad(20, 60*s, "/?burn=10", 900*time.Millisecond, 3*s),
		},
		{
			name:  "I4: 80 at once every second, a queue of 10",
			world: embedded([]string{"acceptCount=10", "maxThreads=50", "minSpareThreads=50"}, "--max-threads", "50"),
			load:  together(80, "/?ms=5", 900*time.Millisecond, 3*s), waves: 30, every: s,
		},
		{
			name:  "A8 scaled: 80 at once every second, a queue of 500 that net.core.somaxconn holds at 1",
			world: world{settings: []string{"server.tomcat.accept-count=500"}, sysctl: map[string]string{"net.core.somaxconn": "1"}},
			load:  together(80, "/hello?ms=5", 900*time.Millisecond, 3*s), waves: 30, every: s,
		},
		{
			name:  "F2: 20 requests/s beside a flood of SYNs, a queue of 16, no SYN cookies",
			world: world{settings: []string{"server.tomcat.accept-count=16"}, sysctl: map[string]string{"net.ipv4.tcp_syncookies": "0", "net.ipv4.tcp_max_syn_backlog": "64"}},
			load:  openLoad(20, 20*s, "/hello", 900*time.Millisecond, 3*s), beside: flooded,
		},
		{
			name:  "20 requests/s of 300 ms; 4 threads, a queue of 4 in front of them",
			world: world{settings: []string{"server.tomcat.threads.max=4", "server.tomcat.threads.min-spare=4", "server.tomcat.threads.max-queue-capacity=4"}},
			load:  openLoad(20, 60*s, "/hello?ms=300", 900*time.Millisecond, 3*s),
		},
		{
			name:  "10 requests/s to the interface's address; address=127.0.0.1",
			world: embedded([]string{"address=127.0.0.1"}, "--max-threads", "200").and(func(c *rig.Case, _ *rig.Server) { c.Address(here) }),
			load:  asking(here, openLoad(10, 30*s, "/", 900*time.Millisecond, 3*s)),
		},
		{
			name: "10 requests/s; a netfilter rule drops each second SYN",
			world: embedded(nil, "--max-threads", "200").and(func(c *rig.Case, _ *rig.Server) {
				nft(c, `table inet firewall { chain input { type filter hook input priority 0; tcp dport 8080 tcp flags syn numgen inc mod 2 == 0 counter drop; }; }`)
			}),
			load: openLoad(10, 40*s, "/", 900*time.Millisecond, 3*s),
		},
		{
			name:  "20 requests/s; the process is stopped after 25 s",
			world: embedded(nil, "--max-threads", "200"),
			load:  openLoad(20, 60*s, "/?ms=20", 900*time.Millisecond, 3*s),
			once:  func(c *rig.Case, p *rig.Server) { c.Wait(25 * s); _ = syscall.Kill(p.PID, syscall.SIGSTOP) },
		},
		{
			name:  "F4: 150 requests/s beside a full collection of 2^24 objects every 1.5 s (SerialGC), a queue of 10",
			world: hoarding("SerialGC"), load: openLoad(150, 45*s, "/?ms=5", 900*time.Millisecond, 3*s), beside: collecting(30),
		},
		{
			name:  "D2: a sixteenth of one CPU, of which others want the rest, 20 requests/s that each take 10 ms of it",
			world: embedded([]string{"maxThreads=20", "minSpareThreads=20"}, "--max-threads", "20").and(func(c *rig.Case, s *rig.Server) { c.CrowdedOut(s) }),
			load:  openLoad(20, 60*s, "/?burn=10", 900*time.Millisecond, 3*s),
		},
		{
			name:  "B3: 60 requests/s, each of which opens a connection to a backend; 100 local ports",
			world: fewPorts(), load: demo.BurstOptions{Rate: 60}, press: elsewhere(60, 30*s, fmt.Sprintf("/?to=%d&timeout=10000", rig.BackendPort)),
		},
		{name: "E2: 150 users who keep their connections; 100 connections, a queue of 50", world: boot(20, 100, 50), users: 150},
		{name: "I1: 60 at once of 2 s, who wait 12 s; 4 threads, 20 connections, a queue of 5", world: boot(4, 20, 5), load: together(60, "/hello?ms=2000", 12*s, 12*s)},
		{name: "10 requests/s of 1 s; 4 threads, 20 connections, a queue of 5", world: boot(4, 20, 5), load: openLoad(10, 60*s, "/hello?ms=1000", 2*s, 8*s)},
	}
}

// within is how far what is said may be from what comes of it, as a share of the clients.
const within = .2

// workedOn is for how long the agent is asked after the clients have gone: the server works on the requests of
// those that gave up.
const workedOn = 8 * time.Second

// predictions are what an agent said second by second while a load was on.
type predictions struct {
	seconds, told int // in trouble, and those of them with a prediction of the first change advised
	said          []prediction
}

// prediction is a first change with its effect, and in how many seconds it was said.
type prediction struct {
	rig.Step
	cause   string
	seconds int
}

// what is changed: a setting, else what the step says.
func (p *prediction) what() string { return cmp.Or(p.Setting, p.Command, p.Text) }

func (p *prediction) String() string {
	if p.To == "" {
		return p.what() + ": " + p.Effect
	}
	return p.what() + " " + p.From + " → " + p.To + ": " + p.Effect
}

func (p *predictions) hear(l *rig.Listener) {
	p.seconds++
	i := slices.IndexFunc(l.Verdict.Answer.Do, func(s rig.Step) bool { return s.Setting != "" || s.Effect != "" })
	if i < 0 || l.Verdict.Answer.Do[i].Effect == "" {
		return
	}
	p.told++
	step := l.Verdict.Answer.Do[i]
	if i := slices.IndexFunc(p.said, func(o prediction) bool { return o.Step == step && o.cause == l.Verdict.Cause }); i >= 0 {
		p.said[i].seconds++
		return
	}
	p.said = append(p.said, prediction{step, l.Verdict.Cause, 1})
}

// made is the change that is made: the one that was advised for most of the time, with what was said of it last.
func (p *predictions) made() (made prediction) {
	seconds := make(map[[2]string]int)
	most := 0
	for _, s := range p.said {
		change := [2]string{s.what(), s.To}
		if seconds[change] += s.seconds; seconds[change] >= most {
			most, made = seconds[change], s
		}
	}
	return made
}

// change makes a change: to the server as it runs, or to one that is started again.
func (o *predictedCase) change(c *rig.Case, s *rig.Server, step *prediction) {
	w := o.world
	if step.cause == "jvm_pause" && step.Command == "" {
		w.jvm.VM = heap("ZGC")
		c.Unwind()
		serve(c, w)
		return
	}
	if step.Setting == "" {
		c.Do(strings.Fields(strings.Replace(step.Command, "nft -a list", "nft flush", 1))...) // the rule is all that there is
		workedOff(c)
		return
	}
	switch step.Setting {
	case "CPU limit": // of a server that is warm, once it has worked off what waited
		c.Quota(s, "4")
		workedOff(c)
		c.Quota(s, step.To)
		return
	case "CPUs that it gets":
		c.Crowded(s, "0.9")
		workedOff(c)
		c.Crowded(s, step.To)
		return
	case "address":
		c.Unwind()
		c.Address(step.To)
		serve(c, w.with("address="+step.To))
		return
	case "net.ipv4.tcp_syncookies", "net.ipv4.tcp_tw_reuse":
		c.SetSysctl(map[string]string{step.Setting: step.To})
		return
	case "net.core.somaxconn":
		c.SetSysctl(map[string]string{step.Setting: digits(step.To)})
	case "LimitNOFILE":
		w.jvm = rig.LimitedFiles(digits(step.To))
	default:
		w = w.with(step.Setting + "=" + digits(step.To))
	}
	c.Unwind()
	serve(c, w)
}

// workedOff waits until nothing waits any more.
func workedOff(c *rig.Case) {
	c.Until("nothing waits any more", func() bool {
		out := rig.Burst(c.Ctx, together(1, "/?ms=0", rig.ToConnect, rig.ToAnswer))
		return out.Of(demo.OK) == 1 && out.Percentile(1) < 100*time.Millisecond
	})
}

// watched runs the load beside an agent.
func (o *predictedCase) watched(c *rig.Case, s *rig.Server) (out counted, said predictions) {
	agent, err := rig.Artifacts{Tcpdiag: c.Tcpdiag()}.StartAgent(c.Ctx, rig.AgentPort, append([]string{"--port", strconv.Itoa(rig.Port)}, o.world.flags...)...)
	c.Must(err)
	defer func() { _, _ = agent.Stop() }()
	c.Until("an agent that has been there before", func() bool {
		c.Wait(time.Second)
		doc, err := agent.Snapshot(c.Ctx)
		c.Must(err)
		l := doc.On(rig.Port)
		return l != nil && l.Connector != nil && l.Connector.MaxThreads != nil && l.Connector.MaxConnections != nil
	})
	done := make(chan counted, 1)
	go func() { done <- o.come(c) }()
	if o.once != nil {
		go o.once(c, s)
	}
	var over <-chan time.Time
	for {
		select {
		case out = <-done:
			done, over = nil, time.After(workedOn)
		case <-over:
			return out, said
		case <-time.After(time.Second):
		}
		doc, err := agent.Snapshot(c.Ctx)
		c.Must(err)
		l := doc.On(rig.Port)
		if l == nil || l.Verdict.Status != "losing" && l.Verdict.Status != "saturated" && l.Verdict.Cause != "ephemeral_ports" {
			continue
		}
		said.hear(l)
	}
}

const predictedHead = `# Predictions

Written by ` + "`make prove PROOF=predictions`" + `: what an agent said that the first change advised would do, to a load on a
real Tomcat, and what became of the same clients when that was done and nothing else. A pool before PostgreSQL is among
[what threads wait for](waits.md).

| load | cause | its clients | seconds with a prediction | first step: predicted | measured: the same clients, with that step alone | |
|---|---|---|---|---|---|---|
`

// TestPredictions has agents watch overloads of a real Tomcat, does the first step of which
// they say what it would do, alone, and lets the same clients come again.
func TestPredictions(t *testing.T) {
	rig.Cases(t, "docs/results/predictions.md", predictedHead, predictedCases(), func(o predictedCase) (string, func(*rig.Case)) {
		return o.name, func(c *rig.Case) {
			defer c.SetSysctl(o.world.sysctl)()
			s := serve(c, o.world)
			before, heard := o.watched(c, s)
			step, told := heard.made(), fmt.Sprintf("%d of %d", heard.told, heard.seconds)
			c.Row.Cells = []string{step.cause, before.text, told, "none", "", ""}
			c.Holds(o.none == "" == (step.Effect != ""), "there should be a prediction, or none: %s", o.none)
			if step.Effect != "" {
				o.change(c, s, &step)
				after := o.come(c)
				c.Row.Cells = []string{step.cause, before.text, told, step.String(), after.text, ""}
				heard.hold(c, &step, after, o.load.Rate)
			}
			c.Row.Cells[5] = c.Row.Result()
			c.Log(c.Row.Cells)
		}
	})
}

// hold compares with what came of it all that was said of the change that was made, not the last of it alone. What
// is said of clients that wait as long as it takes is held against those that did.
func (p *predictions) hold(c *rig.Case, made *prediction, after counted, rate float64) {
	compared := 0
	for _, s := range p.said {
		c.Logf("%d s: %s", s.seconds, &s)
		if s.what() != made.what() || s.To != made.To || !after.waited && strings.HasPrefix(s.Effect, "for clients that wait") {
			continue
		}
		compared++
		said, known := servedShare(s.Effect)
		if n := 0.; !known && rate > 0 { // each needs a connection
			_, err := fmt.Sscanf(s.Effect, "there are ports for %f new connections", &n)
			said, known = min(1, n/rate), err == nil
		}
		c.Holds(known, "%q says nothing of the clients", s.Effect)
		c.Holds(math.Abs(said-after.share) <= within, "%.0f %% were answered, %.0f %% were said to be", 100*after.share, 100*said)
	}
	c.Holds(compared > 0, "all was said of clients that wait, and these left")
}

// servedShare is what share of the clients a prediction says will be served, or inside.
func servedShare(effect string) (share float64, known bool) {
	then, _, _ := strings.Cut(effect, "; now ")
	var lost, most, all int
	switch {
	case strings.Contains(then, "all are served"), strings.Contains(then, "all that answer are served"), strings.Contains(then, "inside"),
		strings.Contains(then, "all are let in"), strings.Contains(then, "who asks there is"):
		return 1, true
	case regexp.MustCompile(`\d+ % are turned away|: \d+ %`).MatchString(then):
		_, err := fmt.Sscanf(regexp.MustCompile(`\d+ %`).FindString(then), "%d", &lost)
		return 1 - float64(lost)/100, err == nil
	case regexp.MustCompile(`\d+ to \d+ of \d+`).MatchString(then): // a range is taken by its middle
		_, err := fmt.Sscanf(regexp.MustCompile(`\d+ to \d+ of \d+`).FindString(then), "%d to %d of %d", &lost, &most, &all)
		return 1 - float64(lost+most)/2/float64(max(1, all)), err == nil
	}
	_, err := fmt.Sscanf(regexp.MustCompile(`\d+ of \d+`).FindString(then), "%d of %d", &lost, &all)
	return 1 - float64(lost)/float64(max(1, all)), err == nil
}
