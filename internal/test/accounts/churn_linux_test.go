package accounts

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/clients"
	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
)

const (
	steady       = 25 * time.Millisecond // between two clients
	burstEvery   = time.Minute           // beside them
	burstClients = 200
	restartEvery = 3*time.Minute + 30*time.Second // of the server
	downFor      = 500 * time.Millisecond
	turnEvery    = 5 * time.Minute // until the tap is closed, and opened again amid the load
	unfollowed   = 2 * time.Second // between the two
	turnPorts    = 16_000          // of clients, until they are used again
	agentEvery   = 4 * time.Minute // of the agent beside them
)

// churn is a server that is restarted now and then, and clients that keep coming.
type churn struct {
	t               testing.TB
	server, crowdNS *nettest.NS
	to              netip.AddrPort
	options         demo.ServerOptions
	stop            func()
	upSince         time.Time
	downSince       time.Time
	restartAt       time.Time
	burstAt         time.Time
	restarts, turns int
	crowd           *crowd
	opened          func() uint64 // PassiveOpens
	agents          *agents
	turn, restart   time.Duration // of a tap, and between two of the server
}

// churnFor is how long clients come: TCPDIAG_CHURN_FOR ("12m"), 55 minutes as a proof, else two.
func churnFor(t *testing.T) time.Duration {
	if v := os.Getenv("TCPDIAG_CHURN_FOR"); v != "" {
		d, err := time.ParseDuration(v)
		require.NoError(t, err)
		return d
	}
	return proof.Size(55*time.Minute, 2*time.Minute)
}

// TestChurn: for an hour clients come without end, in bursts too, to a server that is restarted
// every three and a half minutes; every five the tap is closed, and opened again while they come. The clients
// that were let in, in time or late, are the sockets that the kernel made meanwhile (PassiveOpens),
// and never more. An agent beside it is restarted every four minutes: what it counts begins at 0, and is the same but for
// who was on the way when it began and when it ended.
func TestChurn(t *testing.T) {
	nettest.Root(t)
	proof.Skip(t)
	c := &churn{t: t, server: nettest.Namespace(t), crowdNS: nettest.Namespace(t)}
	addr, _ := nettest.Veth(t, c.server, c.crowdNS)
	c.server.Sysctl(t, "net.ipv4.tcp_syncookies", "1")
	c.crowdNS.Sysctl(t, "net.ipv4.tcp_orphan_retries", "1")
	c.options = demo.ServerOptions{
		Address: netip.AddrPortFrom(addr, nextPort()).String(), MaxThreads: 8, MaxConnections: 40, AcceptCount: 20, ServiceTime: 50 * time.Millisecond,
	}
	c.start()
	defer func() { c.stop() }()
	c.opened = passiveOpens(t, c.server)
	long := churnFor(t)
	turns := max(1, int((long+turnEvery/2)/turnEvery))
	if long < 2*turnEvery {
		turns = 2
	}
	c.turn, c.restart = long/time.Duration(turns), min(restartEvery, long/4)
	c.agents = newAgents(c, min(agentEvery, long/5))
	c.burstAt, c.restartAt = time.Now().Add(burstEvery/2), time.Now().Add(c.restart)
	rows := []string{}
	defer func() { writeChurn(t, c, rows) }()
	for i := range turns {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			rows = append(rows, c.takeTurn(t))
			t.Log(rows[len(rows)-1])
		})
	}
	c.agents.end(t)
}

// hasListened reports whether the server has for some time.
func (c *churn) hasListened(long time.Duration) bool {
	return c.downSince.IsZero() && time.Since(c.upSince) >= long
}

func (c *churn) start() {
	_, c.to, c.stop = serve(c.t, c.server, c.options)
}

