package accounts

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Of a listener and a port whose clients nobody has counted nothing is said: zeros would be a statement.
func TestUnknownIsLeftOut(t *testing.T) {
	at := netip.MustParseAddrPort("0.0.0.0:8080")
	ask := func(accounts map[netip.AddrPort]*Account) *model.Snapshot {
		s := &model.Snapshot{
			Time: time.Unix(1_700_000_000, 0), Interval: 10 * time.Second,
			Listeners: []model.Listener{
				{ID: model.ListenerID{NetNS: 1, Address: at}, Port: 8080, Losses: &model.Losses{}},
				{ID: model.ListenerID{NetNS: 1}, Port: 9090, Losses: &model.Losses{}}, // down
			},
			Targets: []model.Target{{NetNS: 1, Port: 9090}},
		}
		Add(nil, &Clients{Namespaces: map[uint64]*Namespace{1: {Followed: true, Accounts: accounts}}}, s)
		return s
	}
	s := ask(nil)
	require.Nil(t, s.Listeners[0].Totals.Clients)
	require.Nil(t, s.Listeners[0].Losses.Clients)
	require.Nil(t, s.Listeners[1].Losses.Clients)
	require.Nil(t, s.Targets[0].Refused)

	s = ask(map[netip.AddrPort]*Account{at: {}, Port(8080): {}, Port(9090): {}})
	require.Zero(t, s.Listeners[0].Totals.Clients.LetIn)
	require.NotNil(t, s.Listeners[0].Losses.Clients)
	require.NotNil(t, s.Listeners[1].Losses.Clients)
	require.Nil(t, s.Listeners[1].Totals.Clients, "nothing listens: whose they were is among the retired")
	require.Zero(t, *s.Targets[0].Refused)
}
