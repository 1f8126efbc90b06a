package facts

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
)

// Of a process that listens nowhere else that is known, unless somebody listens of whom nothing is.
func TestOtherPorts(t *testing.T) {
	at := func(port uint16, pid int) *Listening {
		l := &Listening{ID: model.ListenerID{NetNS: 1, Address: netip.AddrPortFrom(netip.IPv6Unspecified(), port)}}
		if pid != 0 {
			l.Owner = &owner.Process{PID: pid}
		}
		return l
	}
	one := at(8009, 42)
	others := func(all ...*Listening) []uint16 {
		return (&Watchlist{All: append(all, one)}).OtherPorts(&Watched{Listening: one})
	}
	require.Equal(t, []uint16{}, others())
	require.Equal(t, []uint16{}, others(at(22, 1)))
	require.Equal(t, []uint16{8080}, others(at(22, 1), at(8080, 42)))
	require.Nil(t, others(at(22, 0)))
}

// A port that has been down for long hides no other's closing.
func TestDown(t *testing.T) {
	at := func(minute int) time.Time { return time.Unix(int64(60*minute), 0) }
	var down Down
	list := func(minute int, up ...bool) time.Time {
		w := Watchlist{At: at(minute)}
		for i, up := range up {
			w.Targets = append(w.Targets, model.Target{Port: uint16(8080 + i), Up: up})
		}
		down = w.Down(down)
		return down.Latest()
	}
	require.Zero(t, list(1, true, true))
	require.Equal(t, at(2), list(2, false, true))
	require.Equal(t, at(2), list(3, false, true))
	require.Equal(t, at(60), list(60, false, false), "the other one")
	require.Equal(t, at(60), list(61, false, false))
	require.Equal(t, at(2), list(62, false, true))
	require.Zero(t, list(63, true, true))
	require.Equal(t, at(64), list(64, false, true), "again")
}
