package demo

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// established reads the server's ESTABLISHED sockets from /proc/net/tcp: how
// many have an inode (accepted) and how many of those hold unread bytes.
func established(t *testing.T, port uint16) (accepted, unread, queued int) {
	t.Helper()
	f, err := os.Open("/proc/thread-self/net/tcp")
	require.NoError(t, err)
	defer f.Close()
	local := fmt.Sprintf(":%04X", port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if !strings.HasSuffix(fields[1], local) || fields[3] != "01" {
			continue
		}
		switch {
		case fields[9] == "0":
			queued++
		case !strings.HasSuffix(fields[4], ":00000000"):
			accepted, unread = accepted+1, unread+1
		default:
			accepted++
		}
	}
	return accepted, unread, queued
}

// The funnel of a Tomcat with threads 8, max-connections 10, accept-count 5:
// 8 in service, 2 unread, 6 (5 + 1) in the accept queue, the rest outside.
// Connect timeout 2 s; nobody is served before the test ends, so that a repeated SYN
// finds the queue full.
func TestServerAdmitsLikeTomcat(t *testing.T) {
	s := serve(t, ServerOptions{MaxConnections: 10, AcceptCount: 5, MaxThreads: 8, ServiceTime: time.Hour})
	load, _ := start(t, BurstOptions{
		Address:        s.Address().String(),
		Clients:        40,
		Rate:           50, // one handshake at a time: no final ACK meets a full queue
		ConnectTimeout: 2 * time.Second,
		RequestTimeout: time.Hour,
	})
	eventually(t, func() bool { return load.Now().Of(ConnectTimeout) == 24 }, "24 are turned away")
	require.Equal(t, 16, load.Now().Open)
	require.Equal(t, ServerStats{Connections: 10, Busy: 8}, s.Stats())
	accepted, unread, queued := established(t, s.Address().Port())
	require.Equal(t, []int{10, 2, 6}, []int{accepted, unread, queued}, "accepted, unread, in the accept queue")
	require.Equal(t, 24, load.Now().Lost())
}
