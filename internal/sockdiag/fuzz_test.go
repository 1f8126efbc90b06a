package sockdiag

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

func seed(f *testing.F, m *mutate.Target) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.bin")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(f, err)
		m.Add(b)
	}
}

// FuzzReply decodes datagrams of anything as every kind of reply.
func FuzzReply(f *testing.F) {
	m := mutate.Into(f)
	seed(f, m)
	m.Fuzz(func(t *testing.T, b []byte) {
		for len(b) > 0 {
			m, rest, err := nextMessage(b)
			if err != nil {
				require.True(t, errors.Is(err, ErrMalformed) || errors.Is(err, ErrTruncated))
				return
			}
			require.Less(t, len(rest), len(b), "progress")
			b = rest
			_ = m.errno()
			decodeBody(t, m.body)
		}
	})
}

// FuzzBody leaves the outer lengths right, to get deeper.
func FuzzBody(f *testing.F) {
	m := mutate.Into(f)
	for _, name := range []string{"lookup_ipv4", "lookup_ipv6", "dump_listen", "scan"} {
		for _, body := range captureF(f, name) {
			m.Add(body)
		}
	}
	m.Fuzz(decodeBody)
}

func captureF(f *testing.F, name string) (bodies [][]byte) {
	f.Helper()
	for _, m := range capture(f, name) {
		bodies = append(bodies, m.body)
	}
	return bodies
}

func decodeBody(t *testing.T, body []byte) {
	var l Listener
	var s Socket
	errL, errS := l.decode(body), s.decode(body)
	if errS != nil {
		require.ErrorIs(t, errS, ErrMalformed)
		require.ErrorIs(t, errL, ErrMalformed)
		return
	}
	require.True(t, errL == nil || errors.Is(errL, errState))
	require.Equal(t, s.Local, l.Local)
	require.Equal(t, s.HasInfo, s.Info.Size >= tcpInfoTimes)
	require.Equal(t, l.HasDrops || l.Drops == 0, true)
	require.Equal(t, l.Cookie, s.Cookie)
	require.Equal(t, s.HasInfo || s.Info == TCPInfo{}, true)
	require.False(t, s.LocalAddress().Addr().Is4In6())
	require.False(t, s.RemoteAddress().Addr().Is4In6())
}

// FuzzLookup: whatever is asked for encodes to the one length and is itself a
// well-formed message.
func FuzzLookup(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte{127, 0, 0, 1}, uint16(8080), uint32(0))
	m.Add(make([]byte, 16), uint16(8080), uint32(1))
	m.Fuzz(func(t *testing.T, ip []byte, port uint16, iface uint32) {
		addr, ok := netip.AddrFromSlice(ip)
		if !ok {
			return
		}
		id := ListenerID{Family: FamilyIPv6, Local: netip.AddrPortFrom(addr, port), Interface: iface}
		if addr.Is4() {
			id.Family = FamilyIPv4
		}
		require.True(t, id.valid())
		b := appendLookup(nil, id)
		finish(b, 7)
		m, rest, err := nextMessage(b)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Len(t, m.body, 56, "struct inet_diag_req_v2")
		got, _ := decodeAddr(id.Family, m.body[12:28])
		require.Equal(t, addr, got)
	})
}

// FuzzConnection: whatever is asked for encodes to the one length, and what is
// asked for stands where the kernel looks for it.
func FuzzConnection(f *testing.F) {
	m := mutate.Into(f)
	m.Add([]byte{127, 0, 0, 1}, []byte{10, 0, 0, 1}, uint16(8080), uint16(40000), uint64(7))
	m.Add(make([]byte, 16), make([]byte, 16), uint16(8080), uint16(1), uint64(1)<<63)
	m.Fuzz(func(t *testing.T, local, remote []byte, sport, dport uint16, cookie uint64) {
		from, _ := netip.AddrFromSlice(local)
		to, _ := netip.AddrFromSlice(remote)
		id := ConnectionID{Family: FamilyIPv6, Local: netip.AddrPortFrom(from, sport), Remote: netip.AddrPortFrom(to, dport), Interface: 3, Cookie: cookie}
		if from.Is4() {
			id.Family = FamilyIPv4
		}
		if !id.valid() {
			return
		}
		b := appendConnection(nil, &id, extension(diagInfo))
		finish(b, 7)
		m, rest, err := nextMessage(b)
		require.NoError(t, err)
		require.Empty(t, rest)
		require.Len(t, m.body, 56, "struct inet_diag_req_v2")
		// From idiag_sport on it is laid out as in struct inet_diag_msg.
		var got diagMsg
		reply := append([]byte{id.Family, 0, 0, 0}, m.body[8:]...)
		require.NoError(t, got.decode(append(reply, make([]byte, diagMsgLen)...)))
		require.Equal(t, id, ConnectionID{got.family, got.local, got.remote, got.iface, got.cookie})
	})
}

// FuzzConnectionReply answers an exact request with anything: the callback is
// given the socket asked for, or an error, once.
func FuzzConnectionReply(f *testing.F) {
	m := mutate.Into(f)
	for _, body := range captureF(f, "scan") {
		m.Add(body)
	}
	m.Fuzz(func(t *testing.T, body []byte) {
		id := ConnectionID{
			Family: FamilyIPv4, Cookie: 7,
			Local: netip.MustParseAddrPort("127.0.0.1:8080"), Remote: netip.MustParseAddrPort("127.0.0.1:40000"),
		}
		answers := 0
		a := connectionAsks{conn: new(Conn), ids: []ConnectionID{id}, fn: func(i int, s *Socket, err error) {
			answers++
			require.Zero(t, i)
			require.True(t, err == nil && s.Cookie == 7 || errors.Is(err, ErrNotFound) || errors.Is(err, ErrMalformed))
		}}
		a.decode(0, body)
		require.Equal(t, 1, answers)
	})
}
