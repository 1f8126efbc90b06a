package demo

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func small(clients int) Options {
	return Options{
		Server: ServerOptions{Address: "127.0.0.1:0", MaxConnections: 4, AcceptCount: 8, MaxThreads: 2, ServiceTime: 30 * time.Millisecond},
		Burst:  BurstOptions{Clients: clients, RequestTimeout: time.Minute},
		Every:  10 * time.Millisecond,
	}
}

func TestRunTellsItsStory(t *testing.T) {
	var events []Event
	o, err := Run(t.Context(), small(8), func(e Event) { events = append(events, e) })
	require.NoError(t, err)
	require.Equal(t, 8, o.Of(OK), o.String())

	var looks int
	var kinds []EventKind
	for i, e := range events {
		require.True(t, e.Address.IsValid())
		if i > 0 {
			require.GreaterOrEqual(t, e.Elapsed, events[i-1].Elapsed)
		}
		if e.Kind == Present {
			looks++
			continue
		}
		kinds = append(kinds, e.Kind)
	}
	require.Equal(t, []EventKind{Listening, BurstStarted, BurstEnded, Ended}, kinds)
	require.Positive(t, looks)
	require.Equal(t, 8, events[len(events)-1].Server.Served)
}

func TestRunEndsAfterItsTime(t *testing.T) {
	options := small(3)
	options.Server.ServiceTime = time.Hour
	options.For = 3 * time.Second // all three have come by then
	start := time.Now()
	o, err := Run(t.Context(), options, func(Event) {})
	require.NoError(t, err)
	require.Equal(t, 3, o.Of(Unfinished), o.String())
	require.Less(t, time.Since(start), time.Minute, "not after an hour")
}

func TestRunGoesOnUntilItsTime(t *testing.T) {
	options := small(1)
	options.For = 300 * time.Millisecond
	start := time.Now()
	o, err := Run(t.Context(), options, func(Event) {})
	require.NoError(t, err)
	require.Equal(t, 1, o.Of(OK), o.String())
	require.GreaterOrEqual(t, time.Since(start), options.For)
}

func TestRunEndsOnInterrupt(t *testing.T) {
	options := small(1)
	options.Delay = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, options, func(e Event) {
		if e.Kind == Listening {
			cancel()
		}
	})
	require.NoError(t, err)
}

func TestRunNeedsRoomForItsConnections(t *testing.T) {
	_, err := Run(t.Context(), small(1<<30), func(Event) {})
	require.ErrorContains(t, err, "open files")
	bad := small(0)
	_, err = Run(t.Context(), bad, func(Event) {})
	require.ErrorContains(t, err, "0 clients")
}

func TestReachable(t *testing.T) {
	for in, want := range map[string]string{
		"0.0.0.0:80":  "127.0.0.1:80",
		"[::]:80":     "[::1]:80",
		"127.0.0.2:8": "127.0.0.2:8",
	} {
		require.Equal(t, want, reachable(netip.MustParseAddrPort(in)).String())
	}
}
