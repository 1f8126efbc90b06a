package schedule

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// named is a sampler that reads the namespace of a process which is named.
type named struct {
	*nettest.NS
	*Scheduler
	process *exec.Cmd
	order   io.Writer // to the process
	now     time.Time
}

// newNamed starts a process that waits for a line and then does what is said.
func newNamed(t *testing.T, then string, change func(*Options, int)) *named {
	t.Helper()
	n := &named{NS: nettest.Namespace(t), now: time.Now()}
	n.process = n.Command("sh", "-c", "read line; "+then)
	stdin, err := n.process.StdinPipe()
	require.NoError(t, err)
	n.order = stdin
	require.NoError(t, n.process.Start())
	t.Cleanup(func() {
		_ = n.process.Process.Kill()
		_ = n.process.Wait()
	})
	n.moved(t, func(id netns.ID) bool { return id == n.number(t) })
	l := &lab{NS: n.NS, pid: n.process.Process.Pid}
	n.Scheduler = l.sampler(t, func(o *Options) {
		o.Inside, o.All = nil, false
		o.Now = func() time.Time { return n.now }
		change(o, l.pid)
	})
	return n
}

func (n *named) number(t *testing.T) (id netns.ID) {
	t.Helper()
	n.Do(func() {
		var err error
		id, err = netns.Current()
		require.NoError(t, err)
	})
	return id
}

// moved waits until the process's namespace is another, 0 when it has ended.
func (n *named) moved(t *testing.T, done func(netns.ID) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		id, err := netns.OfPID("/proc", n.process.Process.Pid)
		return done(id) && (err == nil || id == 0)
	}, time.Minute, time.Millisecond)
}

func (n *named) listen(t *testing.T, port uint16) (l *nettest.Listener) {
	t.Helper()
	n.Do(func() {
		l = nettest.Listen(t, nettest.ListenOptions{Address: fmt.Sprintf("127.0.0.1:%d", port), Backlog: 5})
	})
	return l
}

func (n *named) scan(t *testing.T) *model.Snapshot {
	t.Helper()
	n.now = n.now.Add(time.Minute) // sysctls are read rarely
	require.NoError(t, n.Scan(context.Background()))
	require.Len(t, n.Snapshot().NetNS, 1)
	return n.Snapshot()
}

// A namespace is its number's, not that of the process by which it was found:
// that may end while another one serves on, or have moved to another one, as its number
// may when it is given to the next process.
func TestNamespaceOfANamedProcess(t *testing.T) {
	nettest.Root(t)
	for name, tt := range map[string]struct {
		then string
		gone bool
	}{
		"it ends":             {then: "exit", gone: true},
		"it is elsewhere now": {then: "exec unshare -n sleep 300"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNamed(t, tt.then, func(o *Options, pid int) { o.Targets = []watchlist.Target{{PID: pid, Ports: []uint16{8080}}} })
			before := n.listen(t, 8080)
			snap := n.scan(t)
			require.NotEqual(t, 77, snap.NetNS[0].Sysctl["somaxconn"])
			require.Equal(t, 1, snap.NetNS[0].Sockstat["inuse"])

			was := n.number(t)
			_, err := n.order.Write([]byte("\n"))
			require.NoError(t, err)
			n.moved(t, func(id netns.ID) bool { return id != was && (id == 0) == tt.gone })
			before.Close()
			n.listen(t, 8080)
			n.Sysctl(t, "net.core.somaxconn", "77")

			snap = n.scan(t)
			ns := snap.NetNS[0]
			require.Equal(t, uint64(was), ns.ID)
			require.Equal(t, 77, ns.Sysctl["somaxconn"])
			require.Equal(t, 1, ns.Sockstat["inuse"])
			require.True(t, snap.Self.SourceUp["sysctl"])
			require.True(t, snap.Self.SourceUp["sockstat"])
			got := only(t, snap)
			require.NotNil(t, got.Process, "%v %v", snap.Notes, snap.Unavailable)
			require.Equal(t, os.Getpid(), got.Process.PID)
			require.Equal(t, []string{fmt.Sprintf("port 8080 is not pid %d's: pid %d (%s) holds 127.0.0.1:8080",
				n.process.Process.Pid, os.Getpid(), got.Process.Comm)}, snap.Notes)
		})
	}
}

// Of two named processes of one namespace the first ends.
func TestOneOfTwoNamedProcessesEnds(t *testing.T) {
	nettest.Root(t)
	var second *exec.Cmd
	n := newNamed(t, "exit", func(o *Options, pid int) { o.PIDs = []int{pid} })
	second = n.Command("sleep", "300")
	proctest.Run(t, second)
	require.Eventually(t, func() bool {
		id, err := netns.OfPID("/proc", second.Process.Pid)
		return err == nil && id == n.number(t)
	}, time.Minute, time.Millisecond)
	opt := *n.opt.Load()
	opt.PIDs = []int{n.process.Process.Pid, second.Process.Pid}
	require.NoError(t, n.reconfigure(opt))
	n.scan(t)

	_, err := n.order.Write([]byte("\n"))
	require.NoError(t, err)
	n.moved(t, func(id netns.ID) bool { return id == 0 })
	n.Sysctl(t, "net.core.somaxconn", "77")
	n.listen(t, 8080)
	ns := n.scan(t).NetNS[0]
	require.Equal(t, 77, ns.Sysctl["somaxconn"])
	require.Equal(t, 1, ns.Sockstat["inuse"])
}

// Values that could not be read again are old, and that is said.
func TestSysctlsThatCannotBeReadAgain(t *testing.T) {
	l := newLab(t, nil)
	require.True(t, l.scan(t).Self.SourceUp["sysctl"])
	n := l.lister.Namespaces.All[0]
	l.faults.sysctl[n.ID] = os.ErrPermission
	n.ReadSysctls(time.Now().Add(time.Hour), 10*time.Second)
	values, ok := n.Sysctl()
	require.NotEmpty(t, values)
	require.False(t, ok)
	l.publish(false)
	require.False(t, l.Snapshot().Self.SourceUp["sysctl"])
}
