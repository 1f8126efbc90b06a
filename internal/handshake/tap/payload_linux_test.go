package tap

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// Nothing behind the TCP header ever gets into the agent's memory (of a ClientHello the first byte), even while
// all segments of the clients are observed.
func TestNoPayload(t *testing.T) {
	ns := nettest.Namespace(t)
	w := world{server: ns, clients: ns, addr: netip.MustParseAddr("127.0.0.1")}
	l := w.listen(t, 5)
	var r *ring
	ns.Do(func() {
		var err error
		r, err = openRing(packet.Filter([]uint16{l.Addr.Port()}, packet.Reading{More: true}), small())
		require.NoError(t, err)
	})
	defer func() { require.NoError(t, r.close()) }()
	c := w.connect(t, l.Addr, 1)
	settled(t, c)
	secret := []byte("Cookie: JSESSIONID=0123456789ABCDEF")
	_, err := unix.Write(c[0].fd, secret)
	require.NoError(t, err)

	carried := false
	require.Eventually(t, func() bool {
		r.read(func(_ time.Duration, b []byte, link packet.Link) {
			s, err := packet.Decode(b, link)
			require.NoError(t, err)
			headers := packet.IPv4Header + int(b[packet.IPv4Header+12]>>4)*4
			require.Len(t, b, headers)
			carried = carried || link.Length == headers+len(secret)
			require.NotZero(t, s.Flags)
		})
		return carried
	}, 60*time.Second, time.Millisecond, "the packet with the request is seen")
	require.False(t, bytes.Contains(r.memory, secret[:4]))
}
