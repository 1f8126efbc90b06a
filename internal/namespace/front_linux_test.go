package namespace

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Of a namespace that packets may not be read of any user sees its own clients that a rule refuses, and that TCP itself
// has sent no reset.
func TestRefusedByARule(t *testing.T) {
	const port = "127.0.0.1:8080"
	nobody := false
	if os.Getuid() == 0 {
		ns := nettest.Namespace(t)
		if out, err := ns.Command("nft", "add table inet t; add chain inet t c { type filter hook input priority 0; }; "+
			"add rule inet t c tcp dport 8080 tcp flags & (syn | ack) == syn reject with tcp reset").CombinedOutput(); err != nil {
			t.Skipf("nft: %v %s", err, out)
		}
		ns.Do(func() { nobody, _ = nettest.AsNobody(t, "") })
	} else {
		nobody, _ = nettest.AsNobody(t, "")
	}
	if !nobody {
		return
	}
	l, err := net.Listen("tcp", port)
	require.NoError(t, err)
	defer l.Close()
	proc, err := hostproc.NewFS("/proc")
	require.NoError(t, err)
	n, err := Open(proc, "/proc", new(Shared), 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	before := make(model.Counters)
	require.NoError(t, n.Counters(before))
	for range 3 {
		_, err := net.Dial("tcp", port)
		require.ErrorIs(t, err, unix.ECONNREFUSED)
	}
	var moved model.Counters
	nettest.Within(t, time.Minute, "they are counted", func() bool {
		now := make(model.Counters)
		require.NoError(t, n.Counters(now))
		moved = now.Sub(before)
		return moved[model.RefusedPrefix+port] == 3
	})
	require.Zero(t, moved["OutRsts"])
}

// Nobody listens while no client fails, and what was not heard of meanwhile is said to be missed.
func TestRefusedRests(t *testing.T) {
	ns := nettest.Namespace(t)
	var r refused
	refuse := func() {
		ns.Do(func() {
			_, err := net.Dial("tcp", "127.0.0.1:8080")
			require.ErrorIs(t, err, unix.ECONNREFUSED)
		})
	}
	ns.Do(r.open)
	defer func() { require.NoError(t, r.close()) }()
	start := time.Now()
	fails := uint64(0)
	read := func(after time.Duration) (refused, missed uint64) {
		out := map[string]uint64{"AttemptFails": fails}
		r.read(out, start.Add(after))
		return out["refused 127.0.0.1:8080"], out[model.RefusedMissed]
	}
	read(0)
	read(refusedRest)
	require.True(t, r.resting)
	refuse()
	fails++
	n, missed := read(refusedRest + time.Second)
	require.False(t, r.resting)
	require.EqualValues(t, 1, missed)
	require.Zero(t, n)
	refuse()
	nettest.Within(t, time.Minute, "it is counted", func() bool {
		n, missed = read(refusedRest + 2*time.Second)
		return n > 0
	})
	require.EqualValues(t, 1, missed)
}

// A scan of closed ports, before and meanwhile, does not keep a listener's clients from being counted.
func TestRefusedBesideAScan(t *testing.T) {
	r := refused{counts: make(map[string]uint64)}
	at := func(port uint16) {
		r.take(&sockdiag.Socket{Remote: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)})
	}
	for port := range uint16(200) {
		at(1000 + port)
	}
	for i := range uint16(50) {
		at(8080)
		at(8080)
		at(2000 + i)
	}
	require.EqualValues(t, 100, r.counts[model.RefusedPrefix+"127.0.0.1:8080"])
	require.Len(t, r.counts, mostRefusing)
	require.NotZero(t, r.missed, "they are at least as many as are counted")
}
