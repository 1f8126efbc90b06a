package discovery

import (
	"context"
	"errors"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/examine"
	"github.com/tcpdiag/tcpdiag/internal/hostproc/hangs"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// orderly notes whose processes are examined in which order.
type orderly struct {
	mu    sync.Mutex
	order []string
	begin chan struct{}
}

func (o *orderly) Examine(_ context.Context, r examine.Request) (*examine.Examination, examine.PerfData, error) {
	<-o.begin
	o.mu.Lock()
	defer o.mu.Unlock()
	o.order = append(o.order, r.Owner)
	return nil, examine.PerfData{}, errors.New("not read")
}

// sleepAs is a process of another user.
func sleepAs(t *testing.T, uid uint32) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL}
	proctest.Run(t, cmd)
	return cmd.Process.Pid
}

// Sixty processes of one user wait for their examination: another's is the next but one.
func TestExaminationsTakeTurns(t *testing.T) {
	nettest.Root(t)
	o := &orderly{begin: make(chan struct{})}
	d := NewDiscoverer(hostfs.Real(t), WithExaminer(o))
	done, stop := context.WithCancel(t.Context())
	stop()
	ask := func(pid int) {
		p, err := hostfs.Real(t).Process(pid)
		require.NoError(t, err)
		d.Discover(done, pid, p.StartTime, nil)
	}
	for range 60 {
		ask(sleepAs(t, 65534))
	}
	ask(sleepAs(t, 12345))
	time.Sleep(100 * time.Millisecond) // they are goroutines of their own
	close(o.begin)
	require.Eventually(t, func() bool { o.mu.Lock(); defer o.mu.Unlock(); return len(o.order) == 61 }, time.Minute, time.Millisecond)
	require.Contains(t, o.order[:3], "uid 12345")
}

// What others' processes do to the readers is no failure of this one: it is asked again soon.
func TestOthersHang(t *testing.T) {
	d := NewDiscoverer(hostfs.Real(t))
	e := d.entry(1, 1)
	d.absorb(e, nil, jvmFile{}, hangs.ErrOthers)
	require.Zero(t, e.failures)
	require.LessOrEqual(t, e.due.Sub(d.now()), othersRetry)
	require.ErrorIs(t, e.trouble, hangs.ErrOthers)
}
