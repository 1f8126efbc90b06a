package draws

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// A draw begins when the agent has decided all clients of the draw before, and has forgotten those that it counted late.
func TestQuiet(t *testing.T) {
	const (
		nobody    = `{"waiting": 0, "stalling": 0}`
		one       = `{"waiting": 0, "stalling": 1}`
		unreached = `{"waiting": 0, "stalling": 0, "unreached": 1}`
	)
	says := func(status, clients string) string {
		return fmt.Sprintf(`{"listeners": [{"port": %d, "clients": %s, "verdict": {"status": %q}}]}`, rig.Port, clients, status)
	}
	for name, all := range map[string][]string{
		"nothing was the matter":   {says("ok", nobody)},
		"one is counted late":      {says("ok", one), says("ok", one), says("losing", nobody), says("losing", nobody), says("ok", nobody)},
		"and is not of those lost": {says("ok", unreached), says("ok", nobody), says("ok", nobody)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			agent := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, _ *http.Request) {
				_, _ = fmt.Fprint(to, all[min(int(asked.Add(1)), len(all))-1])
			}))
			defer agent.Close()
			w := &world{Case: &rig.Case{TB: t, Ctx: t.Context()}, agent: &rig.Agent{Address: strings.TrimPrefix(agent.URL, "http://")}}
			w.quiet()
			if n := int(asked.Load()); n != len(all) {
				t.Errorf("it begins when the agent was asked %d times, not %d", n, len(all))
			}
		})
	}
}
