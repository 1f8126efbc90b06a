package connections

import (
	"net/netip"
	"testing"

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
