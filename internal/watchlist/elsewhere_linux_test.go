package watchlist

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// A process in another namespace is a stranger there, and what listens there is known of any.
func TestListenersElsewhere(t *testing.T) {
	proc := hostfs.Real(t)
	ns := nettest.Namespace(t)
	sleep := ns.Command("sleep", "60")
	proctest.Run(t, sleep)
	ns.Do(func() {
		l := nettest.Listen(t, nettest.ListenOptions{Address: "0.0.0.0:0", Backlog: 5})
		var there []int
		require.Eventually(t, func() bool {
			for _, pids := range strangers(proc) {
				if len(pids) > 0 && pids[0] == sleep.Process.Pid {
					there = pids
				}
			}
			return there != nil
		}, time.Minute, 20*time.Millisecond)
		require.Equal(t, []model.Elsewhere{{Port: l.Addr.Port(), PID: sleep.Process.Pid}}, listenersOf(proc, there, new(hostproc.MostDescriptors)))
	})
}

// The name of a process in another namespace is its own choice.
func TestNamesElsewhere(t *testing.T) {
	proc := hostfs.Real(t)
	ns := nettest.Namespace(t)
	nettest.Root(t)
	script := "import socket,sys,time\ns=socket.socket();s.bind(('127.0.0.1',8080));s.listen(5)\nopen('/proc/self/comm','w').write('a\\x1b[2J\\u202eb')\nprint('ready',flush=True);time.sleep(600)"
	python := ns.Command("python3", "-c", script)
	out, err := python.StdoutPipe()
	require.NoError(t, err)
	if err := python.Start(); err != nil {
		t.Skip("no python3")
	}
	t.Cleanup(func() { _ = python.Process.Kill(); _ = python.Wait() })
	_, err = out.Read(make([]byte, 8))
	require.NoError(t, err)
	require.Equal(t, []model.Elsewhere{{Port: 8080, PID: python.Process.Pid, Comm: `a\x1b[2J\u202eb`}}, listenersOf(proc, []int{python.Process.Pid}, new(hostproc.MostDescriptors)))
}
