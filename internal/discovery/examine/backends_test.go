package examine

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/discovery/springboot"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func addresses(list ...string) (out []netip.Addr) {
	for _, text := range list {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

func TestParseHosts(t *testing.T) {
	got := parseHosts(strings.NewReader("# written by the kubelet\n127.0.0.1\tlocalhost\n::1 localhost ip6-localhost\n" +
		"10.0.3.7 DB.shop db # orders\n::ffff:10.0.3.8 db\nfe80::1%eth0 zoned\nnot-an-address x\n10.0.0.1\n" +
		"10.0.3.7 db\n10.0.3.9 db\n10.0.3.10 db\n10.0.3.11 db\n"))
	require.Equal(t, map[string][]netip.Addr{
		"localhost": addresses("127.0.0.1", "::1"), "ip6-localhost": addresses("::1"),
		"db.shop": addresses("10.0.3.7"), "db": addresses("10.0.3.7", "10.0.3.8", "10.0.3.9", "10.0.3.10"),
	}, got)
	require.Empty(t, parseHosts(strings.NewReader(strings.Repeat("x", 1<<20))))
}

// Addresses come from the text itself and from what is known without asking: where
// there is no hosts file, localhost alone.
func TestBackendsWithoutHostsFile(t *testing.T) {
	target := &target{files: &files{root: folder{err: errNotItsUser}}}
	pool := &model.Pool{Library: "HikariCP", Setting: "x", Size: model.Setting[int]{Value: 10, Kind: model.SourceDefault}}
	got := backendsOf(target, []springboot.Backend{
		{Name: "orders", Pool: pool, Hosts: []springboot.HostPort{{Host: "10.0.3.7", Port: 5432}, {Host: "db", Port: 5433}, {Host: "db2", Port: 5433}}},
		{Name: "redis", Hosts: []springboot.HostPort{{Host: "LocalHost", Port: 6379}}},
	})
	require.Equal(t, []model.Backend{
		{Name: "orders", Pool: pool, At: []netip.AddrPort{netip.MustParseAddrPort("10.0.3.7:5432")}, Ports: []uint16{5433}},
		{Name: "redis", At: []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:6379"), netip.MustParseAddrPort("[::1]:6379")}},
	}, got)
	later := doubtEnvironment().backends(got)
	require.True(t, later[0].Pool.Size.Uncertain)
	require.False(t, got[0].Pool.Size.Uncertain, "what was handed on stays")
}

func TestBackendsCross(t *testing.T) {
	e := &Examination{Found: match.Found{Server: model.ServerJVM().Name, Backends: []model.Backend{
		{Name: "orders", At: []netip.AddrPort{netip.MustParseAddrPort("10.0.3.7:5432")}, Ports: []uint16{5433}, Pool: &model.Pool{
			Library: "HikariCP", Setting: "spring.datasource.hikari.maximum-pool-size",
			Size: model.Setting[int]{Value: 10, Kind: model.SourceFile, Source: "application.yml", Note: "n", Uncertain: true},
		}},
		{Name: "redis", Ports: []uint16{6379}},
	}}}
	cross := func() *Examination {
		text, err := e.encode()
		require.NoError(t, err)
		got, err := decode(bytes.NewReader(text))
		require.NoError(t, err)
		return got
	}
	require.Equal(t, e.Found.Backends, cross().Found.Backends)

	e.Found.Backends[0].Pool.Size.Source = "\x1b[31m" + strings.Repeat("x", 10_000)
	e.Found.Backends[0].At = make([]netip.AddrPort, 1000)
	for i := range e.Found.Backends[0].At {
		e.Found.Backends[0].At[i] = netip.MustParseAddrPort("10.0.3.7:5432")
	}
	for range 100 {
		e.Found.Backends = append(e.Found.Backends, e.Found.Backends[1])
	}
	got := cross().Found.Backends
	require.Len(t, got, maxBackends)
	require.Len(t, got[0].At, maxAt)
	require.NotContains(t, got[0].Pool.Size.Source, "\x1b")
	require.LessOrEqual(t, len(got[0].Pool.Size.Source), maxText)
}

func TestInvalidBackends(t *testing.T) {
	with := func(change func(*model.Pool)) []wireBackend {
		p := &model.Pool{Library: "HikariCP", Setting: "x", Size: model.Setting[int]{Value: 10, Kind: model.SourceFile, Source: "f"}}
		change(p)
		return []wireBackend{{Name: "orders", Pool: p}}
	}
	valid := with(func(*model.Pool) {})
	for name, list := range map[string][]wireBackend{
		"many":        make([]wireBackend, maxBackends+1),
		"no name":     {{}},
		"credentials": {{Name: "user:secret@db"}},
		"control":     {{Name: "a\x1bb"}},
		"long":        {{Name: strings.Repeat("x", 65)}},
		"addresses":   {{Name: "x", At: make([]netip.AddrPort, maxAt+1)}},
		"no address":  {{Name: "x", At: make([]netip.AddrPort, 1)}},
		"no port":     {{Name: "x", At: []netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:0")}}},
		"zone":        {{Name: "x", At: []netip.AddrPort{netip.MustParseAddrPort("[fe80::1%eth0]:1")}}},
		"port 0":      {{Name: "x", Ports: []uint16{0}}},
		"ports":       {{Name: "x", Ports: make([]uint16, maxPorts+1)}},
		"size 0":      with(func(p *model.Pool) { p.Size.Value = 0 }),
		"size":        with(func(p *model.Pool) { p.Size.Value = maxPoolSize + 1 }),
		"kind":        with(func(p *model.Pool) { p.Size.Kind = model.SourceActuator }),
		"library":     with(func(p *model.Pool) { p.Library = "a b" }),
		"setting":     with(func(p *model.Pool) { p.Setting = "a=b" }),
		"source":      with(func(p *model.Pool) { p.Size.Source = "a\nb" }),
		"note":        with(func(p *model.Pool) { p.Size.Note = "\u202e" }),
	} {
		text, err := json.Marshal(answer{Server: model.ServerJVM().Name, Backends: list})
		require.NoError(t, err)
		_, err = decode(bytes.NewReader(text))
		require.ErrorIs(t, err, errAnswer, name)
	}
	require.NoError(t, checkBackends(valid))
}
