package threaddump

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// source publishes a snapshot of one JVM a second, in trouble or not.
type source struct {
	known  map[hostproc.ProcessKey]facts.Stacks
	follow *Follower
	asked  int
	answer func() (*model.Stacks, error)
}

func (s *source) Snapshot() *model.Snapshot                         { return nil }
func (s *source) Next() <-chan struct{}                             { return nil }
func (s *source) PutStacks(of map[hostproc.ProcessKey]facts.Stacks) { s.known = of }

func inTroubleJVM() hostproc.ProcessKey { return hostproc.ProcessKey{PID: 42, StartTime: 7} }

func newSource(t *testing.T) *source {
	s := &source{answer: func() (*model.Stacks, error) { return &model.Stacks{Workers: 20}, nil }}
	s.follow = NewFollower(&Asker{}, s, slog.New(slog.DiscardHandler))
	s.follow.ask = func(_ context.Context, key hostproc.ProcessKey) (*model.Stacks, error) {
		require.Equal(t, inTroubleJVM(), key)
		s.asked++
		return s.answer()
	}
	return s
}

// pass lets seconds pass with this status; it is for a bubble.
func (s *source) pass(status model.Status, seconds int) facts.Stacks {
	for range seconds {
		time.Sleep(time.Second)
		l := model.Listener{Process: &model.Process{PID: 42, StartTime: 7, Comm: "java"}}
		l.Verdict.Status = status
		s.follow.update(context.Background(), &model.Snapshot{Time: time.Now(), Listeners: []model.Listener{l}})
		synctest.Wait()
	}
	return s.known[inTroubleJVM()]
}

// One thread dump an incident, which is known until a minute after.
func TestOnceAnIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		require.Nil(t, s.pass(model.StatusWarning, 3).Stacks)
		require.Zero(t, s.asked)

		require.Equal(t, 20, s.pass(model.StatusSaturated, 1).Stacks.Workers)
		s.pass(model.StatusLosing, 300)
		s.pass(model.StatusOK, 30)
		require.NotNil(t, s.pass(model.StatusSaturated, 300).Stacks)
		require.Equal(t, 1, s.asked, "trouble that comes back within a minute is the same incident")

		require.NotNil(t, s.pass(model.StatusOK, 60).Stacks)
		require.Nil(t, s.pass(model.StatusOK, 1).Stacks)
		s.pass(model.StatusDown, 1)
		require.Equal(t, 2, s.asked)
	})
}

// A refusal is an entry under unavailable, and is tried again at most once a minute.
func TestARefusalIsTriedAgainAMinuteLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		s.answer = func() (*model.Stacks, error) { return nil, refuse("it is starting").but("wait") }
		got := s.pass(model.StatusSaturated, 59)
		require.Equal(t, 1, s.asked)
		require.Equal(t, []model.Unavailable{{What: "thread dump of pid 42", Why: "it is starting", How: "wait"}}, got.Missed)
		s.answer = func() (*model.Stacks, error) { return &model.Stacks{}, nil }
		got = s.pass(model.StatusSaturated, 62)
		require.Equal(t, 2, s.asked)
		require.Empty(t, got.Missed)
		require.NotNil(t, got.Stacks)
		s.pass(model.StatusSaturated, 200)
		require.Equal(t, 2, s.asked)
	})
}

// One that was sent SIGQUIT and did not answer is not sent another in that incident.
func TestASignalIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSource(t)
		s.answer = func() (*model.Stacks, error) { return nil, tooLate(true) }
		require.Len(t, s.pass(model.StatusLosing, 600).Missed, 1)
		require.Equal(t, 1, s.asked)
	})
}

// Sixty JVMs of one pod are in trouble and do not answer: another pod's is asked at once.
func TestDumpsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var mu sync.Mutex
		of := map[int]int{}
		s := newSource(t)
		s.follow.ask = func(ctx context.Context, key hostproc.ProcessKey) (*model.Stacks, error) {
			mu.Lock()
			of[min(1, key.PID/1000)]++
			mu.Unlock()
			if key.PID < 1000 {
				<-ctx.Done()
			}
			return &model.Stacks{}, nil
		}
		in := &model.Snapshot{}
		add := func(owner string, pid int) {
			l := model.Listener{Process: &model.Process{PID: pid, Comm: "java", Owner: owner}}
			l.Verdict.Status = model.StatusLosing
			in.Listeners = append(in.Listeners, l)
		}
		update := func() {
			time.Sleep(time.Second)
			in.Time = time.Now()
			s.follow.update(ctx, in)
			synctest.Wait()
		}
		for pid := range 60 {
			add("pod a", pid+1)
		}
		update()
		update()
		require.Equal(t, map[int]int{0: maxAtOnce}, of)
		require.Len(t, s.follow.cases, maxProcesses)
		add("pod b", 1000)
		add("pod b", 1001)
		update()
		update()
		require.Equal(t, map[int]int{0: maxAtOnce, 1: 1}, of, "it has one place")
		for i := range 20 {
			add(fmt.Sprint("pod ", i), 2000+i)
		}
		update()
		require.Len(t, s.follow.cases, maxProcesses+maxBeyond)
		stop()
		synctest.Wait()
	})
}

// What is no JVM is not asked.
func TestOtherProcessesAreNotAsked(t *testing.T) {
	l := model.Listener{Process: &model.Process{PID: 1, Comm: "nginx"}}
	l.Verdict.Status = model.StatusLosing
	require.Empty(t, inTrouble(&model.Snapshot{Listeners: []model.Listener{l, {Verdict: l.Verdict}}}))
}
