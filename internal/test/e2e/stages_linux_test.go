package e2e

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// stages are the clients of a server that is full.
type stages struct {
	placed []*crowd // of one client each: they have a connection, or a place in the accept queue
	lost   *crowd   // the others, nil without any: each one's SYN is dropped
}

// fill lets o.Clients come to a server, each when the one before is where it
// belongs, and those that find no place all at once. Where they came by the clock,
// a machine that stands still for a moment would have more come than the queue
// holds before the acceptor wakes up; and of those that come at the same time two
// may get the queue's last place (see AcceptQueue.Capacity).
func fill(t *testing.T, o demo.BurstOptions, inside, queue int) *stages {
	t.Helper()
	s, rest := new(stages), o.Clients-inside-queue
	port := portOf(t, o.Address)
	o.Clients, o.Rate = 1, 0
	for range inside {
		s.enter(t, o)
		nettest.Within(t, time.Minute, "it is accepted", func() bool { return queued(t, "self", port) == 0 })
	}
	for range queue {
		s.enter(t, o)
	}
	require.Equal(t, queue, queued(t, "self", port), "the accept queue")
	if o.Clients = rest; rest > 0 {
		s.lost = clients(t, o)
	}
	return s
}

// enter lets one client connect.
func (s *stages) enter(t *testing.T, o demo.BurstOptions) {
	t.Helper()
	c := clients(t, o)
	c.connected(t, 1)
	s.placed = append(s.placed, c)
}

// outcomes waits for those of the clients that got a place.
func (s *stages) outcomes(t *testing.T, limit time.Duration) demo.Outcomes {
	t.Helper()
	deadline := time.Now().Add(limit)
	var sum demo.Outcomes
	for _, c := range s.placed {
		o := c.outcomes(t, time.Until(deadline))
		for kind, n := range o.Count {
			sum.Count[kind] += n
		}
	}
	return sum
}

// queued is the length of a listener's accept queue (sk_ack_backlog), -1 without
// one: the receive queue of its line in a process's /proc/…/net/tcp6.
func queued(t *testing.T, process string, port int) int {
	t.Helper()
	table, err := os.ReadFile("/proc/" + process + "/net/tcp6")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(table)) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) && f[3] == "0A" {
			n, err := strconv.ParseInt(f[4][strings.IndexByte(f[4], ':')+1:], 16, 32)
			require.NoError(t, err)
			return int(n)
		}
	}
	return -1
}

func portOf(t *testing.T, address string) int {
	t.Helper()
	_, text, err := net.SplitHostPort(address)
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	return port
}
