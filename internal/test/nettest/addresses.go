package nettest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Loopback is a random address of 127.0.0.0/8, for a listener that closes and opens
// again: on 127.0.0.1 its port may meanwhile be the source port of another test's
// client (ip_local_port_range).
func Loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}

// FreeAddress is an address of loopback that nothing listens on.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp4", Loopback()+":0")
	require.NoError(tb, err)
	require.NoError(tb, l.Close())
	return l.Addr().String()
}

// FreePorts are n ports that nothing listens on, for servers that bind every address.
// They are below those that the kernel gives to clients, from 32768 on
// (ip_local_port_range), so that none is taken before the server has started.
func FreePorts(tb testing.TB, n int) []int {
	tb.Helper()
	const first, last = 10_000, 32_000
	ports := make([]int, 0, n)
	for port := first + rand.IntN(last-first)/2; len(ports) < n; port++ {
		require.Less(tb, port, last, "no free ports")
		l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", ":"+strconv.Itoa(port))
		if err != nil {
			continue
		}
		require.NoError(tb, l.Close())
		ports = append(ports, port)
	}
	return ports
}
