package draws

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The times of a draw: the fault begins when the clients have come, tcpdiag is asked a
// moment later, and the clients come until it has answered.
const (
	untilFault = time.Second
	untilAsked = 2200 * time.Millisecond

	// forgotten is how long before a draw the last client of the one before it failed, the
	// last packet of it was dropped and the last request of one that had left was done with.
	// It is the time of which an agent speaks; toBeQuiet is how long it has beside it to say that
	// nothing is lost any more.
	forgotten = 10 * time.Second
	toBeQuiet = 30 * time.Second
	// toBeDecided is longer than any client takes that has left: one of which nothing came but its ACK for 70 s
	// may have been let in.
	toBeDecided = 75 * time.Second
	// settled is how long an agent has to show another cause of the same status.
	settled = 7 * time.Second
)

// watching is what is observed, meanwhile.
type watching struct {
	mu sync.Mutex
	observed
}

// run is a draw's life.
func (w *world) run(d draw) outcome {
	f := d.faultOf()
	if w.clear != nil {
		w.clear()
	}
	w.clear, w.draw = nil, d
	if f.fresh {
		w.start()
	}
	w.quiet()
	w.said = w.count()
	dropped := overflows()
	if f.before != nil {
		f.before(w)
	}
	account, seen := new(account), &watching{observed: observed{accepting: true, reading: true, allBusy: true}}
	w.account = account
	ctx, cancel := context.WithCancel(w.Ctx)
	var users sync.WaitGroup
	w.come(ctx, &users, account)
	w.Wait(untilFault)
	before := 0
	if f.begin != nil {
		f.begin(w)
		before = throttled(w.s.PID)
	}
	w.Wait(untilAsked - untilFault)
	watch, watched := context.WithCancel(w.Ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { w.observe(watch, seen) })
	from := time.Now()
	s := w.ask(d.viewer)
	to := time.Now()
	a, then := w.agentSays(seen, account, dropped)
	watched()
	watcher.Wait()
	seen.failed = account.failures(from.Add(300*time.Millisecond), from.Add(asked))
	seen.known = true
	seen.ever = account.failures(time.Time{}, to)
	seen.throttled, seen.overflows = throttled(w.s.PID) > before, overflows()-dropped
	seen.outOfFiles = seen.outOfFiles && d.fault == "descriptors"
	if f.spoils {
		w.roles(&seen.observed)
	}
	if f.end != nil {
		f.end(w)
	}
	cancel()
	users.Wait()
	w.account = nil
	ended := time.Now()
	then.known, then.throttled, then.outOfFiles = true, seen.throttled, seen.outOfFiles
	then.accepting, then.reading, then.overflows = seen.accepting, seen.reading, seen.overflows
	o := w.outcome(seen.observed, then, s, a, account, to.Sub(from))
	w.failed = account.last()
	if overflows() > dropped {
		w.failed = ended
	}
	w.unwind()
	failed := account.failures(time.Time{}, ended) > 0
	w.clear = func() {
		if f.spoils {
			w.start()
		} else if busy := w.drain(); busy > 0 && failed {
			w.failed = time.Now()
		}
	}
	return w.tried(o, s.first)
}

// quiet waits until the clients of the draw before are decided, and nothing is said of them any more. What is said of
// them after that time is held against the next one.
func (w *world) quiet() {
	text, err := w.agent.Get(w.Ctx, "/api/v1/snapshot")
	if err != nil {
		return // it has no snapshot yet, so there was no draw
	}
	s := w.decode(text)
	if w.failed.IsZero() && s.open == 0 {
		return
	}
	for deadline := time.Now().Add(toBeDecided); s.open > 0 && time.Now().Before(deadline); s = w.agentNow() {
		w.Wait(500 * time.Millisecond)
	}
	w.Wait(time.Until(w.failed.Add(forgotten)))
	for deadline := time.Now().Add(toBeQuiet); time.Now().Before(deadline); w.Wait(500 * time.Millisecond) {
		if s := w.agentNow(); s.status != "losing" && !strings.Contains(s.summary, "given up by the client") {
			return
		}
	}
}

// agentNow is the agent's snapshot.
func (w *world) agentNow() said {
	text, err := w.agent.Get(w.Ctx, "/api/v1/snapshot")
	w.Must(err)
	return w.decode(text)
}

// come has the clients begin, over a second.
func (w *world) come(ctx context.Context, users *sync.WaitGroup, a *account) {
	address := w.proxied()
	if w.far != nil {
		address = fmt.Sprint(w.far.nearestTo, ":", rig.Port)
	}
	for i := range w.draw.users {
		v := w.visitor()
		v.far, v.account, v.path, v.text = w.far, a, w.draw.path(), w.draw.text(w.draw.path())
		if address != "" {
			v.address = address
		}
		users.Go(func() {
			rig.Wait(ctx, time.Duration(i)*800*time.Millisecond/time.Duration(w.draw.users))
			v.visit(ctx)
		})
	}
	if w.draw.checks {
		v := w.visitor()
		v.far, v.account = w.far, a
		if w.far != nil {
			v.address = address
		}
		users.Go(func() { v.check(ctx) })
	}
}

// observe reads what the server and the kernel say, until it is ended.
func (w *world) observe(ctx context.Context, o *watching) {
	limit, from, delayed := 0, time.Now(), runDelay(w.s.PID)
	if w.draw.fault == "descriptors" {
		limit = openLimit(w.s.PID)
	}
	for ctx.Err() == nil {
		says := w.s.Says(rig.Port)
		queue, _, _ := sockets()
		o.mu.Lock()
		o.busy, o.connections, o.queue = max(o.busy, says.Busy), max(o.connections, says.Connections), max(o.queue, queue)
		o.free = o.free || says.Connections < w.draw.server.connections
		o.starved = max(o.starved, (runDelay(w.s.PID)-delayed).Seconds()/max(1, time.Since(from).Seconds()))
		o.allBusy = o.allBusy && says.Busy >= w.draw.server.threads
		o.outOfFiles = o.outOfFiles || limit > 0 && openFiles(w.s.PID) >= limit
		o.mu.Unlock()
		rig.Wait(ctx, 50*time.Millisecond)
	}
}

