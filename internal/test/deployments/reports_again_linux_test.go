package deployments

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// ajpGet is a request of AJP, as a proxy sends it.
func ajpGet(query string) string {
	text := func(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s + "\x00" }
	body := "\x02\x02" + text("HTTP/1.1") + text("/") + text("127.0.0.1") + text("localhost") + text("localhost") + "\x00\x50\x00\x00\x00\x05" + text(query) + "\xff"
	return "\x12\x34" + string([]byte{byte(len(body) >> 8), byte(len(body))}) + body
}

// ofAgain are reports of servers that end and come back, of a proxy's protocol, and of what threads wait for that is no
// connection of theirs.
func ofAgain() []report {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	eight := func(kind, source, told, path, truth string) report {
		return report{kind, source, told, func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=8")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get(path)})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 && s.Says(rig.Port).Connections >= 24 })
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; " + truth
			c.Both(rig.Port, "saturated max_threads").Names("8 of the threads wait for a lock").Silent("maxThreads from 8", "threads.max from 8")
		}}
	}
	return []report{
		{"L", "https://github.com/yaoweibin/nginx_ajp_module/issues/36", "connections of AJP that a proxy keeps take all places: connecting times out", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=AJP/1.3", "port=8080", "secretRequired=false", "maxThreads=10", "maxConnections=20", "acceptCount=10")
			c.Answers("127.0.0.1:8080")
			kept := c.Hold(rig.Clients{N: 20, Text: ajpGet("ms=1")})
			c.Until("they are answered", func() bool { return kept.Answered.Load() >= 20 })
			c.Hold(rig.Clients{N: 30, Text: ajpGet("ms=1")})
			c.Wait(3 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 20 of a proxy's connections are idle"
			c.Both(rig.Port, "losing keep_alive_idle", "saturated keep_alive_idle", "losing max_connections", "saturated max_connections").Silent("jvm_pause\"", "slow_accept")
		}},
		{"C", "https://github.com/egovernments/DIGIT-DevOps/pull/4893", "a probe kills the server again and again before it is ready for long; an agent to which nobody said which port", func(c *rig.Case) {
			ctx, cancel := context.WithCancel(c.Ctx)
			ended := make(chan struct{})
			c.AtEnd(func() { cancel(); <-ended })
			go func() {
				defer close(ended)
				for i := 0; ctx.Err() == nil; i++ {
					try := c.Beside(fmt.Sprint("try-", i))
					s := try.Embedded(rig.JVM{}, tomcat()...)
					for ctx.Err() == nil && !c.Connects(rig.Port) {
						rig.Wait(ctx, 100*time.Millisecond)
					}
					rig.Wait(ctx, 4*time.Second)
					_ = syscall.Kill(s.PID, syscall.SIGKILL)
					rig.Wait(ctx, time.Second)
				}
			}()
			c.Until("it has started once", func() bool { return c.Connects(rig.Port) })
			agent, err := rig.Artifacts{Tcpdiag: c.Tcpdiag()}.StartAgentAs(c.Ctx, c.Viewer, rig.AgentPort)
			c.Must(err)
			defer func() { _, _ = agent.Stop() }()
			c.Wait(2 * time.Second)
			var answered, refused atomic.Int64
			go func() {
				for ctx.Err() == nil {
					if err := rejected(ctx, "/"); err == nil {
						answered.Add(1)
					} else if strings.Contains(err.Error(), "refused") {
						refused.Add(1)
					}
					rig.Wait(ctx, 50*time.Millisecond)
				}
			}()
			var said []string
			c.Until("it is down twice, and comes back", func() bool {
				d, err := agent.Snapshot(c.Ctx)
				c.Must(err)
				if l := d.On(rig.Port); l != nil {
					if text := strings.TrimSpace(l.Verdict.Status + " " + l.Verdict.Cause); len(said) == 0 || said[len(said)-1] != text {
						said = append(said, text)
					}
				}
				rig.Wait(c.Ctx, 200*time.Millisecond)
				return strings.Count(strings.Join(said, ", "), "down") >= 2 && !strings.HasPrefix(said[len(said)-1], "down")
			})
			text, err := agent.Get(c.Ctx, "/api/v1/incidents")
			c.Must(err)
			var list struct {
				Incidents []struct {
					Title   string `json:"title"`
					Clients uint64 `json:"clients_turned_away"`
				} `json:"incidents"`
			}
			c.Must(json.Unmarshal(text, &list))
			n := refused.Load()
			c.Row.Truth = fmt.Sprintf("killed twice: %d requests answered, %d refused", answered.Load(), n)
			c.Holds(len(list.Incidents) > 0, "there is no incident")
			var sum uint64
			for _, i := range list.Incidents {
				sum += i.Clients
				c.Row.Said += "The incident: " + i.Title + ". "
			}
			c.Holds(4*sum >= uint64(3*n), "%d of %d clients are in the incidents", sum, n)
			c.Row.Said = "The agent: " + strings.Join(said, ", ") + ". " + c.Row.Said
		}},
		eight("M", "https://github.com/Netflix/conductor/pull/1247", "a message broker is down: its client's own thread tries to connect, and the handlers wait for it (max.block.ms)", "/?elsewhere=9092", "nobody listens on port 9092; the thread that connects is none of the server's"),
		eight("H", "https://github.com/vivo-project/VIVO/issues/2278", "the application does nothing, and uses no CPU: its threads wait for locks of one another", "/?embrace=1", "a deadlock of two locks"),
		{"I", "https://github.com/elastic/elasticsearch/issues/29504", "a young generation that is far too small: hundreds of short pauses a second", func(c *rig.Case) {
			log := filepath.Join(c.Dir, "safepoints.log")
			s := c.Embedded(rig.JVM{VM: []string{"-Xmx400m", "-Xms400m", "-Xmn1m", "-XX:+UseSerialGC", "-Xlog:safepoint:file=" + log}}, tomcat("maxThreads=10", "maxConnections=200")...)
			c.Answers("127.0.0.1:8080")
			kept := c.Hold(rig.Clients{N: 1, Text: rig.Get("/?keep=250000")})
			c.Until("the heap has something to be looked through", func() bool { return kept.Answered.Load() == 1 })
			c.Visit(40, "http://127.0.0.1:8080/?litter=20000")
			c.Wait(4 * time.Second)
			before, begun := stoodStill(log), time.Now()
			c.Both(rig.Port, "saturated jvm_pause", "losing jvm_pause").Names("stood still").Silent("maxThreads from 10", "threads.max from 10")
			c.Row.Truth = fmt.Sprintf("%s; the JVM stood still for %.0f %% of the time by its log of safepoints", s.Says(rig.Port), 100*(stoodStill(log)-before).Seconds()/time.Since(begun).Seconds())
		}},
	}
}
