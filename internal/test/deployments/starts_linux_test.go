package deployments

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

const startsHead = `# Starts and everyday events on a busy machine

Written by ` + "`make prove PROOF=starts`" + `: servers that start while endless loops take every CPU several times, with the
probes of a kubelet or a few clients, and what happens to a healthy server every day. Anything but ok is a false alarm, unless
one of the clients has failed or has waited for a second or longer.

| server | truth | tcpdiag says | so it is |
|---|---|---|---|
`

// begins is a server that starts, or to which something happens that harms nobody.
type begins struct {
	name   string
	server func(*rig.Case) *rig.Server
	path   string        // "" is a check of the port, which sends nothing
	every  time.Duration // between two clients; 0 is a second
	event  func(c *rig.Case, s *rig.Server)
}

const (
	startLasts = 12 * time.Second // after it listens
	eventEvery = 3 * time.Second
	noticed    = time.Second      // a wait that a client notices
	afterwards = 11 * time.Second // for as long as clients that failed or waited may be spoken of
)

// TestStarts has an agent watch each of them.
func TestStarts(t *testing.T) {
	all := slices.Concat(starting(), everyday())
	rig.Cases(t, "docs/results/starts.md", startsHead, all, func(b begins) (string, func(*rig.Case)) { return b.name, b.run })
}

func starting() []begins {
	full := "-XX:TieredStopAtLevel=4"
	plain := `<Connector port="8080" protocol="HTTP/1.1" connectionTimeout="20000"/>`
	tomcat := func(vm ...string) func(*rig.Case) *rig.Server {
		return func(c *rig.Case) *rig.Server {
			return c.Tomcat(rig.Tomcat10, rig.JVM{VM: append([]string{full}, vm...)}, plain)
		}
	}
	boot := func(vm ...string) func(*rig.Case) *rig.Server {
		return func(c *rig.Case) *rig.Server { return c.Boot("none", rig.JVM{VM: append([]string{full}, vm...)}) }
	}
	withApps := func(c *rig.Case) *rig.Server {
		home := c.Distribution(rig.Tomcat10)
		base := c.Base(home, plain)
		for _, app := range []string{"docs", "examples", "manager", "host-manager"} {
			c.Do("cp", "-r", filepath.Join(home, "webapps", app), filepath.Join(base, "webapps"))
		}
		return c.Catalina(home, base, rig.JVM{VM: []string{full}})
	}
	limited := func(c *rig.Case) *rig.Server {
		s := boot()(c)
		c.Quota(s, "0.5")
		return s
	}
	virtual := func(c *rig.Case) *rig.Server {
		return c.Boot("none", rig.JVM{Java: c.Java25(), VM: []string{full}}, "spring.threads.virtual.enabled=true")
	}
	const hello = "/hello?ms=1"
	var out []begins
	for _, again := range []string{"", ", again"} {
		out = append(
			out,
			begins{name: "Tomcat, its port is checked" + again, server: tomcat()},
			begins{name: "Tomcat with G1, its port is checked" + again, server: tomcat("-XX:+UseG1GC", "-Xmx512m")},
			begins{name: "Tomcat with four applications to deploy, its port is checked" + again, server: withApps},
			begins{name: "the same, asked for a page" + again, server: withApps, path: "/docs/"},
			begins{name: "Spring Boot, asked once a second" + again, server: boot(), path: hello},
		)
	}
	return append(
		out,
		begins{name: "Spring Boot, its port is checked", server: boot()},
		begins{name: "Spring Boot with a heap of 48 MiB", server: boot("-Xmx48m", "-XX:+UseSerialGC"), path: hello},
		begins{name: "Spring Boot with a heap of 64 MiB and G1", server: boot("-Xmx64m", "-XX:+UseG1GC"), path: hello},
		begins{name: "Spring Boot with half a CPU", server: limited, path: hello},
		begins{name: "Spring Boot with virtual threads, 10 requests/s", server: virtual, path: "/hello?ms=50", every: 100 * time.Millisecond},
		begins{name: "Spring Boot, 10 requests/s of 100 ms", server: boot(), path: "/hello?ms=100", every: 100 * time.Millisecond},
	)
}

