// Package threaddump asks a HotSpot JVM what its threads are doing, by the interface
// that jcmd and jstack use, and groups the answer. Nothing else in this program says
// anything to an observed process, so this is only done when it was asked for, to
// processes of the own user and group, and after it is known to be harmless.
//
// A JVM listens on a socket of its /tmp, .java_pidN. If it does not yet, a file
// .attach_pidN there and SIGQUIT make it begin (AttachListener::is_init_trigger). A
// process that does not catch SIGQUIT is ended by it: see quit.
package threaddump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxProcesses bounds how many are asked for one snapshot, and at a time in an agent, but for those of owners that have none.
const maxProcesses = 16

// Snapshot asks the JVMs of a snapshot's listeners, each once, those in most trouble
// first. What concerns no process of its own has the zero key.
func (a *Asker) Snapshot(ctx context.Context, s *model.Snapshot) map[hostproc.ProcessKey]facts.Stacks {
	keys, beyond := jvmsOf(s)
	answers := make(map[hostproc.ProcessKey]facts.Stacks, len(keys))
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, key := range keys {
		all.Go(func() {
			stacks, err := a.Ask(ctx, key)
			got, _ := answerOf(key, stacks, err)
			mu.Lock()
			defer mu.Unlock()
			answers[key] = got
		})
	}
	all.Wait()
	switch {
	case len(keys) == 0:
		answers[hostproc.ProcessKey{}] = facts.Stacks{Missed: []model.Unavailable{{What: "thread dumps", Why: "no JVM is seen to listen"}}}
	case beyond > 0:
		answers[hostproc.ProcessKey{}] = facts.Stacks{Missed: []model.Unavailable{{
			What: "thread dumps of " + phrase.Count(beyond, "JVM"), Why: phrase.Sprintf("at most %d are asked", maxProcesses), How: "name some of them: --pid, --port",
		}}}
	}
	return answers
}

// answerOf is what Ask returned; signalled: without an answer, and after SIGQUIT.
func answerOf(key hostproc.ProcessKey, stacks *model.Stacks, err error) (got facts.Stacks, signalled bool) {
	if err == nil {
		return facts.Stacks{Stacks: stacks}, false
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = refuse("%v", err)
	}
	return facts.Stacks{Missed: []model.Unavailable{r.Unavailable(key.PID)}}, r.Signalled
}

// jvmsOf are the JVMs among the owners of the listeners.
func jvmsOf(s *model.Snapshot) (keys []hostproc.ProcessKey, beyond int) {
	worst := make([]*model.Listener, 0, len(s.Listeners))
	for i := range s.Listeners {
		if p := s.Listeners[i].Process; p != nil && model.IsJVM(p.Comm) {
			worst = append(worst, &s.Listeners[i])
		}
	}
	slices.SortStableFunc(worst, func(a, b *model.Listener) int { return int(b.Verdict.Status) - int(a.Verdict.Status) })
	for _, l := range worst {
		switch key := keyOf(l); {
		case slices.Contains(keys, key):
		case len(keys) == maxProcesses:
			beyond++
		default:
			keys = append(keys, key)
		}
	}
	return keys, beyond
}

func keyOf(l *model.Listener) hostproc.ProcessKey {
	return hostproc.ProcessKey{PID: l.Process.PID, StartTime: l.Process.StartTime}
}

// Refusal says why a process was not asked, or did not answer.
type Refusal struct {
	Why, How string
	// Signalled: SIGQUIT was sent.
	Signalled bool
}

func (r *Refusal) Error() string { return "threaddump: " + r.Why }

func refuse(format string, args ...any) *Refusal { return &Refusal{Why: fmt.Sprintf(format, args...)} }

// but adds what to do about it.
func (r *Refusal) but(format string, args ...any) *Refusal {
	return &Refusal{Why: r.Why, How: fmt.Sprintf(format, args...), Signalled: r.Signalled}
}

// Unavailable is the entry of a snapshot for it.
func (r *Refusal) Unavailable(pid int) model.Unavailable {
	return model.Unavailable{What: fmt.Sprintf("thread dump of pid %d", pid), Why: r.Why, How: r.How}
}
