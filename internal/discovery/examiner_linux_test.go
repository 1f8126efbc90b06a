package discovery

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// counting counts examinations.
type counting struct {
	examine.Here
	calls atomic.Int32
}

func (c *counting) Examine(ctx context.Context, r examine.Request) (*examine.Examination, examine.PerfData, error) {
	c.calls.Add(1)
	return c.Here.Examine(ctx, r)
}

// examinedAgain waits for the examination that is due.
func examinedAgain(t *testing.T, d *Discoverer, s *server) (*model.Connector, []model.Unavailable) {
	t.Helper()
	only(t, d, s, 8080)
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		e := d.entries[s.pid]
		return e.underway == nil && d.now().Before(e.due)
	}, time.Minute, time.Millisecond)
	return only(t, d, s, 8080)
}

// scripted answers what a test says, when it says so.
type scripted struct {
	answer chan error
	calls  atomic.Int32
}

func (s *scripted) Examine(context.Context, examine.Request) (*examine.Examination, examine.PerfData, error) {
	s.calls.Add(1)
	if err := <-s.answer; err != nil {
		return nil, examine.PerfData{}, err
	}
	return &examine.Examination{Known: true, Found: match.Found{Server: model.ServerJVM().Name}}, examine.PerfData{}, nil
}

// A caller that cannot wait for an examination gets what the threads and the kernel
// say, and the rest once it is there.
func TestExaminationThatTakesItsTime(t *testing.T) {
	s := startFake(t, fake{args: tomcatArgs(base(t, smallServer)), Threads: []string{"http-nio-8080-e"}})
	examiner := &scripted{answer: make(chan error)}
	clock := newClock(0)
	d := NewDiscoverer(hostfs.Real(t), WithExaminer(examiner), WithClock(clock.now))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		connectors, unavailable := d.Discover(ctx, s.pid, s.start, ports(8080))
		c := connectorOn(t, connectors, 8080)
		require.Equal(t, "tomcat", c.Server)
		require.Nil(t, c.MaxThreads)
		require.Len(t, unavailable, 1)
		require.Equal(t, "it is being read", unavailable[0].Why)
	}
	require.LessOrEqual(t, examiner.calls.Load(), int32(1), "one at a time")
	examiner.answer <- errors.New("broken")
	_, unavailable := only(t, d, s, 8080)
	require.Len(t, unavailable, 1)
	require.Equal(t, "broken", unavailable[0].Why)

	for _, wait := range []time.Duration{retryAfter, 2 * retryAfter, 4 * retryAfter} {
		calls := examiner.calls.Load()
		clock.move(wait / 2)
		only(t, d, s, 8080)
		require.Equal(t, calls, examiner.calls.Load(), "it waits longer each time")
		clock.move(wait)
		only(t, d, s, 8080)
		examiner.answer <- errors.New("broken")
		require.Eventually(t, func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.entries[s.pid].underway == nil
		}, time.Minute, time.Millisecond)
	}
}

// What a set-user-ID program was given by the user who started it is not read with the
// rights that it has.
func TestSetUserID(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: it makes a set-user-ID program")
	}
	dir := proctest.PublicDir(t)
	program, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	java := filepath.Join(dir, "java")
	require.NoError(t, os.WriteFile(java, program, 0o755))
	require.NoError(t, os.Chmod(java, 0o755|os.ModeSetuid))
	conf := base(t, smallServer)
	s := startFake(t, fake{path: java, args: tomcatArgs(conf), Threads: []string{"http-nio-8080-e"}, uid: 65534})
	c, unavailable := only(t, inChildren(t), s, 8080)
	require.Equal(t, "tomcat", c.Server)
	require.Nil(t, c.MaxThreads)
	text := ""
	for _, u := range unavailable {
		text += u.What + ": " + u.Why + "\n"
	}
	require.Contains(t, text, "set-user-ID")
	require.NotContains(t, text, "permission denied")
}

// inChildren is a Discoverer that examines as the product does, on a machine as
// busy as may be.
func inChildren(t testing.TB, options ...Option) *Discoverer {
	children := examine.NewChildren("/proc/self/exe", childArgument)
	children.Deadline = time.Minute
	return NewDiscoverer(hostfs.Real(t), append(options, WithExaminer(children))...)
}

// withActuator is for the process that listens on the URL's port.
func withActuator(url string) Option {
	return func(d *Discoverer) { d.SetActuators([]Actuator{{URL: url}}) }
}
