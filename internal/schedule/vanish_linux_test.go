package schedule

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// A server stops listening and starts again on the same socket. What a sample
// has seen closed is read again, and its next end counts again.
func TestSocketThatListensAgain(t *testing.T) {
	for name, listeners := range map[string]int{"exact requests": 1, "LISTEN dump": 13 + 8} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			// A port of the kernel's choice would be another one the next time.
			server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:9000", Backlog: 5})
			for range listeners - 1 {
				l.listen(t, nettest.ListenOptions{Backlog: 5})
			}
			l.scan(t)
			l.queue(t, server.Addr, 3)
			l.Sample()
			server.Shutdown(t)
			l.Sample()
			server.Relisten(t, 5)
			l.scan(t)
			l.Sample()
			require.EqualValues(t, 3, l.totals(t, server).QueueResets)
			sampled := l.totals(t, server).Fill.Count

			l.queue(t, server.Addr, 6)
			l.Sample()
			got := l.of(t, l.scan(t), server)
			require.Greater(t, got.Totals.Fill.Count, sampled, "it is sampled")
			require.Equal(t, 6, *got.AcceptQueue.Peak)

			l.overflow(t, server.Addr, 10)
			l.awaken()
			l.Sample()
			require.True(t, l.awaken(), "its drops bring the next scan forward")
			require.EqualValues(t, 10, l.of(t, l.scan(t), server).Losses.DroppedPackets)

			server.Close()
			l.Sample()
			require.EqualValues(t, 3+6, l.totals(t, server).QueueResets)
		})
	}
}

// A server that is being replaced shares its address with the next one for a
// while (SO_REUSEPORT): that another socket answers for it resets nobody.
func TestSiblingJoinsTheAddress(t *testing.T) {
	l := newLab(t, func(o *Options) { o.Thresholds.Passing = time.Hour }) // however long the test takes
	former := l.listen(t, nettest.ListenOptions{Backlog: 20, ReusePort: true})
	l.scan(t)
	l.queue(t, former.Addr, 5)
	l.Sample()
	require.Equal(t, 5, *l.of(t, l.scan(t), former).AcceptQueue.Peak)
	l.awaken()
	for !l.answersForAnother(former) {
		l.listen(t, nettest.ListenOptions{Address: former.Addr.String(), Backlog: 20, ReusePort: true})
	}
	l.Sample()
	require.True(t, l.awaken(), "who has joined is to be watched soon")
	l.Sample()
	require.False(t, l.awaken(), "that is known by now")
	got := only(t, l.scan(t))
	require.Greater(t, got.Members, 1)
	require.Zero(t, got.Losses.QueueResets)
	require.Equal(t, model.StatusOK, got.Verdict.Status, got.Verdict.Summary)
	require.Equal(t, 5, *got.AcceptQueue.Peak)

	former.Close()
	l.Sample()
	got = only(t, l.scan(t))
	require.EqualValues(t, 5, got.Losses.QueueResets, "once")
	require.Equal(t, model.CauseListenerClosed, got.Verdict.Cause)
}

// One that closes in the same moment as the other joins is missed all the same.
func TestSiblingTakesTheAddressOver(t *testing.T) {
	l := newLab(t, nil)
	former := l.listen(t, nettest.ListenOptions{Backlog: 20, ReusePort: true})
	l.scan(t)
	l.queue(t, former.Addr, 5)
	l.Sample()
	l.listen(t, nettest.ListenOptions{Address: former.Addr.String(), Backlog: 20, ReusePort: true})
	former.Close()
	l.Sample()
	require.EqualValues(t, 5, only(t, l.scan(t)).Losses.QueueResets)
}

// inet_diag continues a dump by position in the bucket: when a socket closes
// between two of its messages, the one behind it in the bucket is left out.
func TestDumpLeavesOutWhoListens(t *testing.T) {
	const members = 700 // of which a message holds some two hundred
	for name, scanned := range map[string]bool{"a sample's": false, "a scan's": true} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			group := []*nettest.Listener{l.listen(t, nettest.ListenOptions{Backlog: 5, ReusePort: true})}
			for range members - 1 {
				group = append(group, l.listen(t, nettest.ListenOptions{Address: group[0].Addr.String(), Backlog: 5, ReusePort: true}))
			}
			require.Equal(t, members, only(t, l.scan(t)).Members)
			l.faults.heard = func(found *sockdiag.Listener) {
				for _, server := range group {
					if server.Inode == found.Inode && len(group) == members {
						server.Close()
						group = group[1:]
					}
				}
			}
			if scanned {
				require.Equal(t, members-1, only(t, l.scan(t)).Members)
			} else {
				l.Sample()
			}
			require.Less(t, len(group), members, "one has closed during the dump")
			require.Zero(t, l.totals(t, group[0]).QueueResets)
			require.Equal(t, members-1, only(t, l.scan(t)).Members)
		})
	}
}

// of is a server's listener in a snapshot.
func (l *lab) of(t *testing.T, s *model.Snapshot, server *nettest.Listener) *model.Listener {
	t.Helper()
	for i := range s.Listeners {
		if s.Listeners[i].ID.Address == server.Addr {
			return &s.Listeners[i]
		}
	}
	require.Fail(t, "not listed", server.Addr)
	return nil
}

// totals are a server's as of now.
func (l *lab) totals(t *testing.T, server *nettest.Listener) model.Totals {
	t.Helper()
	var out *model.Totals
	l.lister.Namespaces.All[0].Books(func(b *losses.Books) {
		for id, a := range b.Accounts() {
			if id.Address == server.Addr {
				out = new(a.Totals())
			}
		}
	})
	require.NotNil(t, out, server.Addr)
	return *out
}

// awaken reports whether a scan has been asked for since the last time.
func (l *lab) awaken() bool {
	rung := false
	for _, b := range []bell{l.bells.list, l.bells.walk} {
		select {
		case <-b:
			rung = true
		default:
		}
	}
	return rung
}

// answersForAnother reports whether the exact request for a socket is answered by
// another one at its address.
func (l *lab) answersForAnother(server *nettest.Listener) bool {
	var found sockdiag.Listener
	id := sockdiag.ListenerID{Family: sockdiag.FamilyIPv4, Local: server.Addr}
	var err error
	l.Do(func() {
		var c *sockdiag.Conn
		if c, err = sockdiag.Dial(); err == nil {
			err = c.Lookup(id, server.Inode, &found)
			_ = c.Close()
		}
	})
	return err != nil
}

// A program can redirect the exact request's lookup for good (BPF_SK_LOOKUP):
// here it goes to a port on which nobody listens. The dump shows the listener,
// which does not bring every scan forward.
func TestListenerThatIsFoundByDumpsOnly(t *testing.T) {
	l := newLab(t, nil)
	server := l.listen(t, nettest.ListenOptions{Backlog: 5})
	l.queue(t, server.Addr, 4)
	for scans, soon := range []bool{true, false, false} {
		l.scan(t)
		l.faults.redirected = true
		l.Sample()
		require.Equal(t, soon, l.awaken())
		l.Sample()
		require.False(t, l.awaken())
		require.EqualValues(t, 2*(scans+1), l.totals(t, server).Fill.Count)
		require.Zero(t, l.totals(t, server).QueueResets)
	}
}
