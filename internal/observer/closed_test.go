package observer

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Whose closing a verdict tells of: the listener's own, and that of the one it
// took the place of at another address of the port.
func TestListenersThatClosedInTheWindow(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	ago := func(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }
	type stood struct {
		since  int // seconds ago; 0: nothing stands there
		queued int
		closed int // seconds ago
		part   bool
	}
	for name, tt := range map[string]struct {
		accounts map[string]stood
		judged   string // "": nothing listens on port 80
		want     *diagnosis.Closed
	}{
		"nothing closed":                       {map[string]stood{"10.0.0.1:80": {since: 60}}, "10.0.0.1:80", nil},
		"its own, before it listened again":    {map[string]stood{"10.0.0.1:80": {2, 4, 5, false}}, "10.0.0.1:80", &diagnosis.Closed{Queued: 4, Ago: 5 * time.Second}},
		"a member of its own":                  {map[string]stood{"10.0.0.1:80": {60, 4, 5, true}}, "10.0.0.1:80", &diagnosis.Closed{Queued: 4, Ago: 5 * time.Second, Part: true}},
		"too long ago":                         {map[string]stood{"10.0.0.1:80": {2, 4, 10, false}}, "10.0.0.1:80", nil},
		"nobody was waiting":                   {map[string]stood{"10.0.0.1:80": {2, 0, 5, false}}, "10.0.0.1:80", nil},
		"a restart on another address":         {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "0.0.0.0:80": {since: 2}}, "0.0.0.0:80", &diagnosis.Closed{Queued: 4, Ago: 5 * time.Second}},
		"found by the same scan":               {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "0.0.0.0:80": {since: 5}}, "0.0.0.0:80", &diagnosis.Closed{Queued: 4, Ago: 5 * time.Second}},
		"another one that stood there already": {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "127.0.0.1:80": {since: 6}}, "127.0.0.1:80", nil},
		"another one, and it listens again":    {map[string]stood{"10.0.0.1:80": {4, 4, 5, false}, "127.0.0.1:80": {since: 2}}, "127.0.0.1:80", nil},
		"another port":                         {map[string]stood{"10.0.0.1:81": {0, 4, 5, false}, "0.0.0.0:80": {since: 2}}, "0.0.0.0:80", nil},
		"nothing listens: the latest":          {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "127.0.0.1:80": {0, 6, 2, false}, "[::]:80": {0, 9, 8, false}}, "", &diagnosis.Closed{Queued: 6, Ago: 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			sp := &space{accounts: make(map[model.ListenerID]*account)}
			for address, c := range tt.accounts {
				a := newAccount(model.ListenerID{Address: netip.MustParseAddrPort(address)}, time.Minute)
				a.since, a.absent = ago(c.since), c.since == 0
				if c.closed > 0 {
					a.closed = departure{c.queued, ago(c.closed), c.part}
				}
				sp.accounts[a.id] = a
			}
			s := &Sampler{spaces: []*space{sp}}
			s.rememberClosed(&model.Snapshot{Time: now, Interval: 10 * time.Second})
			var judged *account
			if tt.judged != "" {
				judged = sp.accounts[model.ListenerID{Address: netip.MustParseAddrPort(tt.judged)}]
			}
			require.Equal(t, tt.want, sp.closedBefore(80, judged, now))
		})
	}
}
