package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

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

// scene is where one scenario is set up, and what came of it.
type scene struct {
	*rig.Case
	rig.Artifacts
	clientsText, saidText, planText string

	k6Program, locustProgram string

	servers int
}

// clients, said and plan add to the row.
func (b *scene) clients(format string, args ...any) {
	b.clientsText = joined(b.clientsText, fmt.Sprintf(format, args...))
}

func (b *scene) said(format string, args ...any) {
	b.saidText = joined(b.saidText, fmt.Sprintf(format, args...))
}

func joined(a, more string) string {
	if a == "" {
		return more
	}
	return a + "; " + more
}

// server starts the sample application, warm; change sees its options.
func (b *scene) server(limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	server := b.launch(limits, change...)
	b.visit(server, 8, 20)
	b.idle(server)
	return server
}

// launch starts it, cold.
func (b *scene) launch(limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	b.Helper()
	o := rig.TomcatOptions{Artifacts: b.Artifacts, Port: port, ManagementPort: management, Limits: limits}
	for _, c := range change {
		c(&o)
	}
	b.servers++
	path := filepath.Join(b.Dir, "tomcat-"+strconv.Itoa(b.servers)+".log")
	log, err := os.Create(path)
	b.Must(err)
	defer log.Close()
	o.Log = log
	server, err := rig.StartTomcat(b.Ctx, o)
	if err != nil {
		text, _ := os.ReadFile(path)
		b.Must(fmt.Errorf("%w\n%s", err, text))
	}
	b.AtEnd(server.Stop)
	return server
}

// roomy starts one for thousands of connections, with the memory for their
// buffers, and well warmed: a server that compiles accepts slowly.
func (b *scene) roomy(limits rig.Limits, change ...func(*rig.TomcatOptions)) *rig.Tomcat {
	server := b.launch(limits, append(change, heap)...)
	b.visit(server, 3000, 1000)
	b.idle(server)
	return server
}

// visit lets clients come whose requests take no time.
func (b *scene) visit(server *rig.Tomcat, clients int, rate float64) {
	o := demo.BurstOptions{Address: server.Address(), Clients: clients, Rate: rate, Path: hello(0), RequestTimeout: 30 * time.Second}
	if server.TLS {
		o.TLS = rig.Unverified()
	}
	_, err := demo.Burst(b.Ctx, o)
	b.Must(err)
}

// idle waits until the server holds no connection.
func (b *scene) idle(server *rig.Tomcat) {
	b.Helper()
	b.busy(server, rig.Truth{Connections: 1})
}

// busy waits until Tomcat itself says so.
func (b *scene) busy(server *rig.Tomcat, want rig.Truth) {
	b.Helper()
	var now rig.Truth
	for deadline := time.Now().Add(30 * time.Second); ; b.Wait(20 * time.Millisecond) {
		var err error
		if now, err = server.Truth(b.Ctx); err == nil && now == want {
			return
		}
		if time.Now().After(deadline) || b.Ctx.Err() != nil {
			b.Must(fmt.Errorf("not within 30 s: %+v; the server says %+v", want, now))
		}
	}
}

// standalone starts a Tomcat of its own server.xml, warm.
func (b *scene) standalone(serverXML string) {
	b.Tomcat(rig.Tomcat10, rig.JVM{}, serverXML)
	b.Within(30*time.Second, "the standalone Tomcat serves its page", func() bool {
		o, err := demo.Burst(b.Ctx, demo.BurstOptions{Address: "127.0.0.1:" + decimal(port), Clients: 1, Path: "/slow.jsp?ms=0"})
		return err == nil && o.Of(demo.OK) == 1
	})
}

// limitFiles changes how many files a running process may open.
func limitFiles(pid int, most uint64) error {
	limit := unix.Rlimit{Cur: most, Max: most}
	return unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil)
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
func (b *scene) snapshot(args ...string) *rig.Document {
	b.Helper()
	d, err := b.snapshotOr(args...)
	b.Must(err)
	return d
}

func (b *scene) snapshotOr(args ...string) (*rig.Document, error) {
	if len(args) == 0 {
		args = []string{"--port", strconv.Itoa(port)}
	}
	out, errs, code, err := b.Artifacts.Run(b.Ctx, nil, append([]string{"snapshot", "--output", "json"}, args...)...)
	if err != nil {
		return nil, err
	}
	if code != 0 {
		return nil, fmt.Errorf("tcpdiag snapshot ended with %d: %s", code, errs)
	}
	if err := conforms(b.Source(snapshotSchema), out); err != nil {
		return nil, err
	}
	return rig.Decode(out)
}

// elsewhere runs tcpdiag in a network namespace where nothing is.
func (b *scene) elsewhere(args ...string) *rig.Document {
	b.Helper()
	out, err := exec.CommandContext(b.Ctx, "unshare", append([]string{"--net", b.Artifacts.Tcpdiag}, args...)...).Output()
	b.Must(err)
	b.Must(conforms(b.Source(snapshotSchema), out))
	d, err := rig.Decode(out)
	b.Must(err)
	return d
}

// on is the document's entry for a port, which must be there.
func (b *scene) on(d *rig.Document, port int) *rig.Listener {
	b.Helper()
	l := d.On(port)
	if l == nil {
		b.Must(fmt.Errorf("tcpdiag has no entry for port %d", port))
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
func (b *scene) verdict(l *rig.Listener, status, cause string, chain ...string) {
	b.Holds(l.Verdict.Status == status, "status %s, should be %s", l.Verdict.Status, status)
	b.Holds(l.Verdict.Cause == cause, "cause %q, should be %q", l.Verdict.Cause, cause)
	if chain != nil {
		b.Holds(strings.Join(l.Verdict.Chain, " ") == strings.Join(chain, " "), "chain %v, should be %v", l.Verdict.Chain, chain)
	}
}

// stages checks the funnel's counts.
func (b *scene) stages(l *rig.Listener, inService, waiting, queue int) {
	if l.Connections == nil || l.AcceptQueue == nil {
		b.Holds(false, "no counts of the stages")
		return
	}
	b.Holds(l.Connections.InService == inService, "%d in service, should be %d", l.Connections.InService, inService)
	b.Holds(l.Connections.Waiting == waiting, "%d waiting, should be %d", l.Connections.Waiting, waiting)
	b.Holds(l.AcceptQueue.Length == queue, "%d in the accept queue, should be %d", l.AcceptQueue.Length, queue)
}

// capacity checks how many clients fit.
func (b *scene) capacity(l *rig.Listener, n int) {
	if l.Capacity == nil {
		b.Holds(false, "no capacity")
		return
	}
	b.Holds(*l.Capacity == n, "capacity %d, should be %d", *l.Capacity, n)
}
