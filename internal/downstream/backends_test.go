package downstream_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/downstream"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

func poolOf(size int) *model.Pool {
	return &model.Pool{Library: "HikariCP", Setting: "x", Size: model.Setting[int]{Value: size, Kind: model.SourceDefault}}
}

// byAddress and byPort are entries of a configuration.
func byAddress(name string, pool *model.Pool, at ...string) model.Backend {
	b := model.Backend{Name: name, Pool: pool}
	for _, a := range at {
		b.At = append(b.At, netip.MustParseAddrPort(a))
	}
	return b
}

func byPort(name string, ports ...uint16) model.Backend {
	return model.Backend{Name: name, Ports: ports, Pool: poolOf(10)}
}

func TestIdentify(t *testing.T) {
	type look func(*model.Downstream)
	const name, guess = "orders", "orders by port"
	tests := map[string]struct {
		peers    []string
		backends []model.Backend
		change   look
		want     []string
	}{
		"its address":               {[]string{"10.0.3.7:5432", "10.0.3.8:5432"}, []model.Backend{byAddress(name, nil, "10.0.3.7:5432")}, nil, []string{name, ""}},
		"a mapped one":              {[]string{"[::ffff:10.0.3.7]:5432"}, []model.Backend{byAddress(name, nil, "10.0.3.7:5432")}, nil, []string{name}},
		"two hosts of one URL":      {[]string{"10.0.3.7:5432", "10.0.3.8:5432"}, []model.Backend{byAddress(name, nil, "10.0.3.7:5432", "10.0.3.8:5432")}, nil, []string{name, name}},
		"another port":              {[]string{"10.0.3.7:5433"}, []model.Backend{byAddress(name, nil, "10.0.3.7:5432")}, nil, []string{""}},
		"two entries for one":       {[]string{"10.0.3.7:5432"}, []model.Backend{byAddress(name, nil, "10.0.3.7:5432"), byAddress("b", nil, "10.0.3.7:5432")}, nil, []string{""}},
		"the only one of the port":  {[]string{"10.0.3.7:5432", "10.0.3.7:443"}, []model.Backend{byPort(name, 5432)}, nil, []string{guess, ""}},
		"two of the port":           {[]string{"10.0.3.7:5432", "10.0.3.8:5432"}, []model.Backend{byPort(name, 5432)}, nil, []string{"", ""}},
		"two entries for the port":  {[]string{"10.0.3.7:5432"}, []model.Backend{byPort(name, 5432), byPort("b", 5432)}, nil, []string{""}},
		"the address beats a port":  {[]string{"10.0.3.7:5432"}, []model.Backend{byPort("b", 5432), byAddress(name, nil, "10.0.3.7:5432")}, nil, []string{name}},
		"the address is elsewhere":  {[]string{"10.0.3.9:5432"}, []model.Backend{byAddress(name, nil, "10.0.3.7:5432")}, nil, []string{""}},
		"peers that are not listed": {[]string{"10.0.3.7:5432"}, []model.Backend{byPort(name, 5432)}, func(d *model.Downstream) { d.Others = &model.Peer{} }, []string{""}},
		"peers not counted":         {[]string{"10.0.3.7:5432"}, []model.Backend{byPort(name, 5432)}, func(d *model.Downstream) { d.Partial = true }, []string{""}},
		"perhaps not its own":       {[]string{"10.0.3.7:5432"}, []model.Backend{byPort(name, 5432)}, func(d *model.Downstream) { d.ByUser = true }, []string{""}},
		"nothing configured":        {[]string{"10.0.3.7:5432"}, nil, nil, []string{""}},
	}
	for title, tt := range tests {
		t.Run(title, func(t *testing.T) {
			d := &model.Downstream{}
			for _, p := range tt.peers {
				d.Peers = append(d.Peers, model.Peer{Address: netip.MustParseAddrPort(p), Connections: 10})
			}
			if tt.change != nil {
				tt.change(d)
			}
			downstream.Identify(d, tt.backends)
			for i, want := range tt.want {
				got := d.Peers[i].Name
				if d.Peers[i].ByPort {
					got += " by port"
				}
				require.Equal(t, want, got)
				require.Equal(t, want == guess, d.Peers[i].Pool != nil)
			}
		})
	}
}

// A pool is claimed only where the connections can be its own.
func TestPoolsThatCannotBe(t *testing.T) {
	doubtful := poolOf(10)
	doubtful.Size.Uncertain = true
	for _, tt := range []struct {
		pool        *model.Pool
		connections int
		want        bool
	}{{poolOf(10), 0, true}, {poolOf(10), 10, true}, {poolOf(10), 11, true}, {poolOf(10), 12, false}, {doubtful, 10, false}, {nil, 10, false}} {
		d := &model.Downstream{Peers: []model.Peer{{Address: netip.MustParseAddrPort("10.0.3.7:5432"), Connections: tt.connections}}}
		downstream.Identify(d, []model.Backend{byAddress("orders", tt.pool, "10.0.3.7:5432")})
		require.Equal(t, "orders", d.Peers[0].Name)
		require.Equal(t, tt.want, d.Peers[0].Pool != nil, "%+v", tt)
	}
}
