package assemble

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/losses"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Whose closing a verdict mentions: the listener's own, and that of the one it
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
		want     *model.Closed
	}{
		"nothing closed":                       {map[string]stood{"10.0.0.1:80": {since: 60}}, "10.0.0.1:80", nil},
		"its own, before it listened again":    {map[string]stood{"10.0.0.1:80": {2, 4, 5, false}}, "10.0.0.1:80", &model.Closed{Queued: 4, Ago: 5 * time.Second}},
		"a member of its own":                  {map[string]stood{"10.0.0.1:80": {60, 4, 5, true}}, "10.0.0.1:80", &model.Closed{Queued: 4, Ago: 5 * time.Second, Part: true}},
		"too long ago":                         {map[string]stood{"10.0.0.1:80": {2, 4, 10, false}}, "10.0.0.1:80", nil},
		"nobody was waiting":                   {map[string]stood{"10.0.0.1:80": {2, 0, 5, false}}, "10.0.0.1:80", nil},
		"a restart on another address":         {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "0.0.0.0:80": {since: 2}}, "0.0.0.0:80", &model.Closed{Queued: 4, Ago: 5 * time.Second}},
		"found by the same scan":               {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "0.0.0.0:80": {since: 5}}, "0.0.0.0:80", &model.Closed{Queued: 4, Ago: 5 * time.Second}},
		"another one that stood there already": {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "127.0.0.1:80": {since: 6}}, "127.0.0.1:80", nil},
		"another one, and it listens again":    {map[string]stood{"10.0.0.1:80": {4, 4, 5, false}, "127.0.0.1:80": {since: 2}}, "127.0.0.1:80", nil},
		"another port":                         {map[string]stood{"10.0.0.1:81": {0, 4, 5, false}, "0.0.0.0:80": {since: 2}}, "0.0.0.0:80", nil},
		"nothing listens: the latest":          {map[string]stood{"10.0.0.1:80": {0, 4, 5, false}, "127.0.0.1:80": {0, 6, 2, false}, "[::]:80": {0, 9, 8, false}}, "", &model.Closed{Queued: 6, Ago: 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			accounts := make(map[model.ListenerID]*losses.Report)
			histories := make(map[model.ListenerID]*history)
			for address, c := range tt.accounts {
				id := model.ListenerID{Address: netip.MustParseAddrPort(address)}
				a := &losses.Report{Absent: c.since == 0}
				accounts[id], histories[id] = a, &history{identity: identity{since: ago(c.since)}}
				if c.closed > 0 {
					a.Closed = losses.Departure{Queued: c.queued, At: ago(c.closed), Part: c.part}
				}
			}
			var judged *history
			var id model.ListenerID
			if tt.judged != "" {
				id = model.ListenerID{Address: netip.MustParseAddrPort(tt.judged)}
				judged = histories[id]
			}
			require.Equal(t, tt.want, closedBefore(closings(accounts, now, 10*time.Second), 80, id, judged, now))
		})
	}
}
