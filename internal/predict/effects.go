// Package predict says what an advised change would do: it simulates the load that was
// measured (internal/plan) with the setting as it is, and where that gives what was
// measured, with the setting as advised. It is pure.
//
// Start at Measure; measured.go says from what, fit.go which loads are tried.
package predict

import (
	"slices"
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// measureEvery is how long a load that was measured stands: to find it again takes up to
	// a fifth of a second of CPU time.
	measureEvery = 20 * time.Second
	// measureAgain is after how long another attempt is made where none was found, or nothing is said of it.
	measureAgain = 2 * time.Second
)

// Effects adds to an agent's snapshots what the advised changes would do. Each snapshot is
// completed once, however many ask for it.
type Effects struct {
	mu       sync.Mutex
	from, to *model.Snapshot // the latest, before and after
	loads    map[model.ListenerID]measuredLoad
}

// measuredLoad is a load that was searched for, and when.
type measuredLoad struct {
	Load
	known bool
	next  time.Time // when it is searched for again
}

// Snapshot is s with the effects; nil where s is.
func (e *Effects) Snapshot(s *model.Snapshot) *model.Snapshot {
	if s == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if s != e.from {
		e.from, e.to = s, e.complete(s)
	}
	return e.to
}

// complete does not change what it is given. The load of who is in no trouble any more is
// forgotten.
func (e *Effects) complete(s *model.Snapshot) *model.Snapshot {
	out := *s
	out.Listeners = append([]model.Listener(nil), s.Listeners...)
	loads := make(map[model.ListenerID]measuredLoad)
	for i := range out.Listeners {
		l := &out.Listeners[i]
		if l.Verdict.Status < model.StatusSaturated && l.Verdict.Cause != model.CauseEphemeralPorts || !l.Listening() {
			continue
		}
		m, tried := e.loads[l.ID]
		if !tried || !s.Time.Before(m.next) {
			m = measureLoad(l, s)
		}
		loads[l.ID] = m
		if m.known {
			l.Verdict = m.Verdict(l.Verdict)
		}
	}
	e.loads = loads
	return &out
}

func measureLoad(l *model.Listener, s *model.Snapshot) measuredLoad {
	load, ok := Measure(l, s)
	m := measuredLoad{load, ok, s.Time.Add(measureAgain)}
	if ok && !load.waits && (load.obstacle == nil || !load.obstacle.young) && predicts(load.Verdict(l.Verdict)) { // else more is known with the next answer, or the next who leaves
		m.next = s.Time.Add(measureEvery)
	}
	return m
}

// predicts reports whether a step of an answer says what it would do.
func predicts(v model.Verdict) bool {
	return slices.ContainsFunc(v.Answer.Do, func(s model.Step) bool { return s.Effect != "" })
}