// takeTurn is the time of one tap: clients are coming when it is opened, and all have ended when it is closed.
func (c *churn) takeTurn(t *testing.T) string {
	opened := c.opened
	restarts, kernel, start := c.restarts, newTrace(t, c.to.Port()), monotonic()
	c.crowd = newCrowd(t, c.to, patience{connect: 2 * time.Second, read: 3 * time.Second, hold: time.Second})
	c.crowd.ports += c.turns % 2 * turnPorts
	c.turns++
	c.comes(time.Now().Add(unfollowed))
	inFlight := c.crowd.inFlight()
	judged := newJudgements()
	tap := openTap(t, c.server, judged.add, c.to.Port())
	defer tap.Close()
	before, first := opened(), len(c.crowd.clients)
	last, lost := look(t, tap)
	for until := time.Now().Add(c.turn); time.Now().Before(until); {
		c.comes(time.Now().Add(time.Second))
		last, lost = look(t, tap)
		in := last.LetIn + last.LetInLate
		require.LessOrEqual(t, in, opened()-before, "let in, of the sockets that the kernel made")
	}
	for ended := time.Now(); time.Since(ended) < settleMost; {
		c.step(10 * time.Millisecond)
		if last, lost = look(t, tap); len(c.crowd.byFD) == 0 && last.Open()+last.Inside+last.Left == 0 {
			break
		}
	}
	sockets, in := opened()-before, last.LetIn+last.LetInLate
	r := &result{clients: c.crowd.clients[first:]}
	r.made, _ = kernel.all(start)
	want, turned := r.truth(), last.Failed()+last.Answers.Unanswered
	away := want.gaveUp + want.stalled + want.refused + want.reset + want.unanswered + want.crossed
	row := fmt.Sprintf("| %d | %d | %d | %d | %d | %d | %d | %d | %d |", len(r.clients), c.restarts-restarts, sockets, in, last.LetInLate,
		away, turned, last.Clients[outcome.Undecided], lost)
	require.LessOrEqual(t, in, sockets, row)
	require.InDelta(t, away, turned, float64(max(3, len(r.clients)/200))+float64(inFlight+lost), "turned away: %s, %+v, %v", row, want, named(&last))
	// Those that had begun when the tap was opened have no client; now and then the kernel makes two
	// sockets for one (inet_csk_complete_hashdance).
	require.LessOrEqual(t, sockets, in+inFlight+lost+max(1, sockets/200), row)
	return row
}

// comes lets clients come until then.
func (c *churn) comes(until time.Time) {
	for time.Now().Before(until) {
		n := 1
		if time.Now().After(c.burstAt) {
			n, c.burstAt = burstClients, time.Now().Add(burstEvery)
		}
		c.crowdNS.Do(func() {
			for range n {
				c.crowd.begin(len(c.crowd.clients)%20 == 0)
			}
		})
		for next := time.Now().Add(steady); time.Now().Before(next); {
			c.step(time.Until(next))
		}
	}
}

// step takes in what happens.
func (c *churn) step(most time.Duration) {
	c.restartDue()
	c.crowd.step(max(most, time.Millisecond))
}

// restartDue restarts the server, and the agent beside it, when it is time.
func (c *churn) restartDue() {
	switch {
	case c.downSince.IsZero() && time.Now().After(c.restartAt):
		c.stop()
		c.downSince, c.stop = time.Now(), func() {}
	case !c.downSince.IsZero() && time.Since(c.downSince) >= downFor:
		c.start()
		c.restarts++
		c.upSince, c.downSince, c.restartAt = time.Now(), time.Time{}, time.Now().Add(c.restart)
	}
	c.agents.step()
}

func look(t testing.TB, tap clients.Tap) (of outcome.Endpoint, lost uint64) {
	r, err := tap.Report()
	require.NoError(t, err)
	for _, e := range r.Endpoints {
		of = e
	}
	return of, r.Lost
}

// writeChurn writes docs/results/churn.md, as a proof.
func writeChurn(t testing.TB, c *churn, rows []string) {
	if !proof.Full() {
		return
	}
	text := fmt.Sprintf(`# An hour of churn

Written by the proof `+"`churn`"+`. Forty clients a second, and %d at once every minute, with a patience of
2 s for their connection and 3 s for an answer, come over veth to a server of %d threads, %d connections and
acceptCount %d that takes %v a request. It was restarted %d times. Each row is one tap: it was opened while
clients came, and closed when all had ended. Sockets are PassiveOpens of that time, those let in are the tap's;
what is missing was begun before the tap was opened. Turned away is what the clients themselves say, and the tap.

| clients | restarts of the server | sockets | let in | of these late | turned away | by the tap | undecided | packets lost |
|---|---|---|---|---|---|---|---|---|
%s

## The agent beside it

A real agent in the server's namespace, which is ended amid the load after %v, and started again half a second later. Its
totals begin at 0 each time, which Prometheus takes for a counter's reset; the incidents in its folder stay. Of the sockets
that the kernel made in its life it can miss those of clients that had come before it, or were under way when it was asked
for the last time: so there is a least and a most.

| agent | lived, ended by | clients on their way at its begin | sockets | let in | of these late | undecided | seconds that it says it has seen | says that it only estimates | incidents that it found |
|---|---|---|---|---|---|---|---|---|---|
%s
`, burstClients, c.options.MaxThreads, c.options.MaxConnections, c.options.AcceptCount, c.options.ServiceTime, c.restarts, strings.Join(rows, "\n"),
		c.agents.every, strings.Join(c.agents.rows, "\n"))
	require.NoError(t, os.WriteFile("../../../docs/results/churn.md", []byte(text), 0o644))
}
