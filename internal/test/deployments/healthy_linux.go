package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/e2e"
)

// visit is one kind of client of the healthy load; each does its turn again after a pause.
type visit struct {
	name    string
	clients int
	pause   time.Duration
	turn    func(context.Context) error
	done    atomic.Int64
	failed  atomic.Int64
}

// The servers of the healthy load: plain, TLS with HTTP/2, and one in a program of its own.
const (
	securePort   = 8443
	embeddedPort = 8070
	watcherPort  = 10889
)

// healthy has clients of every kind come at rates that the servers bear, and counts
// what an agent and snapshots say of it: anything but ok is a false alarm.
func healthy(ctx context.Context, k *kit, lasts time.Duration, table string) error {
	dir, err := os.MkdirTemp(k.Dir, "healthy-")
	if err != nil {
		return err
	}
	b := &bench{kit: k, ctx: ctx, dir: dir}
	defer func() { b.unwind() }()
	b.healthyServers()
	agent, err := e2e.Artifacts{Tcpdiag: k.Tcpdiag}.StartAgent(ctx, watcherPort, "--port", fmt.Sprint(port), "--port", fmt.Sprint(securePort), "--port", fmt.Sprint(embeddedPort))
	if err != nil {
		return err
	}
	b.cleanup = append(b.cleanup, func() { _, _ = agent.Stop() })
	limited, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	visits := b.visits()
	for _, v := range visits {
		v.start(limited)
	}
	r := b.observe(limited, agent)
	text := r.text(visits)
	fmt.Print(text)
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		return err
	}
	if len(r.alarms) > 0 {
		return fmt.Errorf("%d false alarms", len(r.alarms))
	}
	return nil
}

func (b *bench) healthyServers() {
	one, two, three := b.beside("plain"), b.beside("secure"), b.beside("embedded")
	one.boot("none", options{}, "server.tomcat.threads.max=40")
	two.boot("none", options{}, two.tls(fmt.Sprint("server.port=", securePort), "server.tomcat.threads.max=40", "server.http2.enabled=true")...)
	three.embedded(options{}, "protocol=HTTP/1.1", fmt.Sprint("port=", embeddedPort), "maxThreads=40")
	for _, p := range []int{port, securePort, embeddedPort} {
		b.answers(fmt.Sprintf("127.0.0.1:%d", p))
	}
}

func (v *visit) start(ctx context.Context) {
	for i := range v.clients {
		go func() {
			wait(ctx, v.pause*time.Duration(i)/time.Duration(v.clients)) // not all at once
			for ctx.Err() == nil {
				err := v.turn(ctx)
				switch {
				case ctx.Err() != nil || errors.Is(err, context.Canceled):
				case err != nil:
					v.failed.Add(1)
					fmt.Fprintf(os.Stderr, "%s: %v\n", v.name, err)
				default:
					v.done.Add(1)
				}
				wait(ctx, v.pause)
			}
		}()
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// watched is what was said of the healthy load.
type watched struct {
	began              time.Time
	lasted             time.Duration
	answers, snapshots int
	alarms, undecided  []string
	busiest            float64 // load average
}

// observe asks the agent every second and runs a snapshot every 20.
func (b *bench) observe(ctx context.Context, agent *e2e.Agent) (r watched) {
	r.began = time.Now()
	wait(ctx, 10*time.Second) // until the load is there
	for i := 0; ctx.Err() == nil; i++ {
		if d, err := agent.Snapshot(ctx); err == nil {
			r.answers++
			r.judge("agent", d)
		}
		if i%20 == 0 {
			if d := b.look(ctx); d != nil {
				r.snapshots++
				r.judge("snapshot", d)
			}
		}
		wait(ctx, time.Second)
	}
	r.lasted = time.Since(r.began)
	return r
}

func (b *bench) look(ctx context.Context) *e2e.Document {
	out, _, _, err := e2e.Artifacts{Tcpdiag: b.Tcpdiag}.Run(ctx, nil, "snapshot", "--output", "json")
	if err != nil {
		return nil
	}
	d, err := e2e.Decode(out)
	if err != nil {
		return nil
	}
	return d
}

// judge: on a machine whose processors others use up, to say that is no false alarm.
func (r *watched) judge(who string, d *e2e.Document) {
	r.busiest = max(r.busiest, loadAverage())
	for _, l := range d.Listeners {
		v := l.Verdict
		if v.Status == "ok" {
			continue
		}
		line := fmt.Sprintf("%s after %s, port %d: %s %s: %s", who, time.Since(r.began).Round(time.Second), l.Port, v.Status, v.Cause, v.Summary)
		if busy := crowded(); busy != "" && v.Cause == "cpu_saturated" {
			r.undecided = append(r.undecided, line+" ("+busy+")")
			continue
		}
		fmt.Fprintln(os.Stderr, line)
		r.alarms = append(r.alarms, line)
	}
}

func (r *watched) text(visits []*visit) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# A healthy mixed load\n\nWritten by `make healthy`: it lasted %s, began %s; the load average of the machine was up to %.1f.\n\n| clients | at a time | answered | failed |\n|---|---|---|---|\n",
		r.lasted.Round(time.Second), r.began.UTC().Format("2006-01-02 15:04"), r.busiest)
	for _, v := range visits {
		fmt.Fprintf(&s, "| %s | %d | %d | %d |\n", v.name, v.clients, v.done.Load(), v.failed.Load())
	}
	fmt.Fprintf(&s, "\nThe agent was asked %d times, `tcpdiag snapshot` was run %d times. Anything but ok: %d; undecided because the machine was busy: %d.\n", r.answers, r.snapshots, len(r.alarms), len(r.undecided))
	for _, line := range append(r.alarms, r.undecided...) {
		fmt.Fprintf(&s, "\n* %s", line)
	}
	return s.String() + "\n"
}
