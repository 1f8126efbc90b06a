package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/plan"
)

// demoVerdict is " LOSING CLIENTS  127.0.0.1:35607  …" in the demo's last picture, with
// the cause of "tcpdiag explain max_connections" below it.
var demoVerdict = regexp.MustCompile(`(?ms)^ ?(LOSING|SATURATED|WARNING|OK)(?: CLIENTS)?\s+127\.\S+(?:.*tcpdiag explain ([a-z_]+))?`)

// The demo as a newcomer runs it.
func TestRightCauseOfTheDemo(t *testing.T) {
	inGuest(t)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	out, err := exec.CommandContext(ctx, tcpdiag, "demo", "--for", "30s").CombinedOutput()
	text := string(out)
	require.NoError(t, err, text)
	verdict := demoVerdict.FindStringSubmatch(text)
	require.NotNil(t, verdict, text)
	report("demo", "%s %s", strings.ToLower(verdict[1]), verdict[2])
	require.Equal(t, "max_connections", verdict[2], text)
}

// load is a published experiment, with its end.
type load struct {
	name    string
	server  demo.ServerOptions
	clients int
	served  int
}

// arrivals are clients in a second: the acceptor has taken the first before the
// third comes, on a slow machine too.
const arrivals = 10

// connectTimeout ends before a SYN is repeated.
const connectTimeout = 900 * time.Millisecond

// Ten and five clients of a server that holds 1 + 1 + 1; they give up before
// their SYN is repeated, and before the first is served.
func TestRightCauseOfLoads(t *testing.T) {
	inGuest(t)
	for _, l := range []load{
		{"A9", demo.ServerOptions{MaxThreads: 1, MaxConnections: 1, AcceptCount: 1, ServiceTime: 3 * time.Second}, 10, 3},
		{"C3", demo.ServerOptions{MaxThreads: 200, MaxConnections: 1, AcceptCount: 1, ServiceTime: 3 * time.Second}, 5, 3},
	} {
		t.Run(l.name, func(t *testing.T) {
			v, p := l.run(t), l.plan(t)
			report(l.name, "%d served, %d connect timeouts; plan %d, %d; the agent: %d connected, %d gave up; %s",
				v.outcomes.Of(demo.OK), v.outcomes.Of(demo.ConnectTimeout), p.Served, p.ConnectTimeout,
				v.clients["connected"], v.clients["gave_up"], strings.Join(v.causes, ", then "))
			require.Equal(t, l.served, v.outcomes.Of(demo.OK), v.outcomes.String())
			require.Equal(t, l.clients-l.served, v.outcomes.Of(demo.ConnectTimeout), v.outcomes.String())
			require.Equal(t, plan.Outcomes{Served: l.served, ConnectTimeout: l.clients - l.served}, p)
			require.Equal(t, l.served, v.clients["connected"], v.clients)
			require.Equal(t, l.clients-l.served, v.clients["gave_up"], v.clients)
			require.Equal(t, "max_connections", v.cause(), "%s", v.last)
		})
	}
}

// view is what the clients and the agent saw of a load.
type view struct {
	outcomes demo.Outcomes
	causes   []string       // of the verdicts while packets were lost, each once, in their order
	last     []byte         // the agent's last answer
	clients  map[string]int // by outcome, as the agent's tap counted them
	// throttled is the server when its verdict was that.
	throttled *api.Listener
}

// cause is what the load ended in: on a busy machine the verdict may begin with
// what kept the acceptor from running.
func (v view) cause() string {
	if len(v.causes) == 0 {
		return "no loss seen"
	}
	return v.causes[len(v.causes)-1]
}

// blame takes a verdict's cause.
func (v *view) blame(cause string) {
	v.causes = append(slices.DeleteFunc(v.causes, func(c string) bool { return c == cause }), cause)
}

func (l load) run(t *testing.T) view {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l.server.Address = "127.0.0.1:0"
	server, err := demo.Listen(ctx, l.server)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	const address = "127.0.0.1:10901"
	startAgent(t, "--port", fmt.Sprint(server.Address().Port()), "--web.listen-address", address,
		"--max-threads", fmt.Sprint(l.server.MaxThreads), "--max-connections", fmt.Sprint(l.server.MaxConnections))
	require.Eventually(t, func() bool { return ready(address) }, time.Minute, 200*time.Millisecond)

	var v view
	v.watch(t, address, demo.BurstOptions{
		Address: server.Address().String(), Clients: l.clients, Rate: arrivals,
		ConnectTimeout: connectTimeout, RequestTimeout: time.Minute,
	})
	require.Eventually(t, func() bool {
		v.clients = countedClients(t, address)
		return v.clients["connected"]+v.clients["gave_up"] >= l.clients
	}, 2*time.Minute, 200*time.Millisecond, "%v of %v", v.clients, v.outcomes)
	stop()
	require.NoError(t, <-done)
	return v
}

// plan is what the simulation says of the load.
func (l load) plan(t *testing.T) plan.Outcomes {
	t.Helper()
	p, err := plan.New(plan.Input{
		Requests: l.clients, Rate: arrivals, ServiceTime: l.server.ServiceTime, Threads: l.server.MaxThreads,
		MaxConnections: l.server.MaxConnections, AcceptCount: l.server.AcceptCount,
		ClientTimeout: time.Minute, ConnectTimeout: connectTimeout, Syncookies: true,
	})
	require.NoError(t, err)
	return p.Outcomes
}

// clientsLine is a sample of the counter of clients by outcome.
var clientsLine = regexp.MustCompile(`(?m)^tcpdiag_listener_clients_total\{.*outcome="(\w+)".*\} (\d+)$`)

// countedClients are the agent's, since it started.
func countedClients(t *testing.T, agent string) map[string]int {
	t.Helper()
	response, err := http.Get("http://" + agent + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	counted := map[string]int{}
	for _, m := range clientsLine.FindAllStringSubmatch(string(text), -1) {
		counted[m[1]], err = strconv.Atoi(m[2])
		require.NoError(t, err)
	}
	return counted
}

// watch runs the clients to their end and asks the agent meanwhile.
func (v *view) watch(t *testing.T, agent string, clients demo.BurstOptions) {
	t.Helper()
	burst, err := demo.NewLoad(clients)
	require.NoError(t, err)
	ended := make(chan demo.Outcomes, 1)
	go func() { ended <- burst.Run(t.Context()) }()
	for {
		select {
		case v.outcomes = <-ended:
			v.look(agent)
			return
		case <-time.After(250 * time.Millisecond):
			v.look(agent)
		}
	}
}

func ready(address string) bool {
	response, err := http.Get("http://" + address + "/-/ready")
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// look takes the agent's verdict of the moment.
func (v *view) look(address string) {
	response, err := http.Get("http://" + address + "/api/v1/snapshot")
	if err != nil {
		return
	}
	defer response.Body.Close()
	var snapshot api.Snapshot
	if v.last, err = io.ReadAll(response.Body); err != nil || json.Unmarshal(v.last, &snapshot) != nil {
		return
	}
	for _, l := range snapshot.Listeners {
		if l.Verdict.Status == "losing" {
			v.blame(cmp.Or(l.Verdict.Cause, "unknown"))
			if l.Verdict.Cause == "cpu_throttled" {
				v.throttled = &l
			}
		}
	}
}
