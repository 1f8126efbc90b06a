package sockdiag

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func int32Bytes(v int32) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(v)) }

// listenerBody is the least that the kernel says of an IPv4 listener.
func listenerBody(local string, inode uint32) []byte {
	addr := netip.MustParseAddrPort(local)
	b := make([]byte, diagMsgLen)
	b[0], b[1] = FamilyIPv4, byte(Listen)
	binary.BigEndian.PutUint16(b[4:], addr.Port())
	ip := addr.Addr().As4()
	copy(b[8:], ip[:])
	binary.NativeEndian.PutUint32(b[68:], inode)
	return b
}

// capture reads messages that TestCapture has written: Linux 6.18, amd64.
func capture(tb testing.TB, name string) []message {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".bin"))
	require.NoError(tb, err)
	var all []message
	for len(b) > 0 {
		var m message
		m, b, err = nextMessage(b)
		require.NoError(tb, err)
		all = append(all, m)
	}
	return all
}

func TestDecodeCapturedLookup(t *testing.T) {
	var l Listener
	messages := capture(t, "lookup_ipv4")
	require.Len(t, messages, 1)
	require.NoError(t, l.decode(messages[0].body))
	require.Equal(t, Listener{
		ListenerID: ListenerID{Family: FamilyIPv4, Local: netip.MustParseAddrPort("127.0.0.1:8080")},
		Inode:      l.Inode, Cookie: l.Cookie,
		RecvQ: 6, SendQ: 5, Drops: 40, HasDrops: true, Cgroup: 1, HasOptions: true,
	}, l)
	require.NotZero(t, l.Inode)
	require.NotZero(t, l.Cookie)

	require.NoError(t, l.decode(capture(t, "lookup_ipv6")[0].body))
	require.Equal(t, "[::]:8081", l.Address().String())
	require.False(t, l.V6Only)
}

func TestDecodeCapturedError(t *testing.T) {
	messages := capture(t, "lookup_enoent")
	require.Len(t, messages, 1)
	require.EqualValues(t, nlmsgError, messages[0].typ)
	require.Equal(t, syscall.ENOENT, messages[0].errno())
}

func TestDecodeCapturedDump(t *testing.T) {
	type row struct {
		address string
		raw     string
		v6only  bool
		device  bool
	}
	var got []row
	for _, m := range capture(t, "dump_listen") {
		if m.typ == nlmsgDone {
			require.NoError(t, m.errno())
			continue
		}
		var l Listener
		require.NoError(t, l.decode(m.body))
		got = append(got, row{l.Address().String(), l.Local.String(), l.V6Only, l.Interface != 0})
	}
	require.ElementsMatch(t, []row{
		{"127.0.0.1:8080", "127.0.0.1:8080", false, false},
		{"[::]:8081", "[::]:8081", false, false},
		{"[::]:8082", "[::]:8082", true, false},
		{"127.0.0.1:8083", "[::ffff:127.0.0.1]:8083", false, false},
		{"0.0.0.0:8084", "0.0.0.0:8084", false, true},
		{"127.0.0.1:8085", "127.0.0.1:8085", false, false},
	}, got)
}

func TestDecodeCapturedScan(t *testing.T) {
	type kind struct {
		port  uint16
		state string
		info  bool
		owned bool
		recvQ uint32
	}
	got := map[kind]int{}
	for _, m := range capture(t, "scan") {
		if m.typ == nlmsgDone {
			continue
		}
		var s Socket
		require.NoError(t, s.decode(m.body))
		require.Equal(t, "127.0.0.1", s.LocalAddress().Addr().String())
		got[kind{s.Local.Port(), s.State.String(), s.HasInfo, s.Inode != 0, s.RecvQ}]++
	}
	require.Equal(t, map[kind]int{
		{8080, "ESTABLISHED", true, false, 0}: 6, // in the accept queue
		{8083, "ESTABLISHED", true, true, 12}: 1, // waiting
		{8083, "ESTABLISHED", true, true, 0}:  1, // answered
		{8083, "CLOSE_WAIT", true, true, 1}:   1, // its FIN counts one
		{8083, "TIME_WAIT", false, false, 0}:  1, //
		{8085, "SYN_RECV", false, false, 0}:   1, // TCP_DEFER_ACCEPT
	}, got)
}

