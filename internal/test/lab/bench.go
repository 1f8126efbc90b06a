package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The ports of every scenario; the namespace is its own.
const (
	port       = 8080
	management = 8081
	extraPort  = 8443
	agentPort  = 10889
)

// bench is where one scenario is set up.
type bench struct {
	ctx     context.Context
	kit     kit
	dir     string // for its files
	row     row
	cleanup []func()
	servers int
}

// halted is panicked with when a scenario cannot continue, as testing's FailNow
// ends a test: the scenarios then read as a list of steps.
type halted struct{ why string }

// perform runs a scenario and cleans up after it.
func (b *bench) perform(s scenario) (r row) {
	defer func() {
		for i := len(b.cleanup) - 1; i >= 0; i-- {
			b.cleanup[i]()
		}
		if p := recover(); p != nil {
			stop, ok := p.(halted)
			if !ok {
				panic(p)
			}
			b.row.Broken = stop.why
		}
		r = b.row
	}()
	s.run(b)
	return b.row
}

// must ends the scenario on an error.
func (b *bench) must(err error) {
	if err != nil {
		panic(halted{err.Error()})
	}
}

// want notes what is not as it should be.
func (b *bench) want(ok bool, format string, args ...any) {
	if !ok {
		b.row.Wrong = append(b.row.Wrong, fmt.Sprintf(format, args...))
	}
}

// clients, said and plan add to the row.
func (b *bench) clients(format string, args ...any) {
	b.row.Clients = joined(b.row.Clients, fmt.Sprintf(format, args...))
}

func (b *bench) said(format string, args ...any) {
	b.row.Said = joined(b.row.Said, fmt.Sprintf(format, args...))
}

func joined(a, more string) string {
	if a == "" {
		return more
	}
	return a + "; " + more
}

// within waits for something that is bound to come.
func (b *bench) within(limit time.Duration, what string, condition func() bool) {
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) || b.ctx.Err() != nil {
			panic(halted{fmt.Sprintf("not within %s: %s", limit, what)})
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// settle lets time pass.
func (b *bench) settle(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
		panic(halted{b.ctx.Err().Error()})
	}
}

// server starts the sample application, warm; change sees its options.
func (b *bench) server(limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	server := b.launch(limits, change...)
	b.visit(server, 8, 20)
	b.idle(server)
	return server
}

// launch starts it, cold.
func (b *bench) launch(limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	o := rig.TomcatOptions{Artifacts: b.kit.Artifacts, Port: port, ManagementPort: management, Limits: limits}
	for _, c := range change {
		c(&o)
	}
	b.servers++
	path := filepath.Join(b.dir, "tomcat-"+strconv.Itoa(b.servers)+".log")
	log, err := os.Create(path)
	b.must(err)
	defer log.Close()
	o.Log = log
	server, err := rig.StartTomcat(b.ctx, o)
	if err != nil {
		text, _ := os.ReadFile(path)
		panic(halted{fmt.Sprintf("%v\n%s", err, text)})
	}
	b.cleanup = append(b.cleanup, server.Stop)
	return server
}

// roomy starts one for thousands of connections, with the memory for their
// buffers, and well warmed: a server that compiles accepts slowly.
func (b *bench) roomy(limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	server := b.launch(limits, append(change, heap)...)
	b.visit(server, 3000, 1000)
	b.idle(server)
	return server
}

// visit lets clients come whose requests take no time.
func (b *bench) visit(server *rig.Tomcat, clients int, rate float64) {
	o := demo.BurstOptions{Address: server.Address(), Clients: clients, Rate: rate, Path: hello(0), RequestTimeout: 30 * time.Second}
	if server.TLS {
		o.TLS = unverified()
	}
	_, err := demo.Burst(b.ctx, o)
	b.must(err)
}

