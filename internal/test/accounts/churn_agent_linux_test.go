package accounts

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const (
	agentDownFor = 500 * time.Millisecond
	// publishedIn is how old the clients are that a snapshot has: it is made every second, of the handshakes of a
	// quarter of a second before.
	publishedIn = 2 * time.Second
	// listedIn is when an agent has found a server that was started again, at the latest: it is asked for its totals until then.
	listedIn = time.Minute
	askEvery = 100 * time.Millisecond
)

// agents are real ones beside a churn, one after the other, in the server's namespace. They are asked by a socket of
// this one, which is passed to them, so that no connection of theirs counts there.
type agents struct {
	churn   *churn
	tcpdiag string
	socket  *os.File
	address string
	folder  string // of the incidents, which outlive an agent
	every   time.Duration

	running  *rig.Agent
	starting chan *rig.Agent // nil for one that does not start
	awaited  bool            // one is being started
	startAt  time.Time
	stopAt   time.Time
	askedAt  time.Time // when it was to be stopped and had no totals
	number   int
	rows     []string

	// Of the one that runs.
	launched, opened uint64 // PassiveOpens before it was started, and when it had its tap
	inFlight         uint64
	incidents        int // that it found
}

func newAgents(c *churn, every time.Duration) *agents {
	a := &agents{churn: c, every: every, folder: c.t.TempDir(), starting: make(chan *rig.Agent, 1)}
	a.tcpdiag = filepath.Join(c.t.TempDir(), "tcpdiag")
	build := exec.Command("go", "build", "-o", a.tcpdiag, "./cmd/tcpdiag")
	build.Dir = filepath.Join("..", "..", "..")
	out, err := build.CombinedOutput()
	require.NoError(c.t, err, "%s", out)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(c.t, err)
	a.address = l.Addr().String()
	a.socket, err = l.(*net.TCPListener).File()
	require.NoError(c.t, err)
	require.NoError(c.t, l.Close())
	a.startAt = time.Now()
	return a
}

// step starts and stops them when it is time.
func (a *agents) step() {
	switch now := time.Now(); {
	case a.running != nil && now.After(a.stopAt) && now.Sub(a.askedAt) >= askEvery && a.churn.hasListened(2*publishedIn):
		a.stop()
	case a.running == nil && !a.startAt.IsZero() && now.After(a.startAt):
		a.startAt = time.Time{}
		a.launched, a.awaited = a.churn.opened(), true
		go a.start()
	}
	select {
	case agent := <-a.starting:
		if a.awaited = false; agent != nil {
			a.begins(agent)
		}
	default:
	}
}

// start returns when the agent follows the handshakes.
func (a *agents) start() {
	const passed = `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"` // sd_listen_fds(3)
	cmd := a.churn.server.Command("sh", "-c", passed, a.tcpdiag, "agent", "--web.systemd-socket", "--log-level", "error",
		"--port", fmt.Sprint(a.churn.to.Port()), "--handshakes", "on", "--max-connections", fmt.Sprint(a.churn.options.MaxConnections),
		"--max-threads", fmt.Sprint(a.churn.options.MaxThreads), "--incident-dir", a.folder)
	cmd.ExtraFiles = []*os.File{a.socket}
	agent, err := rig.RunAgent(a.churn.t.Context(), a.address, cmd)
	for until := time.Now().Add(time.Minute); err == nil; time.Sleep(100 * time.Millisecond) {
		if l, asked := a.listener(agent); asked == nil && l.Clients != nil && l.Clients.ObservedSeconds > 0 {
			break
		}
		if time.Now().After(until) {
			err = fmt.Errorf("it does not follow the handshakes")
		}
	}
	if err != nil {
		a.churn.t.Errorf("an agent does not start: %v", err)
		agent = nil
	}
	a.starting <- agent
}

