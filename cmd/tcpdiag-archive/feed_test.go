package main

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/incident"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// agent is the agent's own recorder, fed with snapshots of one listener that the test
// makes: it writes the recordings that an archiver reads.
type agent struct {
	t    *testing.T
	dir  string
	now  time.Time
	mu   sync.Mutex
	last *model.Snapshot
	next chan struct{}
	rec  *incident.Recorder
	stop func()
}

func startAgent(t *testing.T, dir string) *agent {
	t.Helper()
	a := &agent{t: t, dir: dir, now: time.Now().Add(-time.Hour), next: make(chan struct{})}
	a.rec = incident.NewRecorder(incident.Options{
		Snapshot: func() *model.Snapshot { a.mu.Lock(); defer a.mu.Unlock(); return a.last },
		Next:     func() <-chan struct{} { a.mu.Lock(); defer a.mu.Unlock(); return a.next },
		Dir:      dir, Limits: incident.Limits{Files: 200, Bytes: 256 << 20, Age: 720 * time.Hour},
		Version: "1.2.3", Log: quiet(), Now: func() time.Time { a.mu.Lock(); defer a.mu.Unlock(); return a.now },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = a.rec.Run(ctx) }()
	var once sync.Once
	a.stop = func() { once.Do(func() { cancel(); <-done }) }
	t.Cleanup(a.stop)
	return a
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// see publishes a second with this verdict, and waits until the recorder has observed it.
func (a *agent) see(port uint16, status model.Status, cause model.Cause) {
	a.t.Helper()
	a.mu.Lock()
	a.now = a.now.Add(time.Second)
	a.last = &model.Snapshot{Time: a.now, Host: "node-1", Kernel: "6.12", Listeners: []model.Listener{{
		ID:      model.ListenerID{NetNS: 4026531840, Address: netip.AddrPortFrom(netip.IPv4Unspecified(), port)},
		Port:    port,
		Pod:     &model.Pod{Namespace: "shop", Name: "orders-7d9", Container: "app"},
		Process: &model.Process{PID: 4711, Comm: "java", PodUID: "0d5b6f2e-1111-2222-3333-444455556666"},
		Verdict: model.Verdict{Status: status, Cause: cause, Summary: "clients wait", Answer: model.Answer{
			What: "34 clients of the last 10 s got no answer.", Why: "All 4 threads are busy.",
			Do:  []model.Step{{Text: "Raise the number of threads", Setting: "server.tomcat.threads.max", From: "4", To: "20", File: "application.yml"}},
			Not: "A larger backlog makes them wait longer.",
		}},
	}}}
	old := a.next
	a.next = make(chan struct{})
	a.mu.Unlock()
	close(old)
	// The recorder takes one at a time: the next is given when this one is in the history.
	require.Eventually(a.t, func() bool {
		h := a.rec.History()
		points := h.Points(incident.KeyOf(&a.last.Listeners[0]))
		return len(points) > 0 && points[len(points)-1].At >= a.now.Unix()
	}, time.Minute, time.Millisecond)
}

// incident is one of three seconds with two causes, and the calm minute after it.
func (a *agent) incident(port uint16) {
	a.t.Helper()
	a.see(port, model.StatusOK, model.CauseNone)
	a.see(port, model.StatusSaturated, model.CauseMaxThreads)
	a.see(port, model.StatusLosing, model.CauseMaxThreads)
	a.see(port, model.StatusLosing, model.CauseMaxConnections)
	for range 62 {
		a.see(port, model.StatusOK, model.CauseNone)
	}
}

// ids waits until n recordings have ended, and returns their IDs, the oldest first.
func (a *agent) ids(n int) (out []string) {
	a.t.Helper()
	require.Eventually(a.t, func() bool {
		ended := 0
		out = nil
		for _, s := range a.rec.List() {
			if !s.Ended.IsZero() {
				ended++
			}
			out = append([]string{s.ID}, out...)
		}
		return ended == n
	}, time.Minute, 10*time.Millisecond)
	return out
}

// sample is a recording of a real agent, with its evidence; its agent was killed.
func sample(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "internal", "cli", "testdata", "incident.tcpdiag"))
	require.NoError(t, err)
	return text
}

// endedSample is the same with the end that the next agent appends.
func endedSample(t *testing.T) []byte {
	t.Helper()
	end := `{"end":{"at":"2026-01-02T03:05:05Z","reason":"interrupted","summary":{}}}`
	return fmt.Appendf(sample(t), "\n%08x %s\n", crc32.Checksum([]byte(end), crc32.MakeTable(crc32.Castagnoli)), end)
}
