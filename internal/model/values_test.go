package model

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestListenerIDString(t *testing.T) {
	at := netip.MustParseAddrPort
	tests := map[string]ListenerID{
		"[::]:8080":           {Address: at("[::]:8080")},
		"127.0.0.1:8080":      {Address: at("127.0.0.1:8080")},
		"0.0.0.0%eth0:8080":   {Address: at("0.0.0.0:8080"), Device: "eth0"},
		"[fe80::1]%eth0:8080": {Address: at("[fe80::1]:8080"), Device: "eth0"},
		"":                    {NetNS: 4026531840},
	}
	for want, id := range tests {
		require.Equal(t, want, id.String())
	}
}

// An accept queue of limit 5 holds 6: only then is it full, and the ratio 1.
func TestAcceptQueueHoldsOneMore(t *testing.T) {
	q := AcceptQueue{Length: 5, Limit: 5}
	require.False(t, q.Full())
	require.InDelta(t, 5.0/6, q.Ratio(), 1e-9)
	q.Length = 6
	require.True(t, q.Full())
	require.InDelta(t, 1, q.Ratio(), 1e-9)
	require.Equal(t, 6, q.Capacity())
}

func TestCapacity(t *testing.T) {
	limit := func(n int) *Connector { return &Connector{MaxConnections: &Setting[int]{Value: n}} }
	queue := &AcceptQueue{Limit: 100}
	require.Equal(t, 8293, *(&Listener{AcceptQueue: queue, Connector: limit(8192)}).Capacity())
	require.Nil(t, (&Listener{AcceptQueue: queue, Connector: limit(-1)}).Capacity(), "no limit, no capacity")
	require.Nil(t, (&Listener{AcceptQueue: queue}).Capacity(), "unknown")
	require.Nil(t, (&Listener{Connector: limit(8192)}).Capacity(), "nothing listens")
}

func TestFillHistogram(t *testing.T) {
	var h FillHistogram
	for _, ratio := range []float64{0, 0, .05, .1, .5, .75, 1, 1, 1.5} {
		h.Observe(ratio)
	}
	require.EqualValues(t, 9, h.Count)
	require.EqualValues(t, 2, h.Zero)
	require.Equal(t, map[float64]uint64{0: 2, .1: 4, .5: 5, .8: 6, 1: 8}, h.Classic(), "1.5 is beyond the last bound")
	var sum uint64
	for i, n := range h.Native() {
		upper := math.Exp2(float64(i) / 8)
		require.LessOrEqual(t, upper, 2.0)
		sum += n
	}
	require.Equal(t, h.Count-h.Zero, sum)
	require.EqualValues(t, 2, h.Native()[0], "bucket 0 ends at 1: full")
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Observe(.3) }))
}

func TestDurationHistogram(t *testing.T) {
	var h DurationHistogram
	for _, d := range []time.Duration{500 * time.Nanosecond, 15 * time.Microsecond, time.Minute} {
		h.Observe(d)
	}
	require.EqualValues(t, 3, h.Count)
	b := h.Buckets()
	require.EqualValues(t, 1, b[1e-6])
	require.EqualValues(t, 2, b[2e-5])
	require.EqualValues(t, 2, b[1], "a minute is beyond the last bound")
}

func TestCountersSub(t *testing.T) {
	base := Counters{"ListenDrops": 10, "OutRsts": 50, "gone": 1}
	now := Counters{"ListenDrops": 15, "OutRsts": 3, "new": 7}
	require.Equal(t, Counters{"ListenDrops": 5, "OutRsts": 3}, now.Sub(base), "a counter that fell began anew; without a base there is no difference")
}

func TestNames(t *testing.T) {
	for p := range NumPhases {
		require.NotEmpty(t, p.String())
	}
	for s := range NumStatuses {
		require.NotEmpty(t, s.String())
	}
}

func TestFirstResponseQuantiles(t *testing.T) {
	r := FirstResponses{
		Count: 100, Bounds: [NumResponseBuckets]float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		Buckets: [NumResponseBuckets]uint64{0, 0, 0, 50, 50, 90, 90, 90, 90, 90, 98},
	}
	for share, want := range map[float64]float64{.5: .1, .25: .075, .7: .375, .94: 20} {
		got, known := r.Quantile(share)
		require.True(t, known)
		require.InDelta(t, want, got, 1e-9, share)
	}
	_, known := r.Quantile(.99)
	require.False(t, known, "beyond the last bound")
	_, known = new(FirstResponses).Quantile(.5)
	require.False(t, known)
}

// A rule that was made within the interval counts whole, where the rules were read before.
func TestCountersOfNewRules(t *testing.T) {
	now := Counters{"ListenDrops": 9, "nft ip filter input handle 5 drop": 12, RulesRead: 4}
	require.Equal(t, Counters{"ListenDrops": 2, "nft ip filter input handle 5 drop": 12, RulesRead: 1}, now.Sub(Counters{"ListenDrops": 7, RulesRead: 3}))
	require.Equal(t, Counters{"ListenDrops": 2}, now.Sub(Counters{"ListenDrops": 7}), "of before nothing is known")
	require.Equal(t, Counters{"ListenDrops": 9}, now.Sub(Counters{"ListenDrops": 10}), "another namespace")
}

// So do the clients that were first refused at an address within it, where these were counted before.
func TestCountersOfRefusedClients(t *testing.T) {
	now := Counters{"refused 127.0.0.1:8080": 12, RefusedMissed: 1}
	require.Equal(t, Counters{"refused 127.0.0.1:8080": 12, RefusedMissed: 1}, now.Sub(Counters{RefusedMissed: 0}))
	require.Equal(t, Counters{}, now.Sub(Counters{}), "of before nothing is known")
}

func TestReached(t *testing.T) {
	for most, want := range map[int]int{1: 1, 7: 7, 8: 7, 49: 48, 100: 98, 8192: 8029} {
		require.Equal(t, want, ConnectionsReached(most), "maxConnections %d", most)
	}
	require.False(t, MostlyIdle(50, 100))
	require.True(t, MostlyIdle(51, 100))
	require.False(t, FilesReached(979, 1000))
	require.True(t, FilesReached(980, 1000))
}
