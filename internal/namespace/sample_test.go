package namespace

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Of a namespace with a hundred thousand listeners a dump takes 50 ms, which all others wait for. Where a sample takes one, as of
// listeners that share an address, the next is a while later; the other listeners of the namespace are sampled meanwhile.
func TestExpensiveDumps(t *testing.T) {
	one, two, other := listening(8080, 1), listening(8080, 2), listening(9090, 3)
	s := &script{listeners: []sockdiag.Listener{one, two, other}}
	n, now := scripted(t, s)
	id := func(l *sockdiag.Listener) model.ListenerID { return model.ListenerID{NetNS: 7, Address: l.Address()} }
	n.Watch(now, []Listening{
		{ID: id(&one), Members: []sockdiag.Listener{one, two}}, {ID: id(&other), Members: []sockdiag.Listener{other}},
	})
	clock, dumps, cost := now, 0, 50*time.Millisecond
	n.fast.cost = func(fn func() error) (time.Duration, error) { return cost, fn() }
	s.during = func(call string) {
		if call == "Listeners" {
			dumps++
			clock = clock.Add(cost)
		}
	}
	second := func() {
		dumps, s.lookups = 0, 0
		for end := clock.Add(time.Second); clock.Before(end); clock = clock.Add(10 * time.Millisecond) {
			require.False(t, n.Sample(clock, time.Minute, true).Any())
		}
		for _, r := range n.Readings() {
			require.False(t, r.Closed)
		}
	}
	second()
	require.Contains(t, []int{1, 2}, dumps)
	require.Greater(t, s.lookups, 50)
	cost = 100 * time.Microsecond // as usual
	second()
	second()
	require.Greater(t, dumps, 90)

	cost = 50 * time.Millisecond
	second()
	s.listeners = []sockdiag.Listener{one, two}
	for end := clock.Add(time.Second); clock.Before(end); clock = clock.Add(10 * time.Millisecond) {
		n.Sample(clock, time.Minute, true)
	}
	require.Equal(t, []bool{false, true}, []bool{n.Readings()[0].Closed, n.Readings()[1].Closed}, "one that closes is found by the next dump")
}
