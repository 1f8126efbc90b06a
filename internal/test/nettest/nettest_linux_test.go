package nettest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/netns"
)

func TestNamespaceIsAnother(t *testing.T) {
	ns := Namespace(t)
	home, err := netns.Current()
	require.NoError(t, err)
	ns.Do(func() {
		here, err := netns.Current()
		require.NoError(t, err)
		require.NotEqual(t, home, here)
		dev, err := os.ReadFile("/proc/thread-self/net/dev")
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(dev), ":"), "only lo:\n%s", dev)
	})
	again, err := netns.Current()
	require.NoError(t, err)
	require.Equal(t, home, again)
}

func TestSysctlStaysInside(t *testing.T) {
	const file = "/proc/sys/net/core/somaxconn"
	outside, err := os.ReadFile(file)
	require.NoError(t, err)
	ns := Namespace(t)
	ns.Sysctl(t, "net.core.somaxconn", "17")
	ns.Do(func() {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, "17\n", string(b))
	})
	after, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, outside, after)
}

func TestCommandRunsInside(t *testing.T) {
	ns := Namespace(t)
	out, err := ns.Command("readlink", "/proc/self/ns/net").Output()
	require.NoError(t, err)
	var inside string
	ns.Do(func() {
		inside, err = os.Readlink("/proc/thread-self/ns/net")
		require.NoError(t, err)
	})
	require.Equal(t, inside, strings.TrimSpace(string(out)))
}

func TestQueueAndAccept(t *testing.T) {
	ns := Namespace(t)
	var l *Listener
	ns.Do(func() {
		l = Listen(t, ListenOptions{Backlog: 3})
		Queue(t, l.Addr, 4)
	})
	require.Len(t, l.Accept(t, 4), 4)
}

func TestOverflowCountsOneEach(t *testing.T) {
	ns := Namespace(t)
	ns.Do(func() {
		l := Listen(t, ListenOptions{Backlog: 1})
		Queue(t, l.Addr, 2)
		Overflow(t, l.Addr, 25)
		count := TCPExt(t)
		require.EqualValues(t, 25, count("ListenOverflows"))
		require.EqualValues(t, 25, count("ListenDrops"))
	})
}

func TestHalfOpenOverVeth(t *testing.T) {
	a, b := Namespace(t), Namespace(t)
	_, server := Veth(t, a, b)
	var l *Listener
	b.Do(func() { l = Listen(t, ListenOptions{Address: server.String() + ":0", Backlog: 50}) })
	a.Do(func() {
		HalfOpen(t, l.Addr, 1, 30)
		Queue(t, l.Addr, 2)
	})
	b.Do(func() {
		// Behind a busy CPU the softirqs that deliver the SYNs come a little later.
		path := fmt.Sprintf("/proc/self/task/%d/net/tcp", unix.Gettid())
		require.Eventually(t, func() bool {
			tcp, err := os.ReadFile(path)
			return err == nil && strings.Count(string(tcp), " 03 ") == 30 // SYN_RECV
		}, time.Minute, 10*time.Millisecond)
	})
}
