package threaddump

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxProcesses bounds how many are asked for one snapshot.
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
