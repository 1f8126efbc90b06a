package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
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
func (b *bench) overload(d draw) {
	args := []string{
		"protocol=HTTP/1.1", "port=8080", "keepAliveTimeout=600000", "connectionTimeout=600000",
		fmt.Sprint("maxThreads=", d.threads), "minSpareThreads=1", fmt.Sprint("maxConnections=", d.connections), fmt.Sprint("acceptCount=", d.backlog),
	}
	var config *tls.Config
	if d.tls {
		args = append(args, "SSLEnabled=true", "keystore="+b.Keystore)
		config = unverified()
	}
	s := b.embedded(options{}, args...)
	b.answers("127.0.0.1:8080")
	b.until("the MBean is there", func() bool { return s.says(port).MaxThreads > 0 })
	if d.load == "stopped" {
		b.stopped(d, s)
		return
	}
	text := map[string]string{"slow": get("/?ms=60000"), "idle": get("/?ms=0"), "half": "GET / HTTP/1.1\r\nHost: loc"}[d.load]
	c := b.hold("tcp", "127.0.0.1:8080", d.clients, text, config)
	inside, busy := min(d.clients, d.connections), 0
	if d.load == "slow" {
		busy = min(inside, d.threads)
	}
	b.until("Tomcat holds what it can", func() bool {
		says := s.says(port)
		held := says.Connections
		if held < d.connections {
			held-- // the acceptor has taken the latch for the next one
		}
		return c.connected.Load() >= int64(min(d.clients, d.connections+d.backlog+1)) && held >= min(inside, d.connections) && says.Busy == busy && (d.load != "idle" || c.answered.Load() >= int64(inside))
	})
	b.row.Truth = s.says(port).String()
	b.judge(d, b.ask(port, d.flags()...))
}

// stopped is a server that a signal stopped before the clients came.
func (b *bench) stopped(d draw, s *server) {
	b.must(syscall.Kill(s.pid, syscall.SIGSTOP))
	c := b.hold("tcp", "127.0.0.1:8080", d.clients, get("/?ms=0"), nil)
	b.until("the queue holds what it can", func() bool { return c.connected.Load() >= int64(min(d.clients, d.backlog+1)) })
	b.row.Truth = "stopped (SIGSTOP)"
	b.judge(d, b.ask(port, d.flags()...))
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
func (b *bench) judge(d draw, said said) {
	if said.listener == nil {
		b.holds(false, "no entry")
		return
	}
	want, got := d.causes()[0], said.listener.Verdict.Cause
	unsure := strings.Contains(said.all, "not_observable") || strings.Contains(said.all, "limits_unknown") || !d.known
	switch {
	case got == want:
	case got == "cpu_saturated" && crowded() != "":
		b.row.Skipped = "undecided, " + crowded()
	case got == "" && unsure:
		b.row.Unknown = true
	case got == "max_threads" && want == "max_connections" && !d.known && strings.Contains(said.all, "limits_unknown"):
		b.row.Unknown = true // the threads are used up as well, and of the connections it says that it is not known
	case want == "keep_alive_idle" && got == "max_connections" && unsure:
	default:
		b.holds(false, "the cause is %q, said is %q", want, got)
	}
}

// overloads runs n draws of a seed, but for the first ones, and writes their table.
func overloads(ctx context.Context, k *kit, seed uint64, after, n int, table string) error {
	r := rand.New(rand.NewPCG(seed, 0))
	old, wrong := readRows(table), 0
	var rows []string
	for i := range n {
		d := newDraw(r)
		name := fmt.Sprintf("%d: %s", i+1, d)
		if i < after {
			rows = append(rows, old[name])
			continue
		}
		row := runCase(ctx, k, deployment{name, func(b *bench) { b.overload(d) }})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		fmt.Println(row)
		rows = append(rows, row.String())
		wrong += min(1, len(row.Wrong))
		if err := os.WriteFile(table, []byte(overloadText(seed, n, rows)), 0o600); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d wrong", wrong)
	}
	return nil
}

func overloadText(seed uint64, n int, rows []string) string {
	counts := make(map[string]int)
	for _, row := range rows {
		for _, what := range []string{"| right |", "| unknown, and says so |", "| undecided", "| **wrong**"} {
			if strings.Contains(row, what) {
				counts[what]++
			}
		}
	}
	return fmt.Sprintf("# Overloads drawn from seed %d\n\nWritten by `make overloads` (OVERLOADS=%d SEED=%d), of %d: %d right, %d unknown and says so, %d undecided because this machine was busy, %d wrong.\n\n| drawn | truth | tcpdiag says | so it is |\n|---|---|---|---|\n%s\n",
		seed, n, seed, len(rows), counts["| right |"], counts["| unknown, and says so |"], counts["| undecided"], counts["| **wrong**"], strings.Join(rows, "\n"))
}