// infoAttr finds the tcp_info of the answered connection of the capture.
func infoAttr(t *testing.T) []byte {
	t.Helper()
	for _, m := range capture(t, "scan") {
		var s Socket
		if m.typ == nlmsgDone || s.decode(m.body) != nil || s.Info.BytesSent == 0 {
			continue
		}
		for b := m.body[diagMsgLen:]; len(b) > 0; {
			typ, value, rest, err := nextAttr(b)
			require.NoError(t, err)
			if typ == diagInfo {
				return value
			}
			b = rest
		}
	}
	t.Fatal("no tcp_info with bytes sent in the capture")
	return nil
}

// TestDecodeOlderTCPInfo cuts the captured struct where older kernels end.
func TestDecodeOlderTCPInfo(t *testing.T) {
	full := infoAttr(t)
	for _, test := range []struct {
		size                      int
		ok, bytes, dataSegs, sent bool
	}{
		{len(full), true, true, true, true},
		{224, true, true, true, true},     // 4.19
		{200, true, true, true, false},    // 4.18
		{160, true, true, true, false},    // 4.6, 4.7
		{144, true, true, false, false},   // 4.2
		{136, true, false, false, false},  // 4.1
		{104, true, false, false, false},  // 2.6
		{103, false, false, false, false}, // none
		{0, false, false, false, false},
	} {
		var i TCPInfo
		require.Equal(t, test.ok, i.decode(full[:test.size]), test.size)
		require.Equal(t, test.bytes, i.HasBytes(), test.size)
		require.Equal(t, test.dataSegs, i.HasDataSegs(), test.size)
		require.Equal(t, test.sent, i.HasBytesSent(), test.size)
		require.Equal(t, test.bytes, i.BytesAcked == 3, test.size)
		require.Equal(t, test.dataSegs, i.DataSegsOut == 1, test.size)
		require.Equal(t, test.sent, i.BytesSent == 3, test.size)
	}
}

// TestDecodeOlderMemInfo: before 4.6 the array ends in front of the drops.
func TestDecodeOlderMemInfo(t *testing.T) {
	body := listenerBody("127.0.0.1:80", 1)
	attr := func(length int) []byte {
		b := binary.NativeEndian.AppendUint16(nil, uint16(attrHeaderLen+length))
		b = binary.NativeEndian.AppendUint16(b, diagSKMemInfo)
		for i := range length / 4 {
			b = binary.NativeEndian.AppendUint32(b, uint32(100+i))
		}
		return b
	}
	for _, test := range []struct {
		name  string
		attrs []byte
		has   bool
		drops uint32
	}{
		{"none", nil, false, 0},
		{"eight values", attr(32), false, 0},
		{"nine values", attr(36), true, 108},
		{"ten values", attr(40), true, 108},
		{"unknown attribute first", append([]byte{6, 0, 99, 0, 1, 2, 0, 0}, attr(36)...), true, 108},
		{"nested flag set", append([]byte{4, 0, 99, 0x80}, attr(36)...), true, 108},
		{"last one not padded", append(attr(36), 5, 0, diagSKV6Only, 0, 1), true, 108},
	} {
		var l Listener
		require.NoError(t, l.decode(append(body[:len(body):len(body)], test.attrs...)), test.name)
		require.Equal(t, test.has, l.HasDrops, test.name)
		require.Equal(t, test.drops, l.Drops, test.name)
	}
}

