package schedule

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/discovery/match"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// What the configuration names reaches the peer that it means.
func TestPeersHaveNamesAndPools(t *testing.T) {
	l := newLab(t, watching8080)
	server := l.listen(t, nettest.ListenOptions{Address: "127.0.0.1:8080", Backlog: 5})
	address, _ := l.backend(t)
	other, _ := l.backend(t)
	pool := &model.Pool{Library: "HikariCP", Setting: "spring.datasource.hikari.maximum-pool-size", Size: model.Setting[int]{Value: 5, Kind: model.SourceDefault, Source: "default of HikariCP"}}
	l.lister.Connectors.Discover = func(_ context.Context, _ int, _ uint64, ports []match.Listening) (match.Connectors, []model.Unavailable) {
		out := match.Connectors{}
		for _, p := range ports {
			out[netip.AddrPortFrom(p.Address, p.Port)] = &model.Connector{Server: "tomcat", Backends: []model.Backend{
				{Name: "orders", At: []netip.AddrPort{netip.MustParseAddrPort(address)}, Pool: pool},
			}}
		}
		return out, nil
	}
	l.ask(t, address, 5, 3)
	l.ask(t, other, 1, 1)
	read := func(address string) model.Peer {
		l.scanner.ForgetOutgoing() // whatever the time
		return peerOf(t, l.scan(t), server.Addr.Port(), address)
	}
	require.Eventually(t, func() bool { return read(address).InFlight == 3 && read(address).Name != "" }, time.Minute, 10*time.Millisecond)
	got := read(address)
	require.Equal(t, "orders", got.Name)
	require.Equal(t, pool, got.Pool)
	require.False(t, got.ByPort)
	decoy := read(other)
	require.Equal(t, 1, decoy.Connections)
	require.Empty(t, decoy.Name)
	require.Nil(t, decoy.Pool)
}
