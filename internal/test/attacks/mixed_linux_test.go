package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const tomcatPort = 8080

// TestMixed: for an hour a real Tomcat is overloaded every five minutes, beside hostile
// files, 40 servers whose queues stay full, 100 new listeners a second and a client that keeps
// the agent's port busy. Each overload is one incident with the right cause and
// the clients' own number, others' scrapes are answered, and the agent does not grow.
func TestMixed(t *testing.T) {
	nettest.Root(t)
	proof.Skip(t)
	rounds, every := proof.Size(12, 1), 5*time.Minute
	incidents := filepath.Join(public(t), "incidents")
	require.NoError(t, os.Mkdir(incidents, 0o750))
	s := newScene(t, viewer{name: "root"}, build(t), "--all", "--incident-dir", incidents)
	s.tomcat(t)
	s.besiegers(t)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	friend := s.crowdOfOne(ctx, t)
	start := time.Now()
	used := s.cpu(t)
	share := func() float64 { return 100 * float64(s.cpu(t)-used) / float64(time.Since(start)) }
	var lost []int
	var inUse []int64 // at the end of each round, its least of two minutes
	for round := range rounds {
		began, least := time.Now(), int64(math.MaxInt64)
		lost = append(lost, s.burst(t, 60))
		for time.Since(began) < every {
			s.look(t)
			if time.Since(began) > every-2*time.Minute {
				least = min(least, s.inUse(t))
			}
			time.Sleep(5 * time.Second)
		}
		inUse = append(inUse, least)
		t.Logf("round %d: %d of 60 clients lost, %d KiB in use, %d resident, %.1f %% of a core so far", round, lost[round], least>>10, s.nowResident(t)>>10, share())
	}
	cancel()
	asked, answered := friend()

	t.Logf("%.0f of %d answers for another address", answered, asked)
	s.recorded(t, lost)
	require.GreaterOrEqual(t, answered, 0.99*float64(asked), "of %d scrapes, probes and pages", asked)
	grown := inUse[rounds-1] - inUse[rounds/2]
	require.Less(t, grown, int64(mostGrown), "bytes in use that it has grown by in the second half: %d", inUse)
	r := s.finish(t, fmt.Sprintf("%d incidents, %.0f of %d answers for another address, %.1f %% of a core, %d KiB more in use at the end", rounds, answered, asked, share(), grown>>10))
	header(t)
	r.log(t, "root", "an hour of all that")
}

// tomcat is a real one in the scene's network namespace, of another user than the attackers.
func (s *scene) tomcat(t *testing.T) {
	t.Helper()
	dial := func(ctx context.Context, network, address string) (c net.Conn, err error) {
		doErr := netns.Do(s.pods.Path(), func() error {
			c, err = (&net.Dialer{}).DialContext(ctx, network, address)
			return err
		})
		return c, doErr
	}
	tomcat, err := rig.StartTomcat(t.Context(), rig.TomcatOptions{
		Artifacts: rig.KitOf(t).Artifacts(), Port: tomcatPort, ManagementPort: tomcatPort + 1,
		Limits: rig.Limits{Threads: 4, MinSpare: 4, MaxConnections: 20, AcceptCount: 5},
		Wrap:   []string{"nsenter", "--net=" + s.pods.Path(), "--"},
		HTTP:   &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}},
	})
	require.NoError(t, err)
	t.Cleanup(tomcat.Stop)
}

// besiegers are hostile processes of each kind.
func (s *scene) besiegers(t *testing.T) {
	t.Helper()
	for i, name := range sortedKeys(together()) {
		a, port := together()[name], hostilePort+10+i
		a.part = part{From: port, To: port + 1, Threads: []string{fmt.Sprintf("http-nio-%d-e", port)}}
		a.start(t, s.pods, s.java)
	}
	churn := attack{part: part{From: hostilePort, To: hostilePort + 1, PerSecond: 100, Threads: []string{"http-nio-18080-e"}}}
	churn.start(t, s.pods, s.java)
	full := attack{args: application(), files: map[string]string{"app.jar": bootJar(nil)}, part: part{From: 19_000, To: 19_040, NumberedOf: 40, Full: true}}
	full.start(t, s.pods, s.java)
}

// crowdOfOne are 200 connections of one address to the agent, beside another that asks for what people ask
// for. The function waits for the end and says how many of those were answered.
func (s *scene) crowdOfOne(ctx context.Context, t *testing.T) func() (asked int, answered float64) {
	t.Helper()
	greedy := s.addresses(t, 1)[0]
	requests := sortedKeys(hogs())
	var opened atomic.Int64
	for i := range 200 {
		go s.keepOpening(ctx, greedy, hogs()[requests[i%len(requests)]], &opened)
	}
	return s.friendBeside(ctx, t, friendly{last: 24 * time.Hour, least: 1, every: 100 * time.Millisecond})
}

// friendBeside has another address ask meanwhile. The function waits for the end and says how many were answered.
func (s *scene) friendBeside(ctx context.Context, t *testing.T, f friendly) func() (asked int, answered float64) {
	t.Helper()
	type count struct {
		asked    int
		answered float64
	}
	from, done := s.addresses(t, 1)[0], make(chan count, 1)
	go func() {
		asked, answered := s.friendAsks(ctx, from, f)
		done <- count{asked, answered}
	}()
	return func() (int, float64) { c := <-done; return c.asked, c.answered }
}

// burst is an overload of the Tomcat, and how many clients got no answer.
func (s *scene) burst(t *testing.T, clients int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "nsenter", "--net="+s.pods.Path(), "--", s.java)
	p := part{Clients: clients, From: tomcatPort}
	cmd.Env = []string{p.variable()}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	lost, err := strconv.Atoi(strings.TrimSpace(string(out)))
	require.NoError(t, err)
	return lost
}

// recorded holds the incidents of the Tomcat against what its clients lost.
func (s *scene) recorded(t *testing.T, lost []int) {
	t.Helper()
	var list api.Incidents
	require.NoError(t, json.Unmarshal([]byte(s.get(t, "/api/v1/incidents")), &list))
	var own []api.IncidentSummary
	for _, i := range list.Incidents {
		if i.Port == tomcatPort {
			own = append(own, i)
			t.Log(i.Title, i.Reason, i.Began.Format(time.TimeOnly), i.Summary)
		}
	}
	require.Len(t, own, len(lost), "incidents of the Tomcat, of %d in all", len(list.Incidents))
	for i, incident := range own { // the newest first
		require.Equal(t, "max_connections", incident.Cause, incident.Title)
		require.NotNil(t, incident.ClientsTurnedAway, incident.Title)
		require.InDelta(t, lost[len(lost)-1-i], *incident.ClientsTurnedAway, 2, incident.Title)
	}
}
