package schedule

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/facts"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// A packet is counted within a second of being dropped even where nothing names
// its cause: the snapshot that gives it up is made when its time has come.
func TestCausesAreGivenUpInTime(t *testing.T) {
	k := newKernel(listensOn(8080, 1))
	w := newWorld(t, k, nil)
	w.scanned()
	w.looping.Store(true)
	k.walkFails = errors.New("no answer")
	w.reading = evidence.Reading{}
	w.pass(time.Second)
	k.overflow(3)
	w.Sample()
	dropped := w.clock()
	w.publish(false)
	require.EqualValues(t, 3, w.only(w.Snapshot()).Totals.Pending)
	require.Equal(t, dropped.Add(600*time.Millisecond), w.collector.waits())
	w.pass(600 * time.Millisecond)
	w.publish(false)
	require.Zero(t, w.only(w.Snapshot()).Totals.Pending)
	require.Zero(t, w.collector.waits())
}

// taps are clients of which nothing is known.
type taps struct{ read, counted func() }

func (t taps) Read() { t.read() }

func (t taps) Count(*facts.View) { t.counted() }

// While the taps ask the kernel nobody waits for what the collector knows, and what they report is in
// the same snapshot.
func TestTapsAreAskedWithoutTheLock(t *testing.T) {
	w := newWorld(t, newKernel(listensOn(8080, 1)), nil)
	var calls []string
	w.Follow(taps{
		read: func() {
			calls = append(calls, "read")
			require.True(t, w.collector.mu.TryLock())
			w.collector.mu.Unlock()
		},
		counted: func() { calls = append(calls, "count") },
	})
	w.scanned()
	require.Equal(t, []string{"read", "count"}, calls)
}

// What the agent's other tasks say of themselves is in the next snapshot, which another configuration brings
// forward and nothing else.
func TestWhatOtherTasksSay(t *testing.T) {
	w := newWorld(t, newKernel(listensOn(8080, 1)), nil)
	w.scanned()
	config := &model.ConfigReload{Successful: true, LastSuccess: w.clock()}
	w.PutAgent(func(a *model.Agent) { a.Config = config })
	require.Len(t, w.bells.publish, 1)
	<-w.bells.publish
	w.PutAgent(func(a *model.Agent) { a.Incidents = &model.Incidents{Open: 1} })
	require.Empty(t, w.bells.publish)
	before := w.Snapshot()
	w.publish(false)
	require.Equal(t, model.Agent{Config: config, Incidents: &model.Incidents{Open: 1}}, w.Snapshot().Self.Agent)
	require.Zero(t, before.Self.Agent)
}

// A one-shot looks again before it ends well where clients may have come after its latest snapshot.
func TestMayBeOld(t *testing.T) {
	of := func(status model.Status, clients *model.Clients) bool {
		l := model.Listener{Losses: &model.Losses{Clients: clients}}
		l.Verdict.Status = status
		return mayBeOld(&model.Snapshot{Listeners: []model.Listener{l}})
	}
	letIn := model.Clients{}
	letIn.LetIn = 3
	require.True(t, of(model.StatusOK, &model.Clients{}), "nobody had come then")
	require.False(t, of(model.StatusOK, &letIn), "clients are let in")
	require.False(t, of(model.StatusLosing, &model.Clients{}))
	require.False(t, of(model.StatusOK, nil), "nobody is followed")
}
