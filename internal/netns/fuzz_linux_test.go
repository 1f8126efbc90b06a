package netns

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/mutate"
)

// attr is a struct nlattr, filled up to four bytes.
func attr(kind uint16, value ...byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(unix.SizeofNlAttr+len(value)))
	b = append(binary.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, -len(b)&(unix.NLA_ALIGNTO-1))...)
}

// FuzzAddressOf: an address, or none.
func FuzzAddressOf(f *testing.F) {
	m := mutate.Into(f)
	head := []byte{unix.AF_INET, 32, 0, 0, 7, 0, 0, 0} // struct ifaddrmsg
	local, other := attr(unix.IFA_LOCAL, 127, 0, 0, 1), attr(unix.IFA_ADDRESS, 10, 0, 0, 1)
	for _, attributes := range [][]byte{
		slices.Concat(other, local), slices.Concat(local, other), attr(unix.IFA_ADDRESS, make([]byte, 16)...),
		attr(unix.IFA_LOCAL, 127, 0, 0, 1, 9)[:9], // the last one is not filled up
		attr(unix.IFA_LOCAL), local[:7],
		{3, 0, 2, 0},
		nil,
	} {
		m.Add(slices.Concat(head, attributes))
	}
	m.Add(head[:7])
	m.Fuzz(func(t *testing.T, b []byte) {
		device, a, ok := addressOf(&syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWADDR}, Data: b})
		require.Equal(t, ok, a.IsValid())
		require.False(t, a.Is4In6())
		if ok {
			require.Equal(t, binary.NativeEndian.Uint32(b[4:]), device)
		}
	})
}

// FuzzLocalRoute: a range of addresses, or none.
func FuzzLocalRoute(f *testing.F) {
	m := mutate.Into(f)
	v4 := []byte{unix.AF_INET, 24, 0, 0, unix.RT_TABLE_LOCAL, 0, 0, unix.RTN_LOCAL, 0, 0, 0, 0} // struct rtmsg
	all6 := []byte{unix.AF_INET6, 0, 0, 0, unix.RT_TABLE_LOCAL, 0, 0, unix.RTN_LOCAL, 0, 0, 0, 0}
	to := attr(unix.RTA_DST, 192, 0, 2, 0)
	for _, message := range [][]byte{
		slices.Concat(v4, to), slices.Concat(v4, attr(unix.RTA_OIF, 1, 0, 0, 0), to), slices.Concat(v4, attr(unix.RTA_DST, make([]byte, 16)...)),
		slices.Concat(v4, attr(unix.RTA_DST, 192, 0, 2, 0, 9)[:9]), slices.Concat(v4, to[:7]), all6, v4[:11],
	} {
		m.Add(message)
	}
	m.Fuzz(func(t *testing.T, b []byte) {
		p, ok := localRoute(&syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: unix.RTM_NEWROUTE}, Data: b})
		require.Equal(t, ok, p.IsValid())
		if ok {
			require.Equal(t, int(b[1]), p.Bits())
		}
	})
}

// FuzzRuleOf: a rule whose name is of printable characters, and not long.
func FuzzRuleOf(f *testing.F) {
	m := mutate.Into(f)
	// tcp dport 9999 counter drop, and udp dport 53 counter reject, as Linux answers.
	for _, rule := range []string{
		"0d0001006669726577616c6c000000000a000200696e7075740000000c00030000000000000000021001040024000100090001006d6574610000000014000200080002000000001008000100000000012c00010008000100636d700020000200080001000000000108000200000000000c0003000500010006000000340001000c0001007061796c6f6164002400020008000100000000010800020000000002080003000000000208000400000000022c00010008000100636d700020000200080001000000000108000200000000000c00030006000100270f00002c0001000c000100636f756e746572001c0002000c00010000000000000000000c0002000000000000000000300001000e000100696d6d6564696174650000001c0002000800010000000000100002000c0002000800010000000000",
		"0d0001006669726577616c6c000000000a000200696e7075740000000c00030000000000000000030c00060000000000000000020401040024000100090001006d6574610000000014000200080002000000001008000100000000012c00010008000100636d700020000200080001000000000108000200000000000c0003000500010011000000340001000c0001007061796c6f6164002400020008000100000000010800020000000002080003000000000208000400000000022c00010008000100636d700020000200080001000000000108000200000000000c00030006000100003500002c0001000c000100636f756e746572001c0002000c00010000000000000000000c0002000000000000000000240001000b00010072656a65637400001400020008000100000000020500020001000000",
	} {
		b, err := hex.DecodeString(rule)
		require.NoError(f, err)
		m.Add(uint8(unix.NFPROTO_INET), b)
		r := ruleOf(unix.NFPROTO_INET, b)
		require.True(f, r.countsLosses(), "%+v", r)
	}
	// iptables-nft's: -p tcp --dport 8080 -j REJECT
	expression := func(name string, data ...byte) []byte {
		return attr(unix.NFTA_LIST_ELEM, slices.Concat(attr(unix.NFTA_EXPR_NAME, append([]byte(name), 0)...), attr(unix.NFTA_EXPR_DATA, data...))...)
	}
	ports := make([]byte, 12)
	binary.NativeEndian.PutUint16(ports[4:], 8080)
	binary.NativeEndian.PutUint16(ports[6:], 8080)
	iptables := slices.Concat(
		attr(unix.NFTA_RULE_TABLE, []byte("fil\x1bter\x00")...), attr(unix.NFTA_RULE_CHAIN, []byte(strings.Repeat("INPUT", 20))...),
		attr(unix.NFTA_RULE_EXPRESSIONS, slices.Concat(
			expression("match", slices.Concat(attr(unix.NFTA_MATCH_NAME, []byte("tcp\x00")...), attr(unix.NFTA_MATCH_INFO, ports...))...),
			expression("counter", attr(unix.NFTA_COUNTER_PACKETS, 0, 0, 0, 0, 0, 0, 0, 5)...),
			expression("target", attr(unix.NFTA_TARGET_NAME, []byte("REJECT\x00")...)...),
		)...),
	)
	m.Add(uint8(unix.NFPROTO_IPV4), iptables)
	r := ruleOf(unix.NFPROTO_IPV4, iptables)
	require.Equal(f, "nft ip fil?ter INPUTINPUTINPUTINPUTINPUTINPUTIN handle 0 reject dport 8080", r.name())
	require.Equal(f, uint64(5), r.packets)
	m.Add(uint8(0), attr(unix.NFTA_RULE_TABLE, 'a')[:5]) // the last one is not filled up
	m.Fuzz(func(t *testing.T, family uint8, b []byte) {
		r := ruleOf(family, b)
		require.Regexp(t, `^[ -~]{0,150}$`, r.name())
		require.Contains(t, []string{"", "drop", "reject"}, r.verdict)
	})
}
