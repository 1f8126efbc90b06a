package connections

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

func TestMatcher(t *testing.T) {
	at := netip.MustParseAddrPort
	listeners := map[string]Bound{
		"specific": {at("127.0.0.1:8080"), 0},
		"wildcard": {at("0.0.0.0:8080"), 0},
		"on eth0":  {at("0.0.0.0:8080"), 7},
		"v6":       {at("[::]:8080"), 0},
		"dual":     {at("[::]:9090"), 0},
		"v6 only":  {at("[::1]:7070"), 0},
	}
	m := &Matcher{Listeners: make(map[Bound]*Found)}
	names := make(map[*Found]string)
	for name, b := range listeners {
		g := new(Found)
		m.Listeners[b], names[g] = g, name
	}
	tests := map[string]struct {
		local  string
		device uint32
		want   string
	}{
		"bound address":            {"127.0.0.1:8080", 0, "specific"},
		"mapped, bound address":    {"[::ffff:127.0.0.1]:8080", 0, "specific"},
		"same family's wildcard":   {"10.0.0.1:8080", 0, "wildcard"},
		"bound to the device":      {"10.0.0.1:8080", 7, "on eth0"},
		"another device":           {"10.0.0.1:8080", 8, "wildcard"},
		"IPv6":                     {"[fd00::1]:8080", 0, "v6"},
		"dual-stack takes IPv4":    {"10.0.0.1:9090", 0, "dual"},
		"dual-stack takes mapped":  {"[::ffff:10.0.0.1]:9090", 0, "dual"},
		"dual-stack takes IPv6":    {"[fd00::1]:9090", 0, "dual"},
		"no listener":              {"10.0.0.1:7070", 0, ""},
		"left by a former process": {"10.0.0.1:1234", 0, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := m.Find(&sockdiag.Socket{Local: at(tt.local), Interface: tt.device})
			require.Equal(t, tt.want, names[got])
		})
	}
}

// A client of the namespace itself whose SYN has no answer is one of the listener's that it connects to.
func TestTried(t *testing.T) {
	at := netip.MustParseAddrPort
	for name, tt := range map[string]struct {
		socket sockdiag.Socket
		want   int
	}{
		"over loopback":                   {tried("127.0.0.1:40000", "127.0.0.1:8080", 1, 300), 1},
		"mapped":                          {tried("[::ffff:127.0.0.1]:40000", "[::ffff:127.0.0.1]:8080", 1, 300), 1},
		"to an address of its own":        {tried("10.0.0.1:40000", "10.0.0.1:8080", 2, 300), 1},
		"to another host":                 {tried("10.0.0.1:40000", "10.0.0.2:8080", 2, 300), 0},
		"to another port":                 {tried("127.0.0.1:40000", "127.0.0.1:8081", 1, 300), 0},
		"its first SYN, a while ago":      {tried("127.0.0.1:40000", "127.0.0.1:8080", 0, 300), 1},
		"its first SYN":                   {tried("127.0.0.1:40000", "127.0.0.1:8080", 0, 700), 0},
		"its latest was sent just now":    {tried("127.0.0.1:40000", "127.0.0.1:8080", 1, 970), 0},
		"its latest was sent a while ago": {tried("127.0.0.1:40000", "127.0.0.1:8080", 1, 50), 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := new(Found)
			m := &Matcher{Listeners: map[Bound]*Found{{Local: at("[::]:8080")}: f}}
			if found := m.Tried(&tt.socket); found != nil {
				found.Try(&tt.socket)
			}
			require.Equal(t, tt.want, f.Counts.LocalTrying)
		})
	}
}

// tried is a client's socket whose timer fires in some milliseconds.
func tried(from, to string, repeated uint8, expires uint32) sockdiag.Socket {
	return sockdiag.Socket{
		State: sockdiag.SynSent, Local: netip.MustParseAddrPort(from), Remote: netip.MustParseAddrPort(to), Inode: 1, Expires: expires,
		HasInfo: true, Info: sockdiag.TCPInfo{Retransmits: repeated, RTO: time.Second},
	}
}
