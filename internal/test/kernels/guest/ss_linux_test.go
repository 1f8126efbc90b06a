package guest

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// iproute2's ss of an old and of a new release says of a full accept queue what
// sockdiag says.
func TestSS(t *testing.T) {
	inGuest(t)
	for _, release := range []string{"old", "new"} {
		t.Run(release, func(t *testing.T) {
			dir := "/opt/ss-" + release
			if !exists(dir) {
				t.Skip("not for this architecture")
			}
			b := newBench(t, 5)
			b.Do(func() { nettest.Queue(t, b.l.Addr, 6) })
			ss := func(args ...string) []string {
				cmd := b.Command(dir+"/ld-linux-x86-64.so.2", append([]string{"--library-path", dir, dir + "/ss"}, args...)...)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				return strings.Fields(string(out))
			}
			l := b.listener(t)
			require.Equal(t, []string{"LISTEN", strconv.Itoa(int(l.RecvQ)), strconv.Itoa(int(l.SendQ)), b.l.Addr.String()}, ss("-tlnH")[:4])
			inQueue := 0
			require.NoError(t, b.diag.Sockets([]uint16{b.l.Addr.Port()}, sockdiag.Connected(), func(*sockdiag.Socket) error {
				inQueue++
				return nil
			}))
			established := strings.Count(strings.Join(ss("-tnH", "state", "established", "sport", "=", strconv.Itoa(int(b.l.Addr.Port()))), " "), b.l.Addr.String()+" ")
			require.Equal(t, inQueue, established)
			report("ss of "+release+" iproute2", "%s: the same queue and connections", ss("-V")[2])
		})
	}
}

// systemd's own loader reads what the packages bring for modules-load.d.
func TestModulesLoad(t *testing.T) {
	inGuest(t)
	const dir = "/opt/systemd"
	if !exists(dir) {
		t.Skip("not for this architecture")
	}
	require.NoError(t, os.MkdirAll("/usr/lib/modules-load.d", 0o755))
	require.NoError(t, os.MkdirAll("/usr/lib/modules", 0o755))
	forbid(t)
	require.ErrorIs(t, probe(t), sockdiag.ErrNotSupported)
	content, err := os.ReadFile(shipped + "tcpdiag.modules")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("/usr/lib/modules-load.d/tcpdiag.conf", content, 0o644))
	run(t, dir+"/ld-linux-x86-64.so.2", "--library-path", dir, dir+"/systemd-modules-load")
	require.True(t, loaded(t, "tcp_diag"))
	require.NoError(t, probe(t))
	report("modules-load.d of the packages", "loads tcp_diag where requests do not")
}
