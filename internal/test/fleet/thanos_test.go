package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/observability"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

// TestThanos: two clusters whose agents have the same addresses, each with its Prometheus and a sidecar, are one
// table of Thanos Query. A cluster that is away is a warning beside the other's.
func TestThanos(t *testing.T) {
	proof.Servers(t)
	for _, name := range []string{"prometheus", "thanos"} {
		if !observability.Installed(name) {
			t.Skip(name + " is not installed (thanos: go build ./cmd/thanos in a checkout of github.com/thanos-io/thanos)")
		}
	}
	const nodes = 2
	var addresses []string
	for _, port := range nettest.FreePorts(t, 6) {
		addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
	}
	query := []string{"query", "--grpc-address=" + addresses[0], "--query.replica-label=replica"}
	sidecars := make(map[string]*observability.Thanos)
	for i, cluster := range []string{"east", "west"} {
		at := addresses[2+2*i:]
		b := &bench{size: size{nodes: nodes, interval: 2 * time.Second}, agents: serveAgents(t, nodes), external: map[string]string{"cluster": cluster, "replica": "0"}}
		b.start(t)
		dir := t.TempDir()
		sidecar, err := observability.StartThanos(t.Context(), dir, at[0], "sidecar", "--grpc-address="+at[1],
			"--prometheus.url="+b.prometheus.URL(), "--tsdb.path="+filepath.Join(b.prometheus.Dir, "prometheus"))
		require.NoError(t, err)
		t.Cleanup(sidecar.Stop)
		sidecars[cluster] = sidecar
		query = append(query, "--endpoint-strict="+at[1])
	}
	thanos, err := observability.StartThanos(t.Context(), t.TempDir(), addresses[1], query...)
	require.NoError(t, err)
	t.Cleanup(thanos.Stop)

	program := build(t)
	ask := func(args ...string) (table api.Fleet, code int) {
		cmd := exec.Command(program, append([]string{"fleet", "--prometheus", thanos.URL(), "-o", "json"}, args...)...)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			code = exit.ExitCode()
			t.Logf("%d: %s", code, exit.Stderr)
		}
		if len(out) > 0 {
			require.NoError(t, json.Unmarshal(out, &table))
		}
		return table, code
	}
	const all = nodes*listenersPerNode + 1
	var table api.Fleet
	nettest.Within(t, 2*time.Minute, "both clusters are in the table, with what they turned away", func() bool {
		table, _ = ask()
		return table.FromRules && table.Counts["losing"] == 2 && len(table.Listeners)+table.Omitted == 2*all &&
			table.Listeners[2].ClientsTurnedAway != nil && *table.Listeners[2].ClientsTurnedAway > 0
	})
	require.Equal(t, 2*nodes, table.Agents)
	require.Empty(t, table.Warnings)
	worst := make(map[string]bool)
	for i, status := range []string{"down", "down", "losing", "losing"} {
		l := table.Listeners[i]
		require.Equal(t, status, l.Status)
		worst[l.Cluster+" "+l.Status+" "+l.Instance] = true
	}
	require.Len(t, worst, 4, "each once of each cluster: %v", worst)
	require.Equal(t, table.Listeners[2].Instance, table.Listeners[3].Instance, "the clusters' agents have the same addresses")
	require.Equal(t, 8192, *table.Listeners[2].Connections.Used)

	east, code := ask("--cluster", "east", "--exit-status")
	require.Equal(t, 13, code)
	require.Equal(t, nodes, east.Agents)
	require.Equal(t, all, len(east.Listeners)+east.Omitted)
	for _, l := range east.Listeners {
		require.Equal(t, "east", l.Cluster)
	}
	team, _ := ask("--cluster", "west", "--namespace", "team-07")
	require.NotEmpty(t, team.Listeners)
	for _, l := range team.Listeners {
		require.Equal(t, "west team-07", fmt.Sprint(l.Cluster, " ", l.Namespace))
	}

	sidecars["west"].Stop()
	nettest.Within(t, time.Minute, "the other cluster stands alone, with a warning", func() bool {
		table, _ = ask()
		return len(table.Warnings) > 0 && len(table.Listeners)+table.Omitted == all
	})
	t.Log(table.Warnings)
}

// build makes the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "tcpdiag")
	out, err := exec.Command("go", "build", "-o", program, checkout+"/cmd/tcpdiag").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return program
}