func (a *agents) listener(agent *rig.Agent) (l api.Listener, err error) {
	var s api.Snapshot
	body, err := agent.Get(a.churn.t.Context(), "/api/v1/snapshot")
	if err == nil {
		err = json.Unmarshal(body, &s)
	}
	if err == nil && len(s.Listeners) != 1 {
		err = fmt.Errorf("%d listeners", len(s.Listeners))
	}
	if err != nil {
		return l, err
	}
	return s.Listeners[0], nil
}

// begins is when an agent has its tap.
func (a *agents) begins(agent *rig.Agent) {
	a.running, a.stopAt = agent, time.Now().Add(a.every)
	a.number++
	a.opened, a.inFlight = a.churn.opened(), a.churn.crowd.inFlight()
	if found, err := os.ReadDir(a.folder); err == nil {
		a.incidents = len(found)
	}
}

// stop ends the agent once it has totals of the server that listens now, each third at once (SIGKILL), and holds what it said against
// the kernel and the clients.
func (a *agents) stop() {
	t, sockets, crowd := a.churn.t, a.churn.opened()-a.opened, a.churn.crowd
	l, err := a.listener(a.running)
	totals := api.ClientTotals{}
	switch up := time.Since(a.churn.upSince); {
	case err == nil && l.Totals != nil && l.Totals.Clients != nil:
		totals = *l.Totals.Clients
	case up < listedIn:
		if a.askedAt = time.Now(); up < 2*publishedIn+askEvery {
			t.Logf("agent %d, %v after the server was started again: %s, no totals, %v", a.number, up, l.Verdict.Status, err)
		}
		return
	default:
		t.Errorf("agent %d, %v after the server was started again: %s, no totals, %v", a.number, up, l.Verdict.Status, err)
	}
	most := a.churn.opened() - a.launched
	lived, how := time.Since(a.running.Started), "SIGTERM"
	if a.number%3 == 0 {
		how = "SIGKILL"
		a.running.Kill()
	} else if _, err := a.running.Stop(); err != nil {
		t.Errorf("agent %d: %v", a.number, err)
	}
	a.running, a.startAt = nil, time.Now().Add(agentDownFor)

	in := totals.LetIn + totals.LetInLate
	unsettled := a.inFlight + crowd.inFlight() + crowd.beganSince(crowd.now()-publishedIn)
	observed, estimated := 0., false
	if l.Clients != nil {
		observed, estimated = l.Clients.ObservedSeconds, l.Clients.Estimated
	}
	row := fmt.Sprintf("| %d | %.0f s, %s | %d | %d to %d | %d | %d | %d | %.0f | %v | %d |", a.number, lived.Seconds(), how, a.inFlight,
		sockets-min(sockets, unsettled), most, in, totals.LetInLate, totals.Undecided, observed, estimated, a.incidents)
	t.Log(row)
	a.rows = append(a.rows, row)
	if in > most || sockets > in+totals.Undecided+unsettled+max(1, sockets/200) {
		t.Errorf("let in, and the sockets that the kernel made meanwhile: %s", row)
	}
	if found, err := os.ReadDir(a.folder); err != nil || len(found) < a.incidents || estimated {
		t.Errorf("%v, %d incidents are left: %s", err, len(found), row)
	}
}

// end waits for one that is being started, and stops the last one when it is time: the clients, and what waits for
// them, have ended by then.
func (a *agents) end(t testing.TB) {
	for a.startAt = (time.Time{}); a.awaited || a.running != nil; a.startAt = (time.Time{}) { // and no other is started
		a.stopAt = time.Now()
		a.churn.restartDue()
		time.Sleep(10 * time.Millisecond)
	}
	_ = a.socket.Close()
	require.NotEmpty(t, a.rows)
}

// inFlight are the clients that are neither answered nor gone.
func (c *crowd) inFlight() uint64 { return uint64(len(c.byFD)) }

// beganSince are the clients that began, or ended, after a moment.
func (c *crowd) beganSince(at time.Duration) (n uint64) {
	for _, k := range c.clients {
		if k.over > 0 && (k.began > at || k.over > at) {
			n++
		}
	}
	return n
}