// everyday are events that happen to a server that is well.
func everyday() []begins {
	boot := func(c *rig.Case) *rig.Server {
		return c.Boot("none", rig.JVM{VM: []string{"-XX:TieredStopAtLevel=4"}})
	}
	const path, every = "/hello?ms=20", 200 * time.Millisecond
	jcmd := func(command string) func(*rig.Case, *rig.Server) {
		return func(c *rig.Case, s *rig.Server) { c.Do("jcmd", strconv.Itoa(s.PID), command) }
	}
	n := 0
	return []begins{
		{name: "a full collection every 3 s", server: boot, path: path, every: every, event: jcmd("GC.run")},
		{name: "a thread dump every 3 s", server: boot, path: path, every: every, event: jcmd("Thread.print")},
		{name: "stopped for 200 ms every 3 s, as by a debugger", server: boot, path: path, every: every, event: func(c *rig.Case, s *rig.Server) {
			c.Halt(s)
			time.Sleep(200 * time.Millisecond)
			c.Must(syscall.Kill(s.PID, syscall.SIGCONT))
		}},
		{name: "another application is deployed every 3 s", path: "/ready.txt", every: every, server: func(c *rig.Case) *rig.Server {
			home := c.Distribution(rig.Tomcat10)
			base := c.Base(home, strings.Replace(rig.InServer("", `<Connector port="8080"/>`), `<Engine name`, `<Engine backgroundProcessorDelay="1" name`, 1))
			c.Write("base/webapps/ROOT/ready.txt", "ready\n")
			return c.Catalina(home, base, rig.JVM{VM: []string{"-XX:TieredStopAtLevel=4"}})
		}, event: func(c *rig.Case, _ *rig.Server) {
			n++
			c.Do("cp", "-r", filepath.Join(c.Distribution(rig.Tomcat10), "webapps/examples"), filepath.Join(c.Dir, "base/webapps", fmt.Sprint("examples", n)))
		}},
	}
}

func (b *begins) run(c *rig.Case) {
	for range 3 * runtime.NumCPU() {
		c.Program("sh", "-c", "while :; do :; done")
	}
	agent, err := rig.Artifacts{Tcpdiag: c.Tcpdiag()}.StartAgent(c.Ctx, rig.AgentPort, "--port", strconv.Itoa(rig.Port))
	c.Must(err)
	c.AtEnd(func() { _, _ = agent.Stop() })
	s := b.server(c)
	said := func() *rig.Listener {
		d, err := agent.Snapshot(c.Ctx)
		if err != nil || d.On(rig.Port) == nil || d.On(rig.Port).AcceptQueue == nil {
			return nil
		}
		return d.On(rig.Port)
	}
	c.Until("it listens", func() bool { return said() != nil })
	v := new(patience)
	c.AtEnd(v.start(c, b))
	if b.event != nil {
		c.Until("a client is answered", v.someAnswered)
		c.Wait(afterwards)
	}
	statuses := make(map[string]int)
	next := time.Now().Add(eventEvery)
	for end := time.Now().Add(startLasts); time.Now().Before(end) || !v.someAnswered() && time.Since(end) < time.Minute; c.Wait(250 * time.Millisecond) {
		if b.event != nil && time.Now().After(next) {
			b.event(c, s)
			next = time.Now().Add(eventEvery)
		}
		l := said()
		if l == nil {
			continue
		}
		statuses[l.Verdict.Status]++
		c.Row.Said = strings.TrimSpace(l.Verdict.Status+" "+l.Verdict.Cause) + ": " + l.Verdict.Summary
		if l.Verdict.Status != "ok" && !v.noticed() && len(c.Row.Wrong) == 0 {
			c.Holds(false, "nobody waited, and it says %q", c.Row.Said)
		}
	}
	c.Row.Truth = v.text() + fmt.Sprintf("; the load average was %.0f", rig.LoadAverage())
	c.Row.Said = fmt.Sprintf("ok in %d of %d readings; at the end %s", statuses["ok"], total(statuses), c.Row.Said)
}

func total(counts map[string]int) (n int) {
	for _, one := range counts {
		n += one
	}
	return n
}

// patience is what the clients saw.
type patience struct {
	mu       sync.Mutex
	begun    map[int]time.Time
	answered int
	failed   int
	longest  time.Duration
	bad      time.Time // when the latest was answered that had waited noticeably, or failed
}

// start has one come after the other, whatever became of those before it, until the end that it returns.
func (p *patience) start(c *rig.Case, b *begins) (end func()) {
	ctx, cancel := context.WithCancel(c.Ctx)
	p.begun = make(map[int]time.Time)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	every := b.every
	if every == 0 {
		every = time.Second
	}
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			all.Go(func() {
				p.visit(ctx, i, func() bool {
					if b.path == "" {
						return c.Connects(rig.Port)
					}
					return rig.Fetch(ctx, client, fmt.Sprintf("http://127.0.0.1:%d%s", rig.Port, b.path)) == nil
				})
			})
			rig.Wait(ctx, every)
		}
	})
	return func() { cancel(); all.Wait() }
}

func (p *patience) visit(ctx context.Context, i int, answered func() bool) {
	p.mu.Lock()
	began := time.Now()
	p.begun[i] = began
	p.mu.Unlock()
	ok := answered()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.begun, i)
	if ctx.Err() != nil {
		return
	}
	waited := time.Since(began)
	if p.longest = max(p.longest, waited); ok {
		p.answered++
	} else {
		p.failed++
	}
	if !ok || waited >= noticed {
		p.bad = time.Now()
	}
}

func (p *patience) someAnswered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered > 0
}

// noticed reports whether a client waits, or waited or failed lately, so that it notices.
func (p *patience) noticed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, began := range p.begun {
		if time.Since(began) >= noticed {
			return true
		}
	}
	return time.Since(p.bad) < afterwards
}

func (p *patience) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d clients answered, %d failed, the longest wait was %.1f s", p.answered, p.failed, p.longest.Seconds())
}
