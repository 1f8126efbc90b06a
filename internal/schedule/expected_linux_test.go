package schedule

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// rarePort is one that nothing else on the machine listens on, in no namespace,
// not even another run of these tests.
func rarePort() uint16 { return uint16(10000 + os.Getpid()%18000) }

func expectingRarePort(o *Options) { o.Ports = []uint16{rarePort()} }

func (p *pod) listenRarely(t *testing.T) (l *nettest.Listener) {
	t.Helper()
	o := nettest.ListenOptions{Address: fmt.Sprintf("0.0.0.0:%d", rarePort()), Backlog: 5}
	p.Do(func() { l = nettest.Listen(t, o) })
	return l
}

// A node agent's own namespace is one of many: that nothing listens in the
// agent's own pod is no finding, and on a node without such a pod there is none.
func TestAgentsOwnNamespaceIsNotExpectedToServe(t *testing.T) {
	n := newNode(t, expectingRarePort)
	snap := n.scan(t)
	require.Empty(t, snap.Targets)
	require.Empty(t, snap.Listeners)
	require.Equal(t, []string{fmt.Sprintf("nothing listens on port %d in any network namespace (looked into: %d)", rarePort(), len(n.lister.Namespaces.All))}, snap.Notes)

	p := newPod(t)
	l := p.listenRarely(t)
	snap = n.scan(t)
	require.Equal(t, []model.Target{{Port: rarePort(), NetNS: uint64(p.id), Up: true}}, snap.Targets)
	require.Empty(t, snap.Notes)
	l.Close()
	snap = n.scan(t)
	require.Equal(t, []model.Target{{Port: rarePort(), NetNS: uint64(p.id)}}, snap.Targets)
	require.Equal(t, p.of(snap), only(t, snap))
	require.Empty(t, snap.Notes)
}

// A single snapshot of a port that nothing listens on says so.
func TestOneShotLookSaysWhatIsNowhere(t *testing.T) {
	own, err := netns.Current()
	require.NoError(t, err)
	tests := map[string]struct {
		hidden int
		down   bool
		note   string
	}{
		"all were looked into": {0, true, "nothing listens on port %d in any network namespace (looked into: %d)"},
		"some may not be":      {2, false, "nothing listens on port %d in the network namespaces that could be looked into (%d); it may in the others (2)"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, expectingRarePort)
			n.scan(t)
			n.lister.Namespaces.Search.Hidden, n.lister.Namespaces.Search.Why = test.hidden, context.Canceled // until the next look for namespaces
			require.NoError(t, n.Observe(t.Context(), 0))
			snap := n.Snapshot()
			require.Equal(t, []string{fmt.Sprintf(test.note, rarePort(), len(n.lister.Namespaces.All))}, snap.Notes)
			if !test.down {
				require.Empty(t, snap.Listeners)
				return
			}
			require.Equal(t, []model.Target{{Port: rarePort(), NetNS: uint64(own)}}, snap.Targets)
			require.Equal(t, model.StatusDown, only(t, snap).Verdict.Status)
		})
	}
	t.Run("it is somewhere", func(t *testing.T) {
		n := newNode(t, expectingRarePort)
		p := newPod(t)
		p.listenRarely(t)
		require.NoError(t, n.Observe(t.Context(), 0))
		require.Equal(t, []model.Target{{Port: rarePort(), NetNS: uint64(p.id), Up: true}}, n.Snapshot().Targets)
		require.Equal(t, p.of(n.Snapshot()), only(t, n.Snapshot()))
	})
}

// A port that went down stays down, however long it lasts and however many
// others come and go: what is retained of counters has no part in it.
func TestDownOutlastsTheCounters(t *testing.T) {
	n := newNode(t, func(o *Options) { expectingRarePort(o); o.MaxListeners = 1 })
	first, second := newPod(t), newPod(t)
	l := first.listenRarely(t)
	n.scan(t)
	l.Close()
	n.scan(t)
	l = second.listenRarely(t)
	n.scan(t)
	l.Close()
	n.scan(t)
	n.space(first.id).Books(func(b *losses.Books) { require.Empty(t, b.Accounts(), "crowded out") })
	check := func() {
		t.Helper()
		snap := n.scan(t)
		for _, p := range []*pod{first, second} {
			require.NotNil(t, p.target(snap))
			require.False(t, p.target(snap).Up)
			require.Equal(t, model.StatusDown, p.of(snap).Verdict.Status)
			require.True(t, n.space(p.id).Open(), "what else is known of it is, too")
		}
	}
	check()
	n.now = n.now.Add(2 * losses.Retention)
	check()
	require.Empty(t, n.Snapshot().Retired)
	n.now = n.now.Add(24 * time.Hour)
	check()

	opt := *n.opt.Load()
	opt.Ports = []uint16{nodePort}
	require.NoError(t, n.reconfigure(opt))
	require.Empty(t, n.space(first.id).Served, "nobody asks for it any more")
	snap := n.scan(t)
	require.Nil(t, first.target(snap))
	n.scan(t)
	require.False(t, n.space(first.id).Open())
}

// A named process's namespace is looked into for everybody's ports, too, and its
// own port is expected there at once.
func TestNamedProcessAmongAllNamespaces(t *testing.T) {
	p := newPod(t)
	n := newNode(t, func(o *Options) {
		expectingRarePort(o)
		o.Targets = []watchlist.Target{{PID: p.pid, Ports: []uint16{nodePort}}}
	})
	down := model.Target{Port: nodePort, NetNS: uint64(p.id)}
	require.Equal(t, []model.Target{down}, n.scan(t).Targets)
	p.listenRarely(t)
	require.ElementsMatch(t, []model.Target{down, {Port: rarePort(), NetNS: uint64(p.id), Up: true}}, n.scan(t).Targets)
}