func TestDecodeMalformed(t *testing.T) {
	body := listenerBody("127.0.0.1:80", 1)
	for _, test := range []struct {
		name string
		body []byte
	}{
		{"empty", nil},
		{"one byte short", body[:diagMsgLen-1]},
		{"unknown family", append([]byte{1}, body[1:]...)},
		{"half an attribute header", append(body[:diagMsgLen:diagMsgLen], 4, 0, 7)},
		{"attribute shorter than its header", append(body[:diagMsgLen:diagMsgLen], 3, 0, 7, 0)},
		{"attribute beyond the end", append(body[:diagMsgLen:diagMsgLen], 8, 0, 7, 0)},
	} {
		var l Listener
		require.ErrorIs(t, l.decode(test.body), ErrMalformed, test.name)
		var s Socket
		require.ErrorIs(t, s.decode(test.body), ErrMalformed, test.name)
	}
}

// TestDiagMsgOffsets pins struct inet_diag_msg: each field alone is set.
func TestDiagMsgOffsets(t *testing.T) {
	for _, test := range []struct {
		name   string
		offset int
		want   diagMsg
	}{
		{"state", 1, diagMsg{state: 0xa5}},
		{"if", 40, diagMsg{iface: 0xa5}},
		{"cookie, low", 44, diagMsg{cookie: 0xa5}},
		{"cookie, high", 48, diagMsg{cookie: 0xa5 << 32}},
		{"rqueue", 56, diagMsg{rqueue: 0xa5}},
		{"wqueue", 60, diagMsg{wqueue: 0xa5}},
		{"uid", 64, diagMsg{uid: 0xa5}},
		{"inode", 68, diagMsg{inode: 0xa5}},
		{"expires", 52, diagMsg{expires: 0xa5}},
	} {
		b := make([]byte, diagMsgLen)
		if test.offset < 4 {
			b[test.offset] = 0xa5
		} else {
			binary.NativeEndian.PutUint32(b[test.offset:], 0xa5)
		}
		b[0] = FamilyIPv4
		var m diagMsg
		require.NoError(t, m.decode(b))
		zero := netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		test.want.family, test.want.local, test.want.remote, test.want.attrs = FamilyIPv4, zero, zero, []byte{}
		require.Equal(t, test.want, m, test.name)
	}

	b := make([]byte, diagMsgLen)
	for i := range b {
		b[i] = byte(i)
	}
	b[0] = FamilyIPv6
	var m diagMsg
	require.NoError(t, m.decode(b))
	require.Equal(t, "[809:a0b:c0d:e0f:1011:1213:1415:1617]:1029", m.local.String())
	require.Equal(t, "[1819:1a1b:1c1d:1e1f:2021:2223:2425:2627]:1543", m.remote.String())
}

func TestStateNames(t *testing.T) {
	require.Equal(t, "ESTABLISHED", Established.String())
	require.Equal(t, "SYN_RECV", SynRecv.String())
	require.Equal(t, "LISTEN", Listen.String())
	require.Equal(t, "CLOSING", Closing.String())
	require.Equal(t, "STATE_0", State(0).String())
	require.Equal(t, "STATE_12", State(12).String())
	require.EqualValues(t, 10, Listen)
	require.EqualValues(t, 0b1011_0111_1010, Connected())
}

func TestErrorText(t *testing.T) {
	err := wrap("scan", syscall.EPERM)
	require.EqualError(t, err, "sockdiag: scan: operation not permitted")
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorIs(t, err, syscall.EPERM)
	require.EqualError(t, wrap("dump", syscall.EAGAIN), "sockdiag: dump: no reply from the kernel")
	require.EqualError(t, wrap("dial", syscall.EPROTONOSUPPORT), "sockdiag: dial: not supported by this kernel")
	require.ErrorIs(t, wrap("dump", syscall.EOPNOTSUPP), ErrNoModule)
	require.ErrorContains(t, wrap("dump", syscall.EOPNOTSUPP), "`modprobe tcp_diag`")
	require.NotErrorIs(t, wrap("scan", ErrTruncated), ErrMalformed)
}

func TestMillis(t *testing.T) {
	require.Equal(t, 1500*time.Millisecond, millis(int32Bytes(1500)))
}
