package deployments

import (
	"crypto/tls"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// draw is an overload (or none) drawn from a seed.
type draw struct {
	threads, connections, backlog, clients int
	tls, known                             bool // known: the limits are given to tcpdiag
	load                                   string
}

func newDraw(r *rand.Rand) draw {
	d := draw{
		threads: 1 + r.IntN(10), connections: 2 + r.IntN(40), backlog: 1 + r.IntN(15),
		tls: r.IntN(4) == 0, known: r.IntN(3) > 0,
		load: []string{"slow", "slow", "slow", "slow", "idle", "idle", "half", "silent", "stopped"}[r.IntN(9)],
	}
	d.clients = 1 + r.IntN(d.connections+2*d.backlog+4)
	return d
}

func (d draw) String() string {
	s := fmt.Sprintf("%d threads, %d connections, backlog %d, %d clients, %s", d.threads, d.connections, d.backlog, d.clients, d.load)
	if d.tls {
		s += ", TLS"
	}
	if !d.known {
		s += ", limits not readable"
	}
	return s
}

// causes are those that the draw's arithmetic leads to: what is at its limit, with
// somebody waiting in front of it. Each that is listed is right; the first is the
// innermost reason why clients are held up.
func (d draw) causes() []string {
	full := d.clients > d.connections
	switch {
	case d.load == "stopped":
		return []string{"jvm_pause"}
	case full && (d.load == "idle" || d.load == "silent") && !d.tls:
		return []string{"keep_alive_idle"}
	case full:
		return []string{"max_connections"}
	case d.load == "slow" && d.clients > d.threads:
		return []string{"max_threads"}
	}
	return []string{""}
}

// overload runs a draw, and says in the row what came of it.
func overload(c *rig.Case, d draw) {
	args := []string{
		"protocol=HTTP/1.1", "port=8080", "keepAliveTimeout=600000", "connectionTimeout=600000",
		fmt.Sprint("maxThreads=", d.threads), "minSpareThreads=1", fmt.Sprint("maxConnections=", d.connections), fmt.Sprint("acceptCount=", d.backlog),
	}
	var config *tls.Config
	if d.tls {
		args = append(args, "SSLEnabled=true", "keystore="+c.KeystoreFile())
		config = rig.Unverified()
	}
	s := c.Embedded(rig.JVM{}, args...)
	c.Answers("127.0.0.1:8080")
	c.Until("the MBean is there", func() bool { return s.Says(rig.Port).MaxThreads > 0 })
	if d.load == "stopped" {
		stopped(c, d, s)
		return
	}
	text := map[string]string{"slow": rig.Get("/?ms=60000"), "idle": rig.Get("/?ms=0"), "half": "GET / HTTP/1.1\r\nHost: loc"}[d.load]
	w := c.Hold(rig.Clients{N: d.clients, Text: text, TLS: config})
	inside, busy := min(d.clients, d.connections), 0
	if d.load == "slow" {
		busy = min(inside, d.threads)
	}
	c.Until("Tomcat holds what it can", func() bool {
		says := s.Says(rig.Port)
		held := says.Connections
		if held < d.connections {
			held-- // the acceptor has taken the latch for the next one
		}
		return w.Connected.Load() >= int64(min(d.clients, d.connections+d.backlog+1)) && held >= min(inside, d.connections) && says.Busy == busy && (d.load != "idle" || w.Answered.Load() >= int64(inside))
	})
	c.Row.Truth = s.Says(rig.Port).String()
	judge(c, d, c.Ask(rig.Port, d.flags()...))
}

// stopped is a server that a signal stopped before the clients came.
func stopped(c *rig.Case, d draw, s *rig.Server) {
	c.Must(syscall.Kill(s.PID, syscall.SIGSTOP))
	w := c.Hold(rig.Clients{N: d.clients, Text: rig.Get("/?ms=0")})
	c.Until("the queue holds what it can", func() bool { return w.Connected.Load() >= int64(min(d.clients, d.backlog+1)) })
	c.Row.Truth = "stopped (SIGSTOP)"
	judge(c, d, c.Ask(rig.Port, d.flags()...))
}

func (d draw) flags() []string {
	flags := []string{"--interval", "2s"}
	if d.known {
		flags = append(flags, "--max-threads", strconv.Itoa(d.threads), "--max-connections", strconv.Itoa(d.connections))
	}
	return flags
}

// judge: where the limits are not known, or the connections encrypted, to name no
// cause and to say so is right as well; to name another one never is.
func judge(c *rig.Case, d draw, said *rig.Said) {
	if said.Listener == nil {
		c.Holds(false, "no entry")
		return
	}
	want, got := d.causes()[0], said.Listener.Verdict.Cause
	unsure := strings.Contains(said.All, "not_observable") || strings.Contains(said.All, "limits_unknown") || !d.known
	switch {
	case got == want:
	case got == "cpu_saturated" && rig.Crowded() != "":
		c.Row.Skipped = "undecided, " + rig.Crowded()
	case got == "" && unsure:
		c.Row.Unknown = true
	case got == "max_threads" && want == "max_connections" && !d.known && strings.Contains(said.All, "limits_unknown"):
		c.Row.Unknown = true // the threads are used up as well, and of the connections it says that it is not known
	case want == "keep_alive_idle" && got == "max_connections" && unsure:
	default:
		c.Holds(false, "the cause is %q, said is %q", want, got)
	}
}

var (
	seed  = flag.Uint64("seed", 1, "of TestOverloads")
	draws = flag.Int("draws", 50, "how many cases TestOverloads draws")
)

// TestOverloads runs cases drawn from a seed.
func TestOverloads(t *testing.T) {
	r := rand.New(rand.NewPCG(*seed, 0))
	var drawn []draw
	var names []string
	for i := range *draws {
		d := newDraw(r)
		drawn, names = append(drawn, d), append(names, fmt.Sprintf("%d: %s", i+1, d))
	}
	table := rig.Open(fmt.Sprintf("docs/results/overloads-%d.md", *seed), "", names)
	table.Head(func(rows []string) string { return overloadHead(*seed, *draws, rows) })
	for i, d := range drawn {
		t.Run(names[i], func(t *testing.T) { overload(rig.New(t, table, names[i]), d) })
	}
}

func overloadHead(seed uint64, n int, rows []string) string {
	counts := make(map[string]int)
	for _, row := range rows {
		for _, what := range []string{"| right |", "| unknown, and says so |", "| undecided", "| **wrong**"} {
			if strings.Contains(row, what) {
				counts[what]++
			}
		}
	}
	return fmt.Sprintf("# Overloads drawn from seed %d\n\nWritten by `make prove PROOF=overloads` (-draws %d -seed %d), of %d: %d right, %d unknown and says so, %d undecided because this machine was busy, %d wrong.\n\n| drawn | truth | tcpdiag says | so it is |\n|---|---|---|---|\n",
		seed, n, seed, len(rows), counts["| right |"], counts["| unknown, and says so |"], counts["| undecided"], counts["| **wrong**"])
}
