package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
)

// asLoad is set where this program is the load test that kubectl tcpdiag run starts: the page.
const asLoad = "TCPDIAG_CLUSTER_LOAD"

// loadEnds is the code that it ends with.
const loadEnds = 7

func TestMain(m *testing.M) {
	if url := os.Getenv(asLoad); url != "" {
		_ = json.NewEncoder(os.Stdout).Encode(load(url))
		os.Exit(loadEnds)
	}
	os.Exit(m.Run())
}

// outcomes are what became of the clients, by their own accounts.
type outcomes struct{ Offered, Served, TimedOut, Other int }

// load is of sixty clients that wait a second and a half to be let in. They come one after the other: of
// handshakes that overlap, all are answered before the queue is full, and then nobody is turned away.
func load(url string) (o outcomes) {
	const clients, patience = 60, 1500 * time.Millisecond
	var mu sync.Mutex
	var all sync.WaitGroup
	for range clients {
		time.Sleep(10 * time.Millisecond)
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: patience}).DialContext}}
			resp, err := client.Get(url)
			if err == nil {
				_ = resp.Body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			o.Offered++
			var dial *net.OpError
			switch {
			case err == nil && resp.StatusCode == http.StatusOK:
				o.Served++
			case errors.As(err, &dial) && dial.Op == "dial" && (dial.Timeout() || errors.Is(err, syscall.ETIMEDOUT)):
				o.TimedOut++
			default:
				o.Other++
			}
		})
	}
	all.Wait()
	return o
}

// testLoadTest runs a load test against the pod by kubectl tcpdiag run: its exit code is passed on, and
// the clients are counted as it counts them itself, by the node's agent with CAP_NET_RAW.
func testLoadTest(t *testing.T, c *cluster, pod core.Pod) {
	c.run(t, `kubectl --namespace tcpdiag patch daemonset tcpdiag --type json --patch '[{"op": "add", "path": "/spec/template/spec/containers/0/securityContext/capabilities/add/-", "value": "NET_RAW"}]'`)
	c.run(t, "kubectl --namespace tcpdiag rollout status daemonset/tcpdiag --timeout=2m")
	within(t, time.Minute, "the agent counts clients", func() bool {
		stdout, _, _ := c.plugin(t, "platform", "deploy/orders -n shop --via node -o json")
		var said struct {
			Listeners []struct{ Clients *struct{ Offered uint64 } }
		}
		return json.Unmarshal([]byte(stdout), &said) == nil && len(said.Listeners) == 1 && said.Listeners[0].Clients != nil
	})
	self, err := os.Executable()
	require.NoError(t, err)
	out := t.TempDir() + "/run.json"
	url := "http://" + pod.Status.PodIP + ":8080/slow.jsp?ms=1000"
	began := time.Now()
	stdout, stderr, code := c.pluginThen(t, "platform", fmt.Sprintf("run deploy/orders -n shop --via node --settle 30s --json %s", out), fmt.Sprintf("env '%s=%s' %s", asLoad, url, self))
	took := time.Since(began)
	require.Equal(t, loadEnds, code, stderr)
	var own outcomes
	require.NoError(t, json.Unmarshal([]byte(stdout), &own), stdout)
	var said struct {
		ExitCode  int `json:"exit_code"`
		Seconds   float64
		Problem   string
		Listeners []struct {
			Port    int
			Cause   string
			Clients struct {
				Offered, Served int
				TurnedAway      int `json:"turned_away"`
				GaveUp          int `json:"gave_up"`
			}
			Verdict struct{ Chain []string }
		}
	}
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &said))
	require.Len(t, said.Listeners, 1, said.Problem)
	counted := said.Listeners[0].Clients
	t.Logf("RESULT run: the load test took %.1f s, the answer came after %.1f s; by the load test itself %+v; by the agent %+v, %s", said.Seconds, took.Seconds(), own, counted, said.Listeners[0].Cause)
	require.Equal(t, loadEnds, said.ExitCode)
	require.Positive(t, own.TimedOut)
	require.Zero(t, own.Other)
	require.Equal(t, [3]int{own.Offered, own.Served, own.TimedOut}, [3]int{counted.Offered, counted.Served, counted.TurnedAway})
	require.Equal(t, "max_connections", said.Listeners[0].Cause)
}
