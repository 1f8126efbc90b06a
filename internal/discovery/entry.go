package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/cgroup"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/shares"
)

const (
	// maxRemembered bounds the processes that a Discoverer remembers.
	maxRemembered = 1000
	// maxAtOnce bounds the examinations under way, and with them the memory that
	// child processes have in addition to the agent's.
	maxAtOnce = 1
	// forgotten is how long a process may go unasked for.
	forgotten = 10 * time.Minute
	// namesKeep is how long thread names are believed while the number of
	// threads stays the same.
	namesKeep = 10 * time.Second

	// How often a process is examined again: one that may still be starting; one
	// that runs, for files that have changed; one that is no Java.
	youngEvery   = 5 * time.Second
	settledEvery = 5 * time.Minute
	otherEvery   = time.Hour
	// The wait after a failure, doubled each time; and where it is others' doing.
	retryAfter  = time.Minute
	retryMost   = time.Hour
	othersRetry = 5 * time.Second
)

// entry is what is remembered of a process.
type entry struct {
	examine.Request
	comm    string
	asked   time.Time
	started time.Time // zero when unknown

	current  *examine.Examination // nil: none has succeeded
	late     []string             // files that changed after they were read
	trouble  error                // why the latest examination failed
	failures int
	due      time.Time     // not examined again before
	underway chan struct{} // closed when the examination is over; nil: none is under way

	jvm jvmFile

	pools   match.Pools
	poolsAt time.Time
	threads uint64

	meters meters
}

// entry is what is remembered of a process, or nothing yet.
func (d *Discoverer) entry(pid int, startTime uint64) *entry {
	if e := d.remembered(pid, startTime, nil); e != nil {
		return e
	}
	e := &entry{Request: examine.Request{PID: pid, StartTime: startTime, Owner: cgroup.Owner(d.proc, pid)}}
	if p, err := d.proc.Process(pid); err == nil {
		e.comm, e.started = p.Comm, examine.StartOf(d.proc, p)
	}
	return d.remembered(pid, startTime, e)
}

// remembered is the entry of a process. Where there is none, fresh is from now on.
func (d *Discoverer) remembered(pid int, startTime uint64, fresh *entry) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.entries[pid]
	if e == nil || e.StartTime != startTime {
		if fresh == nil {
			return nil
		}
		d.forget()
		if e != nil {
			e.jvm.close()
		}
		e = fresh
		d.entries[pid] = e
	}
	e.asked = d.now()
	return e
}

// forget makes room by dropping processes that nobody asks for any more, and of too many those of
// whoever has most.
func (d *Discoverer) forget() {
	now := d.now()
	drop := func(old func(*entry) bool) {
		maps.DeleteFunc(d.entries, func(_ int, e *entry) bool {
			if old(e) {
				e.jvm.close()
			}
			return old(e)
		})
	}
	drop(func(e *entry) bool { return now.Sub(e.asked) > forgotten })
	if len(d.entries) < maxRemembered {
		return
	}
	var have shares.Counts
	for _, e := range d.entries {
		have.Add(e.Owner, 1)
	}
	most := have.Most()
	drop(func(e *entry) bool { return e.Owner == most })
}

// examine starts an examination when one is due. The result is closed when the
// first one is over; it is nil when there was one already.
func (d *Discoverer) examine(e *entry) (first <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.underway == nil && !d.now().Before(e.due) {
		done := make(chan struct{})
		e.underway = done
		go func() {
			defer close(done)
			if !d.turns.Take(context.Background(), e.Owner) {
				d.absorb(e, nil, jvmFile{}, hangs.ErrOthers)
				return
			}
			result, data, err := d.examiner.Examine(context.Background(), e.Request)
			d.turns.Leave()
			d.absorb(e, result, d.adopt(e.Request, data), err)
		}()
	}
	if e.current == nil && e.trouble == nil {
		return e.underway
	}
	return nil
}

// absorb takes the result of an examination.
func (d *Discoverer) absorb(e *entry, result *examine.Examination, jvm jvmFile, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e.jvm.replace(jvm)
	now := d.now()
	e.underway = nil
	if errors.Is(err, hangs.ErrOthers) || errors.Is(err, examine.ErrPaced) {
		e.trouble, e.due = err, now.Add(othersRetry)
		return
	}
	if e.trouble = err; err != nil {
		e.due = now.Add(min(retryAfter<<min(e.failures, 10), retryMost))
		e.failures++
		return
	}
	e.failures = 0
	young := e.started.IsZero() || now.Sub(e.started) < examine.Settled
	e.take(result, young)
	switch {
	case result.Found.Server == model.ServerOther().Name:
		e.due = now.Add(otherEvery)
	case young:
		e.due = now.Add(youngEvery)
	default:
		e.due = now.Add(settledEvery)
	}
}

// take replaces what was found. Once a process has started, a change of its files
// is only noted: what was read before is what it read itself.
func (e *entry) take(result *examine.Examination, young bool) {
	if e.current == nil || young {
		e.current, e.late = result, nil
		return
	}
	changed, readable := e.current.Change(result)
	if readable {
		e.current, e.late = result, nil
		return
	}
	for _, name := range changed {
		if !slices.Contains(e.late, name) {
			e.late = append(e.late, name)
		}
	}
}

// found is what the process turned out to be where that is known.
func (e *entry) found() *match.Found {
	switch {
	case e.current != nil:
		return &e.current.Found
	case e.maybeJava():
		return &match.Found{Server: model.ServerJVM().Name}
	}
	return &match.Found{Server: model.ServerOther().Name}
}

// maybeJava goes by the name of the main thread, which any user may read.
func (e *entry) maybeJava() bool { return model.IsJVM(e.comm) }

// irrelevant says that a process is certainly no Tomcat, so that nobody needs
// to know what could not be read of it.
func (e *entry) irrelevant(connectors match.Connectors) bool {
	for _, c := range connectors {
		if c.Kind().Limits {
			return false
		}
	}
	if e.current == nil {
		return e.comm != "" && !e.maybeJava() && e.pools.Empty()
	}
	return e.current.Known && len(e.current.Found.Connectors) == 0 && e.pools.Empty()
}

// unavailable is what could not be read of a process.
func (e *entry) unavailable() []model.Unavailable {
	if e.current != nil {
		return slices.Concat(e.current.Missing, e.current.Found.Unavailable, e.sayLate())
	}
	u := model.Unavailable{What: fmt.Sprintf("configuration of pid %d", e.PID), Why: "it is being read"}
	if e.trouble != nil {
		u.Why, u.How = e.trouble.Error(), match.ByHand
	}
	return []model.Unavailable{u}
}

// sayLate names the files whose new content is not in force yet.
func (e *entry) sayLate() []model.Unavailable {
	out := make([]model.Unavailable, len(e.late))
	for i, name := range e.late {
		out[i] = model.Unavailable{
			What: fmt.Sprintf("%s of pid %d as it is now", name, e.PID),
			Why:  "it changed after the process had read it; what it said before is shown",
			How:  "it takes effect when the server is started again",
		}
	}
	return out
}