// roles: which threads of the connector are there. One that was killed may live on: Tomcat 11
// takes ThreadDeath like any other error.
func (w *world) roles(o *observed) {
	switch {
	case w.draw.server.protocol == "nio":
		o.accepting = hasThread(w.s.PID, fmt.Sprintf("http-nio-%d-Acceptor", rig.Port))
		o.reading = hasThread(w.s.PID, fmt.Sprintf("http-nio-%d-Poller", rig.Port)) || hasThread(w.s.PID, fmt.Sprintf("http-nio-%d-ClientPoller", rig.Port))
	case w.draw.fault == "dead acceptor":
		o.accepting = false
	case w.draw.fault == "dead poller":
		o.reading = false
	}
}

// ask takes a snapshot as a user.
func (w *world) ask(viewer string) said {
	var user *syscall.Credential
	switch viewer {
	case "nobody":
		user = &syscall.Credential{Uid: 65534, Gid: 65534}
	case "app":
		id := uidOf(w.draw.number)
		user = &syscall.Credential{Uid: id, Gid: id}
	}
	ctx, cancel := context.WithTimeout(w.Ctx, time.Minute)
	defer cancel()
	out, errs, _, err := rig.Artifacts{Tcpdiag: w.Tcpdiag()}.Run(ctx, user, "snapshot", "--port", fmt.Sprint(rig.Port), "--interval", asked.String(), "--output", "json")
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("no document: %s", errs)
	}
	w.Must(err)
	return w.decode(out)
}

// agentSays is what the agent says: what is right, else what it says at the end of its time;
// and what was observed until then.
func (w *world) agentSays(o *watching, a *account, dropped int) (s said, now observed) {
	d := w.draw
	d.viewer = "root"
	for deadline := time.Now().Add(settled); ; w.Wait(500 * time.Millisecond) {
		s = w.agentNow()
		o.mu.Lock()
		now = o.observed
		o.mu.Unlock()
		now.failed = a.lately(time.Now())
		now.ever = a.failures(time.Time{}, time.Now())
		now.throttled, now.overflows = now.throttled || d.fault == "quota", overflows()-dropped
		if d.faultOf().spoils {
			w.roles(&now)
		}
		if result, _ := d.judge(now, s); result == right || time.Now().After(deadline) {
			return s, now
		}
	}
}

func (w *world) decode(text []byte) (s said) {
	var d api.Snapshot
	w.Must(json.Unmarshal(text, &d))
	for _, l := range d.Listeners {
		if int(l.Port) != rig.Port {
			continue
		}
		s.status, s.cause, s.summary = l.Verdict.Status, l.Verdict.Cause, l.Verdict.Summary
		if c := l.Clients; c != nil {
			s.open = c.Waiting + c.Settling + c.Stalling + c.Unreached
		}
		if a := l.Verdict.Answer; a != nil {
			if i := slices.IndexFunc(a.Do, func(s api.Step) bool { return s.Setting != "" }); i >= 0 {
				s.first = step{a.Do[i].Setting, a.Do[i].To}
			}
		}
		for _, f := range l.Verdict.Findings {
			if strings.Contains(f.Code, "not_observable") || strings.Contains(f.Code, "unknown") {
				s.missing = append(s.missing, f.Code)
			}
		}
	}
	for _, u := range d.Unavailable {
		s.missing = append(s.missing, u.What+" ("+u.Why+")")
	}
	return s
}

// commit is that of the sources.
func (w *world) commit() string {
	out, err := exec.CommandContext(w.Ctx, "git", "-C", w.Source("."), "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return "sources without a commit"
	}
	return "commit " + strings.TrimSpace(string(out))
}

func (w *world) outcome(seen, then observed, s, agent said, a *account, took time.Duration) outcome {
	d := w.draw
	o := outcome{
		Seed: d.seed, Number: d.number, At: time.Now(), Commit: w.commit(), Draw: d.String(), Handler: d.handler, Fault: d.fault, Viewer: d.viewer, Clients: d.clients(),
		Truth: fmt.Sprintf("%d busy, %d connections, queue %d, %d failed meanwhile; %s", seen.busy, seen.connections, seen.queue, seen.failed, a),
		Said:  strings.TrimSpace(s.status + " " + s.cause + ": " + s.summary),
		Agent: strings.TrimSpace(agent.status + " " + agent.cause + ": " + agent.summary),
	}
	if d.server.virtual {
		o.Truth = strings.Replace(o.Truth, fmt.Sprint(seen.busy, " busy, "), "", 1)
	}
	o.Result, o.Why = d.judge(seen, s)
	if took > asked+longer+4*time.Second && o.Result == wrong {
		o.Result, o.Why = undecided, fmt.Sprintf("this machine was busy: asked for %s", took)
	}
	root := d
	root.viewer = "root"
	if r, why := root.judge(then, agent); r == wrong || r == unknown && o.Result == right {
		o.Why = strings.TrimPrefix(o.Why+"; the agent: "+why, "; ")
		o.Result = r
	}
	text, bad, vague := w.compare(a)
	o.Counts = text
	switch {
	case bad != "":
		o.Result, o.Why = wrong, strings.TrimPrefix(o.Why+"; "+bad, "; ")
	case vague != "" && o.Result == right:
		o.Result, o.Why = unknown, vague
	}
	return o
}
