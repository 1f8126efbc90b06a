package clients_test

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/clients/accounts"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// silent is a tap that sees nothing.
type silent struct {
	fake
	end func()
}

func (s *silent) Close() error { s.end(); return nil }

// tapped follows snapshots, and knows the namespaces that have a tap.
type tapped struct {
	*clients.Follower
	state  *accounts.State
	open   map[uint64]bool
	opened int
}

func newTapped() *tapped {
	s, t := (*model.Snapshot)(nil), &tapped{open: make(map[uint64]bool)}
	t.Follower = clients.NewFollower(clients.Auto, source{&s}, func(w clients.Where) (clients.Tap, error) {
		if t.open[w.NetNS] {
			return nil, errors.New("a second tap")
		}
		t.open[w.NetNS] = true
		t.opened++
		return &silent{end: func() { delete(t.open, w.NetNS) }}, nil
	})
	return t
}

func listenerOf(netns uint64, uid uint32) model.Listener {
	return model.Listener{ID: model.ListenerID{NetNS: netns, Address: netip.MustParseAddrPort("10.0.0.1:8080")}, Port: 8080, User: &uid, Inode: 1}
}

// A user makes namespaces by the thousand, which come first and come and go: those of others are followed all the same, and
// theirs are not left for it.
func TestTapsAreShared(t *testing.T) {
	const attacker, host = 1000, 1 << 40
	f := newTapped()
	now := time.Date(2026, 5, 4, 3, 0, 0, 0, time.UTC)
	look := func(list ...model.Listener) *model.Snapshot {
		now = now.Add(time.Second)
		s := &model.Snapshot{Time: now, Interval: time.Minute, Listeners: list}
		require.NoError(t, f.Tend(s))
		require.LessOrEqual(t, len(f.open), 64)
		return add(f.Follower, &f.state, s)
	}
	crowd := func(from, n int) (list []model.Listener) {
		for i := range n {
			list = append(list, listenerOf(uint64(from+i), attacker))
		}
		return append(list, listenerOf(host, attacker)) // among the host's own, too
	}
	look(crowd(1, 400)...)
	require.Len(t, f.open, 64)

	var honest []model.Listener
	for uid := range uint32(40) {
		honest = append(honest, listenerOf(host, 5000), listenerOf(1<<32+uint64(uid), 2000+uid))
	}
	s := look(append(crowd(1, 400), honest...)...)
	opened := f.opened
	for i := range honest {
		require.True(t, f.open[honest[i].ID.NetNS], "%+v", honest[i].ID)
	}
	require.Len(t, f.open, 64)
	require.Contains(t, fmt.Sprint(s.Unavailable), "handshakes of 377 network namespaces")
	look(append(crowd(1, 400), honest...)...)
	require.Equal(t, opened, f.opened, "nobody takes a tap from another again and again")

	for n := range 200 {
		look(append(crowd(1000*n, 400), honest...)...)
		for i := range honest {
			require.True(t, f.open[honest[i].ID.NetNS])
		}
	}
	require.LessOrEqual(t, f.opened-opened, 200*23, "those of others stay open")
	look(honest...)
	require.Len(t, f.open, 41)
	require.NoError(t, f.Close())
	require.Empty(t, f.open)
}
