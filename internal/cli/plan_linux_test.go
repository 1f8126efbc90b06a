package cli

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

// What somaxconn is lowered to later does not change the queue of a server that
// listens already.
func TestPlanFromAPort(t *testing.T) {
	ns := nettest.Namespace(t)
	ns.Sysctl(t, "net.core.somaxconn", "2000")
	var port string
	ns.Do(func() {
		port = strconv.Itoa(int(nettest.Listen(t, nettest.ListenOptions{Backlog: 5000}).Addr.Port()))
	})
	ns.Sysctl(t, "net.core.somaxconn", "128")
	for name, tt := range map[string]struct {
		args     []string
		capacity int
		inForce  bool
	}{
		"as it runs":       {nil, 8192 + 2000 + 1, true},
		"with another one": {[]string{"--accept-count", "500"}, 8192 + 128 + 1, false},
		"listening again":  {[]string{"--somaxconn", "64"}, 8192 + 64 + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := tcpdiag(ns, append([]string{"plan", "--requests", "10", "--service-time", "1s", "--from-port", port, "--output", "json"}, tt.args...)...)
			var out, log bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &log
			require.NoError(t, cmd.Run(), log.String())
			var doc struct {
				Capacity int
				Input    struct {
					Somaxconn int
					InForce   bool `json:"accept_count_in_force"`
				}
			}
			require.NoError(t, json.Unmarshal(out.Bytes(), &doc))
			require.Equal(t, tt.capacity, doc.Capacity)
			require.Equal(t, tt.inForce, doc.Input.InForce)
		})
	}
}
