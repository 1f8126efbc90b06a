package threaddump

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// maxProcesses bounds how many are asked for one snapshot.
const maxProcesses = 16

// answer is what one process said.
type answer struct {
	stacks *model.Stacks
	missed []model.Unavailable
}

// Snapshot asks the JVMs of a snapshot's listeners, each once, those in most trouble
// first, and is a copy of it with the answers.
func (a *Asker) Snapshot(ctx context.Context, s *model.Snapshot) *model.Snapshot {
	keys, beyond := jvmsOf(s)
	answers := make(map[hostproc.ProcessKey]answer, len(keys))
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
	out := with(s, answers)
	switch {
	case len(keys) == 0:
		out.Unavailable = append(out.Unavailable, model.Unavailable{What: "thread dumps", Why: "no JVM is seen to listen"})
	case beyond > 0:
		out.Unavailable = append(out.Unavailable, model.Unavailable{
			What: "thread dumps of " + phrase.Count(beyond, "JVM"), Why: phrase.Sprintf("at most %d are asked", maxProcesses), How: "name some of them: --pid, --port",
		})
	}
	return out
}

// answerOf is what Ask returned; signalled: without an answer, and after SIGQUIT.
func answerOf(key hostproc.ProcessKey, stacks *model.Stacks, err error) (got answer, signalled bool) {
	if err == nil {
		return answer{stacks: stacks}, false
	}
	var r *Refusal
	if !errors.As(err, &r) {
		r = refuse("%v", err)
	}
	return answer{missed: []model.Unavailable{r.Unavailable(key.PID)}}, r.Signalled
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

// with is a copy of a snapshot with answers in it, judged again by them.
func with(s *model.Snapshot, answers map[hostproc.ProcessKey]answer) *model.Snapshot {
	out := *s
	out.Listeners, out.Unavailable = slices.Clone(s.Listeners), slices.Clone(s.Unavailable)
	told := make(map[hostproc.ProcessKey]bool)
	for i := range out.Listeners {
		l := &out.Listeners[i]
		if l.Process == nil {
			continue
		}
		key := keyOf(l)
		got, ok := answers[key]
		if !ok {
			continue
		}
		if !told[key] {
			told[key] = true
			out.Unavailable = append(out.Unavailable, got.missed...)
		}
		if got.stacks == nil {
			continue
		}
		p := *l.Process
		p.Stacks, l.Process = got.stacks, &p
		l.Verdict = judged(s, l)
	}
	return &out
}

// judged is the verdict on a listener that now has stacks.
func judged(s *model.Snapshot, l *model.Listener) model.Verdict {
	if v, known := diagnosis.Again(s.Time, l, diagnosis.DefaultThresholds()); known {
		return v
	}
	return l.Verdict
}
