package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOutcomesSayWhatClientsSaw(t *testing.T) {
	var o Outcomes
	for i := range 3 {
		o.add(OK, time.Duration(3-i)*time.Second, nil)
	}
	for range 7 {
		o.add(ConnectTimeout, time.Second, os.ErrDeadlineExceeded)
	}
	o.add(Unfinished, 0, nil)
	c := o.clone()
	require.Equal(t, "3 ok, 7 connect timeout, 1 unfinished; latency p50 2.00 s, p95 3.00 s, max 3.00 s", c.String())
	require.Equal(t, 11, c.Total())
	require.Equal(t, 7, c.Lost())
	require.Equal(t, []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, c.Latencies)

	o.add(OK, time.Second, nil)
	require.Len(t, c.Latencies, 3, "a copy stands still")
}

func TestPercentileIsNearestRank(t *testing.T) {
	o := Outcomes{Latencies: []time.Duration{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}
	for _, tc := range []struct {
		p    float64
		want time.Duration
	}{{0, 1}, {.1, 1}, {.11, 2}, {.5, 5}, {.95, 10}, {1, 10}} {
		require.Equal(t, tc.want, o.Percentile(tc.p), "%v", tc.p)
	}
	require.Zero(t, Outcomes{}.Percentile(.5))
}

func TestFirstLocalErrorIsKept(t *testing.T) {
	var o Outcomes
	o.add(ConnectTimeout, 0, os.ErrDeadlineExceeded)
	require.NoError(t, o.LocalError)
	o.add(Local, 0, syscall.EADDRNOTAVAIL)
	o.add(Local, 0, syscall.EMFILE)
	require.ErrorIs(t, o.LocalError, syscall.EADDRNOTAVAIL)
	require.Equal(t, 1, o.Lost(), "this machine's own limits are no loss of the server's")
}

func TestConnectOutcome(t *testing.T) {
	wrap := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		want Outcome
	}{
		{t.Context(), wrap(syscall.ECONNREFUSED), Refused},
		{t.Context(), wrap(syscall.ECONNRESET), Reset},
		{t.Context(), wrap(syscall.ETIMEDOUT), ConnectTimeout},
		{t.Context(), wrap(syscall.EADDRNOTAVAIL), Local},
		{t.Context(), wrap(syscall.EMFILE), Local},
		{t.Context(), wrap(syscall.ENETUNREACH), Local},
		{ended, context.Canceled, Unfinished},
	} {
		require.Equal(t, tc.want, connectOutcome(tc.ctx, tc.err), "%v", tc.err)
	}
}

func TestExchangeOutcome(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		ctx  context.Context
		err  error
		want Outcome
	}{
		{t.Context(), nil, OK},
		{t.Context(), os.ErrDeadlineExceeded, ReadTimeout},
		{t.Context(), syscall.ETIMEDOUT, ReadTimeout},
		{t.Context(), fmt.Errorf("read: %w", syscall.ECONNRESET), Reset},
		{t.Context(), syscall.EPIPE, Reset},
		{t.Context(), io.ErrUnexpectedEOF, Closed},
		{t.Context(), io.EOF, Closed},
		{t.Context(), errors.New("malformed HTTP response"), BadAnswer},
		{t.Context(), errGaveUp, Unfinished},
		{ended, net.ErrClosed, Unfinished},
	} {
		require.Equal(t, tc.want, exchangeOutcome(tc.ctx, tc.err), "%v", tc.err)
	}
}

func TestEveryOutcomeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := OK; o < numOutcomes; o++ {
		require.NotEmpty(t, o.String())
		require.False(t, seen[o.String()], o.String())
		seen[o.String()] = true
	}
}