// idle waits until the server holds no connection.
func (b *bench) idle(server *rig.Tomcat) {
	b.within(30*time.Second, "the server is idle", func() bool {
		now, err := server.Truth(b.ctx)
		return err == nil && now == rig.Truth{Connections: 1}
	})
}

// busy waits until Tomcat itself says so.
func (b *bench) busy(server *rig.Tomcat, want rig.Truth) {
	var now rig.Truth
	defer func() {
		if p := recover(); p != nil {
			panic(halted{fmt.Sprintf("%v; the server says %+v", p, now)})
		}
	}()
	b.within(20*time.Second, fmt.Sprintf("%+v", want), func() bool {
		var err error
		now, err = server.Truth(b.ctx)
		return err == nil && now == want
	})
}

// heap is memory for the buffers of many connections, so much of it that no
// collection pauses the acceptor: tcpdiag would name the pause, and rightly. The
// variable beats the command line.
func heap(o *rig.TomcatOptions) {
	o.Env = append(o.Env, "_JAVA_OPTIONS=-Xms2500m -Xmx2500m -Xmn2200m -XX:+AlwaysPreTouch")
}

// env adds settings.
func env(settings ...string) func(*rig.TomcatOptions) {
	return func(o *rig.TomcatOptions) { o.Env = append(o.Env, settings...) }
}

// hello is the path of a request that takes this long.
func hello(d time.Duration) string { return "/hello?ms=" + strconv.FormatInt(d.Milliseconds(), 10) }

// snapshot runs `tcpdiag snapshot`, given no more than the port.
func (b *bench) snapshot(args ...string) *rig.Document {
	if len(args) == 0 {
		args = []string{"--port", strconv.Itoa(port)}
	}
	out, errs, code, err := b.kit.Run(b.ctx, nil, append([]string{"snapshot", "--output", "json"}, args...)...)
	b.must(err)
	if code != 0 {
		panic(halted{fmt.Sprintf("tcpdiag snapshot ended with %d: %s", code, errs)})
	}
	b.must(conforms(out))
	d, err := rig.Decode(out)
	b.must(err)
	return d
}

// on is the document's entry for a port, which must be there.
func (b *bench) on(d *rig.Document, port int) *rig.Listener {
	l := d.On(port)
	if l == nil {
		panic(halted{fmt.Sprintf("tcpdiag has no entry for port %d", port)})
	}
	return l
}

// finds reports whether the verdict has a finding.
func finds(l *rig.Listener, code string) bool {
	for _, f := range l.Verdict.Findings {
		if f.Code == code {
			return true
		}
	}
	return false
}

// verdict checks status, cause and chain; chain nil leaves the chain open.
func (b *bench) verdict(l *rig.Listener, status, cause string, chain ...string) {
	b.want(l.Verdict.Status == status, "status %s, should be %s", l.Verdict.Status, status)
	b.want(l.Verdict.Cause == cause, "cause %q, should be %q", l.Verdict.Cause, cause)
	if chain != nil {
		b.want(strings.Join(l.Verdict.Chain, " ") == strings.Join(chain, " "), "chain %v, should be %v", l.Verdict.Chain, chain)
	}
}

// stages checks the funnel's counts.
func (b *bench) stages(l *rig.Listener, inService, waiting, queue int) {
	if l.Connections == nil || l.AcceptQueue == nil {
		b.want(false, "no counts of the stages")
		return
	}
	b.want(l.Connections.InService == inService, "%d in service, should be %d", l.Connections.InService, inService)
	b.want(l.Connections.Waiting == waiting, "%d waiting, should be %d", l.Connections.Waiting, waiting)
	b.want(l.AcceptQueue.Length == queue, "%d in the accept queue, should be %d", l.AcceptQueue.Length, queue)
}

// capacity checks how many clients fit.
func (b *bench) capacity(l *rig.Listener, n int) {
	if l.Capacity == nil {
		b.want(false, "no capacity")
		return
	}
	b.want(*l.Capacity == n, "capacity %d, should be %d", *l.Capacity, n)
}
