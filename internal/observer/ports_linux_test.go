package observer

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Outgoing connections near the range of ephemeral ports are the process's that
// holds them. TIME_WAIT sockets of others use ports, too.
func TestScriptedOutgoing(t *testing.T) {
	w := usingPorts(t, nil)
	w.scanned()
	w.pass(time.Minute)
	var l *model.Listener
	for range 30 {
		l = w.only(w.second())
	}
	require.NotNil(t, l.Process.Busiest)
	require.Equal(t, 90, l.Process.Busiest.Ports)
	require.Equal(t, "10.0.0.9:5432", l.Process.Busiest.Address.String())
	require.Equal(t, model.StatusWarning, l.Verdict.Status, "%+v", l.Limits)
	require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause)
}

// usingPorts is a machine of 100 ephemeral ports whose server uses 90 of them
// towards one peer. (No more: the search for owners continues a long list of
// descriptors where it stopped, which only /proc lists in their order.)
func usingPorts(t *testing.T, change func(*Options)) *world {
	t.Helper()
	k := newKernel(listensOn(8080, 1))
	k.sysctls["ip_local_port_range_max"] = 32768 + 99
	inodes := []uint32{1}
	for i := range 90 {
		inodes = append(inodes, 5000+uint32(i))
	}
	w := newWorld(t, k, change)
	w.holds(serverPID, inodes...)
	k.sockets = towards(90, 5000)
	k.sockstat = map[string]int{"inuse": 90, "tw": 0}
	return w
}

// Both readings of a one-shot have the ports, however short its interval is.
func TestScriptedOutgoingOfAOneShot(t *testing.T) {
	for _, interval := range []time.Duration{0, 200 * time.Millisecond, time.Second} {
		w := usingPorts(t, func(o *Options) { o.Now = time.Now })
		require.NoError(t, w.Observe(t.Context(), interval))
		l := w.only(w.Snapshot())
		require.Equal(t, model.CauseEphemeralPorts, l.Verdict.Cause, "%v: %+v", interval, l.Limits)
	}
}

// towards are n connections of ephemeral ports to one peer, with the inodes
// from first on.
func towards(n int, first uint32) (out []sockdiag.Socket) {
	for i := range n {
		out = append(out, sockdiag.Socket{
			Family: sockdiag.FamilyIPv4, State: sockdiag.Established, Inode: first + uint32(i),
			Local:  netip.AddrPortFrom(netip.MustParseAddr("10.0.0.1"), uint16(32768+i)),
			Remote: netip.MustParseAddrPort("10.0.0.9:5432"),
		})
	}
	return out
}
