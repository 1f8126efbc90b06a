package shares

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

func ledger() *Ledger { return NewLedger(slog.New(slog.DiscardHandler), time.Now) }

func TestClient(t *testing.T) {
	for remote, want := range map[string]string{
		"10.0.0.1:80":               "10.0.0.1",
		"[::ffff:10.0.0.1]:80":      "10.0.0.1",
		"[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64",
		"[2001:db8:1:2:ffff::1]:80": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":         "fe80::/64",
		"[::1]:80":                  "loopback",
		"127.8.9.1:80":              "loopback",
		"[::ffff:127.0.0.1]:80":     "loopback",
		"host(2):1024":              "host(2)",
		"no port":                   "no port",
	} {
		require.Equal(t, want, Client(remote), remote)
	}
}

// A newcomer takes from who has most, down to an equal share and no further.
func TestPlaces(t *testing.T) {
	l := ledger()
	slots := NewSlots(8, l.Resource("slots"))
	lost := 0
	for range 8 {
		require.NotNil(t, slots.Take("greedy", func() { lost++ }))
	}
	require.Nil(t, slots.Take("greedy", nil), "its own are not closed for its next")
	var others []*Slot
	for range 4 {
		p := slots.Take("other", func() { t.Error("the smaller one loses nothing") })
		require.NotNil(t, p)
		others = append(others, p)
	}
	require.Equal(t, 4, lost)
	require.Nil(t, slots.Take("other", nil), "half each")
	require.Nil(t, slots.Take("greedy", nil))
	others[0].Leave()
	others[0].Leave()
	require.NotNil(t, slots.Take("third", nil))
	require.Equal(t, []model.Share{{Resource: "slots", Refused: 3, Evicted: 4}}, l.Counts())
}

// However many owners come, there are never more slots than that, and nothing of
// who has left remains.
func TestPlacesByChurn(t *testing.T) {
	slots := NewSlots(8, ledger().Resource("slots"))
	for i := range 10_000 {
		if p := slots.Take(fmt.Sprint(i), func() {}); p != nil && i%3 == 0 {
			p.Leave()
		}
		require.LessOrEqual(t, len(slots.slots), 8)
	}
	require.LessOrEqual(t, cap(slots.slots), 32)
}

// Whoever has many waiting has one turn, and then it is another's.
func TestTurnsGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger()
		turns := NewTurns(1, 5, l.Resource("turns"))
		require.True(t, turns.Take(t.Context(), "greedy"))
		var order []string
		wait := func(owner string) {
			go func() {
				if turns.Take(t.Context(), owner) {
					order = append(order, owner)
					turns.Leave()
				}
			}()
			synctest.Wait()
		}
		for range 7 {
			wait("greedy")
		}
		wait("a")
		wait("b")
		wait("a")
		turns.Leave()
		synctest.Wait()
		require.Equal(t, "greedy a b greedy a greedy greedy greedy", strings.Join(order, " "))
		require.EqualValues(t, 2, l.Counts()[0].Refused)
		require.Equal(t, 1, turns.free)
		require.Empty(t, turns.round)
		require.Empty(t, turns.waiting)
	})
}

// Who goes away leaves no turn behind, nor takes one with him.
func TestTurnsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(1, 5, ledger().Resource("turns"))
		require.True(t, turns.Take(t.Context(), "a"))
		for i := range 1000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			require.False(t, turns.Take(ctx, fmt.Sprint(i)))
			cancel()
		}
		require.Empty(t, turns.round)
		require.Empty(t, turns.waiting)
		turns.Leave()
		require.True(t, turns.Take(t.Context(), "b"))
	})
}

// The log names who it was, once a minute, without what a terminal would obey.
func TestLedgerSays(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := NewLedger(slog.New(slog.NewTextHandler(&out, nil)), func() time.Time { return now })
	r := l.Resource("streams")
	for range 3 {
		r.Evicted("10.0.0.1\x1b[2J")
	}
	now = now.Add(time.Minute)
	r.Refused("10.0.0.2")
	require.Same(t, r, l.Resource("streams"))
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
	require.Contains(t, out.String(), "refused=10.0.0.2 since_last_line=3")
	require.NotContains(t, out.String(), "\x1b")
}
