package guest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// One walk gives both families' sockets of the wanted ports, and of the wanted
// control group (5.9).
func TestFilters(t *testing.T) {
	inGuest(t)
	b := newBench(t, 10)
	var six, other *nettest.Listener
	b.Do(func() {
		six = nettest.Listen(t, nettest.ListenOptions{Address: "[::1]:0", Backlog: 10})
		other = nettest.Listen(t, nettest.ListenOptions{Backlog: 10})
		for _, l := range []*nettest.Listener{b.l, six, other} {
			nettest.Queue(t, l.Addr, 3)
		}
	})
	ports := sockdiag.PortsOf(b.l.Addr.Port())
	ports.Add(six.Addr.Port())
	families, fields := map[uint8]int{}, 0
	walk := func(group uint64) error {
		clear(families)
		return b.diag.Walk(sockdiag.Wanted{Ports: ports, States: sockdiag.Connected(), Info: true, Cgroup: group}, func(s *sockdiag.Socket) error {
			families[s.Family]++
			if s.HasInfo && s.Cookie != 0 && s.Cgroup != 0 {
				fields++
			}
			return nil
		})
	}
	want := map[uint8]int{sockdiag.FamilyIPv4: 3, sockdiag.FamilyIPv6: 3}
	require.NoError(t, walk(0))
	require.Equal(t, want, families)
	report("fields of a connection", "tcp_info, cookie%s", map[bool]string{true: ", control group"}[fields == 6])
	const root = 1 // the inode of the root of cgroup v2
	err := walk(root)
	if errors.Is(err, sockdiag.ErrNotSupported) {
		report("filters of a walk", "ports, both families at once")
		return
	}
	require.NoError(t, err)
	require.Equal(t, want, families)
	report("filters of a walk", "ports, both families at once; control group")
}

// What a tracer of kfree_skb is given as the reason of a drop, and whether a full
// accept queue is one of them.
func TestDropReasons(t *testing.T) {
	inGuest(t)
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tracefs", "none", dir).CombinedOutput(); err != nil {
		report("drop reasons", "no tracefs (%s)", strings.TrimSpace(string(out)))
		return
	}
	t.Cleanup(func() { run(t, "umount", dir) })
	format, err := os.ReadFile(dir + "/events/skb/kfree_skb/format")
	require.NoError(t, err)
	switch text := string(format); {
	case !strings.Contains(text, "reason"):
		report("drop reasons", "none")
	case strings.Contains(text, "LISTEN_OVERFLOW"):
		report("drop reasons", "yes, a full accept queue too (TCP_LISTEN_OVERFLOW)")
	default:
		report("drop reasons", "yes, none for a full accept queue")
	}
}
