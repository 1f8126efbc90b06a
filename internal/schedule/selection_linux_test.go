package schedule

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/hostfs"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// A port of a process whose descriptors may not be read: something listens
// there, and whose it is cannot be known.
func TestPortOfAProcessThatMayNotBeRead(t *testing.T) {
	port := ""
	if os.Geteuid() == 0 {
		port = strconv.Itoa(int(nettest.Listen(t, nettest.ListenOptions{Backlog: 5}).Addr.Port()))
	}
	nobody, port := nettest.AsNobody(t, port)
	if !nobody {
		return
	}
	number, err := strconv.ParseUint(port, 10, 16)
	require.NoError(t, err)
	proc := hostfs.Real(t)
	opt := Defaults()
	opt.Targets = []watchlist.Target{{PID: os.Getppid(), Ports: []uint16{uint16(number)}, Limits: watchlist.Overrides{MaxThreads: watchlist.ByHand(new(7), "tcpdiag.yml line 3")}}}
	s, err := New(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc), Discovery: discovery.NewDiscoverer(proc)}}, opt)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.NoError(t, s.Scan(context.Background()))

	snap := s.Snapshot()
	got := only(t, snap)
	require.True(t, got.Listening())
	require.True(t, got.Expected)
	require.Nil(t, got.Process)
	require.Equal(t, 7, got.Connector.MaxThreads.Value, "it may be the one that the settings are for")
	require.Equal(t, model.StatusOK, got.Verdict.Status)
	require.Equal(t, []model.Target{{Port: got.Port, NetNS: got.ID.NetNS, Up: true}}, snap.Targets)
	require.Equal(t, []string{fmt.Sprintf("port %s: whose listener %s is cannot be known; it may be pid %d's", port, got.ID, os.Getppid())}, snap.Notes)
	var how string
	for _, u := range snap.Unavailable {
		if u.What == "owner of "+got.ID.String() {
			how = u.How
		}
	}
	require.Equal(t, "run as uid 0 with the same gid, or with CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH", how)
}

// What another process serves is not down, nor is it the one's that was named.
func TestPortThatAnotherProcessHolds(t *testing.T) {
	l := newLab(t, nil) // l.pid is a bystander: what listens belongs to this test
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	port := server.Addr.Port()
	l.change(t, func(o *Options) {
		o.All, o.Inside = false, nil
		o.Targets = []watchlist.Target{{
			PID: l.pid, Ports: []uint16{port, 1}, Labels: map[string]string{"app": "shop"},
			Limits: watchlist.Overrides{MaxThreads: watchlist.ByHand(new(7), "tcpdiag.yml line 3")},
		}}
	})
	snap := l.scan(t)
	ns := snap.NetNS[0].ID
	require.Equal(t, []model.Target{{Port: port, NetNS: ns, Up: true}, {Port: 1, NetNS: ns}}, snap.Targets)
	require.Len(t, snap.Listeners, 2)
	got := snap.Listeners[0]
	require.Equal(t, server.Addr, got.ID.Address)
	require.Equal(t, os.Getpid(), got.Process.PID)
	require.Equal(t, model.StatusOK, got.Verdict.Status)
	require.True(t, got.Connector == nil || got.Connector.MaxThreads == nil, "that limit was said of another process")
	require.Equal(t, model.StatusDown, snap.Listeners[1].Verdict.Status, "nobody listens on port 1")
	require.Equal(t, []string{fmt.Sprintf("port %d is not pid %d's: pid %d (%s) holds %s", port, l.pid, os.Getpid(), got.Process.Comm, server.Addr)}, snap.Notes)

	require.Equal(t, []model.TargetInfo{
		{Port: port, NetNS: ns, Labels: map[string]string{"app": "shop"}},
		{Port: 1, NetNS: ns, Labels: map[string]string{"app": "shop"}},
	}, snap.TargetInfos, "labels are the port's")

	l.change(t, func(o *Options) {
		o.Inside, o.Targets = []int{l.pid}, []watchlist.Target{{Ports: []uint16{port}}, {PID: l.pid, Ports: []uint16{port}}}
	})
	require.Empty(t, l.scan(t).Notes, "the port was also named whoever holds it")
}

// More listeners than may be watched: those beyond are there all the same.
func TestPortBeyondTheLimitIsNotDown(t *testing.T) {
	l := newLab(t, nil)
	a, b := l.listen(t, nettest.ListenOptions{Backlog: 5}), l.listen(t, nettest.ListenOptions{Backlog: 5})
	l.change(t, func(o *Options) {
		o.All, o.MaxListeners, o.Ports = false, 1, []uint16{a.Addr.Port(), b.Addr.Port()}
	})
	snap := l.scan(t)
	require.Equal(t, model.StatusOK, only(t, snap).Verdict.Status)
	require.Equal(t, 1, snap.Omitted)
	for _, target := range snap.Targets {
		require.True(t, target.Up, target.Port)
	}
}
