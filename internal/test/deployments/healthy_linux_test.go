package deployments

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
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
)

// TestHealthy has clients of every kind come at rates that the servers bear, for -lasts,
// and counts what an agent and snapshots say of it: anything but ok is a false alarm.
func TestHealthy(t *testing.T) {
	c := rig.New(t, nil, "healthy")
	healthyServers(c)
	agent, err := rig.Artifacts{Tcpdiag: c.Tcpdiag()}.StartAgent(c.Ctx, rig.AgentPort, "--port", fmt.Sprint(rig.Port), "--port", fmt.Sprint(securePort), "--port", fmt.Sprint(embeddedPort))
	c.Must(err)
	c.AtEnd(func() { _, _ = agent.Stop() })
	limited, cancel := context.WithTimeout(c.Ctx, *lasts)
	defer cancel()
	kinds := visits()
	for _, v := range kinds {
		v.start(limited)
	}
	r := observe(c, limited, agent)
	text := r.text(kinds)
	t.Log(text)
	rig.Record(t, "docs/results/healthy.md", text)
	require.Empty(t, r.alarms, "false alarms")
	require.NotZero(t, r.answers)
}

var lasts = flag.Duration("lasts", 10*time.Minute, "how long TestHealthy's load does")

func healthyServers(c *rig.Case) {
	one, two, three := c.Beside("plain"), c.Beside("secure"), c.Beside("embedded")
	one.Boot("none", rig.JVM{}, "server.tomcat.threads.max=40")
	two.Boot("none", rig.JVM{}, tlsSettings(two, fmt.Sprint("server.port=", securePort), "server.tomcat.threads.max=40", "server.http2.enabled=true")...)
	three.Embedded(rig.JVM{}, "protocol=HTTP/1.1", fmt.Sprint("port=", embeddedPort), "maxThreads=40")
	for _, p := range []int{rig.Port, securePort, embeddedPort} {
		c.Answers(fmt.Sprintf("127.0.0.1:%d", p))
	}
}

func (v *visit) start(ctx context.Context) {
	for i := range v.clients {
		go func() {
			rig.Wait(ctx, v.pause*time.Duration(i)/time.Duration(v.clients)) // not all at once
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
				rig.Wait(ctx, v.pause)
			}
		}()
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
func observe(c *rig.Case, ctx context.Context, agent *rig.Agent) (r watched) {
	r.began = time.Now()
	rig.Wait(ctx, 10*time.Second) // until the load is there
	for i := 0; ctx.Err() == nil; i++ {
		if d, err := agent.Snapshot(ctx); err == nil {
			r.answers++
			r.judge("agent", d)
		}
		if i%20 == 0 {
			if d := look(ctx, c); d != nil {
				r.snapshots++
				r.judge("snapshot", d)
			}
		}
		rig.Wait(ctx, time.Second)
	}
	r.lasted = time.Since(r.began)
	return r
}

func look(ctx context.Context, c *rig.Case) *rig.Document {
	out, _, _, err := rig.Artifacts{Tcpdiag: c.Tcpdiag()}.Run(ctx, nil, "snapshot", "--output", "json")
	if err != nil {
		return nil
	}
	d, err := rig.Decode(out)
	if err != nil {
		return nil
	}
	return d
}

// judge: on a machine whose processors others use up, to say that is no false alarm.
func (r *watched) judge(who string, d *rig.Document) {
	r.busiest = max(r.busiest, rig.LoadAverage())
	for _, l := range d.Listeners {
		v := l.Verdict
		if v.Status == "ok" {
			continue
		}
		line := fmt.Sprintf("%s after %s, port %d: %s %s: %s", who, time.Since(r.began).Round(time.Second), l.Port, v.Status, v.Cause, v.Summary)
		if busy := rig.Crowded(); busy != "" && v.Cause == "cpu_saturated" {
			r.undecided = append(r.undecided, line+" ("+busy+")")
			continue
		}
		fmt.Fprintln(os.Stderr, line)
		r.alarms = append(r.alarms, line)
	}
}

func (r *watched) text(visits []*visit) string {
	var s strings.Builder
	fmt.Fprintf(&s, "# A healthy mixed load\n\nWritten by `make prove PROOF=healthy`: it lasted %s, began %s; the load average of the machine was up to %.1f.\n\n| clients | at a time | answered | failed |\n|---|---|---|---|\n",
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
