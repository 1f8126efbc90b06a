package observability

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// Ports of what is to be told of, each of which has one fault.
const (
	firedFull = 8401 + iota
	firedIdle
	firedBusy
	firedAbandoned
	firedDown
	firedStuck
	firedMoment
	firedBurst
	firedFilling
	firedUnlimited
	firedFiles
	firedSYNs
	firedPorts
	firedClamped
	firedTomcat
	firedPaused
	firedHealthy
)

const (
	forEver       = "/?ms=3600000"
	firedWithin   = 22 * time.Minute // the longest hold is 15 minutes
	faultsAfter   = 40 * time.Second // what has to have been well before
	diesAfter     = 80 * time.Second // what is down is named by a look back of a sample a minute
	agentFrozen   = 900 * time.Millisecond
	agentThawed   = 100 * time.Millisecond
	firedMonitor  = "127.0.0.1:9290"
	firedNobody   = "127.0.0.1:9291"
	firedManager  = "127.0.0.1:9293"
	firedReceiver = "127.0.0.1:9299"
)

// firedBy says of each alert what made it, for the results.
func firedBy() map[string]string {
	return map[string]string{
		"TcpdiagListenerDown":              "a server is killed",
		"TcpdiagBacklogOverflow":           "a Tomcat with more clients than its 4 threads serve; one that is stopped (SIGSTOP); a server out of files; one that accepts nobody for 5 s; one whose limits nobody knows",
		"TcpdiagClientsTurnedAway":         "requests of 2.5 s of clients that wait 1 s",
		"TcpdiagClientsRefused":            "clients of 127.0.0.2, where a server listens at 127.0.0.1",
		"TcpdiagBacklogFull":               "a server accepts nobody for 0.8 s; another one's queue is full and nobody else comes",
		"TcpdiagSynBacklogDrops":           "SYNs of clients that never answer, without SYN cookies",
		"TcpdiagQueueResets":               "a server is killed with four clients in its accept queue",
		"TcpdiagAcceptQueueHigh":           "six clients in a queue of six that nobody accepts",
		"TcpdiagBacklogOverflowPredicted":  "one client more every 15 s, of 72, who all stay",
		"TcpdiagMaxConnectionsReached":     "20 connections for 4 threads, three clients in the queue",
		"TcpdiagKeepAliveHoldsConnections": "20 idle connections, three clients in the queue",
		"TcpdiagThreadsExhausted":          "ten requests that last for 4 threads",
		"TcpdiagClientsAbandonRequests":    "requests of 2.5 s of clients that wait 1 s",
		"TcpdiagBacklogClamped":            "acceptCount 5000 where net.core.somaxconn is 4096",
		"TcpdiagOpenFilesHigh":             "clients that stay take 20 of the 20 files that a process may have",
		"TcpdiagOpenFilesPredicted":        "one client more every 15 s, of 72, for 160 files",
		"TcpdiagEphemeralPortsHigh":        "45 connections to one backend from 50 local ports",
		"TcpdiagAgentMissing":              "an agent is killed",
		"TcpdiagAgentAbsent":               "a Prometheus that scrapes no agent",
		"TcpdiagAgentBlind":                "an agent that sees an empty /proc/sys/net",
		"TcpdiagAgentMissesSamples":        "an agent that runs for a tenth of each second (SIGSTOP)",
		"TcpdiagListenersOmitted":          "--max-listeners 1 on a machine with more",
		"TcpdiagConfigReloadFailed":        "a mistake in the configuration file, and SIGHUP",
	}
}

// TestFullEveryAlertFires has real servers and agents make every alert of the delivered rules: a Prometheus evaluates
// them, an Alertmanager routes them, and the texts are written down as a receiver got them.
func TestFullEveryAlertFires(t *testing.T) {
	proof.Skip(t)
	a := artifacts(t)
	f := newFired(t, a)
	_, alerting := rules(t)
	var missing []string
	for _, rule := range alerting {
		missing = append(missing, rule.Alert)
	}
	require.ElementsMatch(t, missing, slices.Collect(maps.Keys(firedBy())), "what made each alert is written down")
	f.begin()
	for end := time.Now().Add(firedWithin); time.Now().Before(end) && !f.complete(missing); time.Sleep(time.Second) {
		f.listen()
	}
	f.write(missing)
	for _, name := range missing {
		require.NotEmpty(t, f.arrived[name], name)
	}
	for _, n := range f.all() {
		for _, text := range []string{"summary", "description", "runbook", "runbook_url", "dashboard_url"} {
			require.NotEmpty(t, n.Annotations[text], "%s: %s", n.Labels["alertname"], text)
			require.NotRegexp(t, `<no value>|%!|\{\{|NaN|\bInf\b`, n.Annotations[text], n.Labels["alertname"])
		}
	}
}

// fired is a machine on which everything is wrong, and what is told of it.
type fired struct {
	*stack
	t       *testing.T
	rig     rig.Artifacts
	shop    string // the program
	jobs    []Job
	seen    int
	arrived map[string][]Notification // firing, by alert; each listener and cause once
}

func newFired(t *testing.T, a rig.Artifacts) *fired {
	f := &fired{t: t, rig: a, stack: &stack{agents: make(map[string]*rig.Agent)}, arrived: make(map[string][]Notification)}
	f.shop = filepath.Join(t.TempDir(), "shop")
	out, err := exec.Command("go", "build", "-o", f.shop, "./shop").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return f
}

// begin starts the servers, their clients, the agents and what watches them, and then the faults that must not have been there before.
func (f *fired) begin() {
	t := f.t
	limited := []string{"--max-connections", "20", "--max-threads", "4"}
	roomy := []string{"--max-connections", "100", "--max-threads", "100"}

	f.serve(nil, spec(firedFull, 20, 4, 5), spec(firedIdle, 20, 4, 5), spec(firedBusy, 20, 4, 5), spec(firedAbandoned, 20, 4, 5), stuck(firedStuck), spec(firedHealthy, 20, 4, 5), stuck(firedUnlimited), spec(firedClamped, 20, 4, 5000))
	dying := f.serve(nil, stuck(firedDown))
	f.serve(nil, "-files", "160", spec(firedFilling, 100, 100, 5))
	f.serve(nil, "-files", "20", spec(firedFiles, 100, 100, 5))
	own := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET}
	syns := f.serve(own, "-alone", "-sysctl", "net.ipv4.tcp_syncookies=0;net.ipv4.tcp_max_syn_backlog=64", "-flood", fmt.Sprint(firedSYNs), spec(firedSYNs, 20, 4, 16))
	ports := f.serve(own, "-alone", "-sysctl", "net.ipv4.ip_local_port_range=40000 40049", "-outgoing", "45", spec(firedPorts, 20, 4, 5))
	moment, burst := f.listenAlone(firedMoment), f.listenAlone(firedBurst)
	limits := rig.Limits{Threads: threads, MinSpare: threads, MaxConnections: connections, AcceptCount: acceptCount}
	overloaded, err := rig.StartTomcat(t.Context(), rig.TomcatOptions{Artifacts: f.rig, Limits: limits, Port: firedTomcat, ManagementPort: 8501})
	require.NoError(t, err)
	t.Cleanup(overloaded.Stop)
	paused, err := rig.StartTomcat(t.Context(), rig.TomcatOptions{Artifacts: f.rig, Limits: limits, Port: firedPaused, ManagementPort: 8502})
	require.NoError(t, err)
	t.Cleanup(paused.Stop)

	config := filepath.Join(t.TempDir(), "tcpdiag.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "targets:\n- port: %d\n", firedHealthy), 0o600))
	f.watchedBy("tcpdiag", slices.Concat(limited, listeners(firedFull, firedIdle, firedBusy, firedAbandoned, firedDown, firedStuck))...)
	f.watchedBy("tcpdiag-roomy", slices.Concat(roomy, listeners(firedMoment, firedBurst, firedFilling, firedFiles))...)
	f.watchedBy("tcpdiag-clamped", slices.Concat(limited, []string{"--accept-count", "5000"}, listeners(firedClamped))...)
	f.watchedBy("tcpdiag-unlimited", listeners(firedUnlimited)...)
	f.watchedBy("tcpdiag-java", listeners(firedTomcat, firedPaused)...)
	f.watchedBy("tcpdiag-alone", slices.Concat(limited, []string{"--pid", fmt.Sprint(syns), "--pid", fmt.Sprint(ports)})...)
	f.watchedBy("tcpdiag-omits", "--all", "--max-listeners", "1")
	f.watchedBy("tcpdiag-misses", slices.Concat(limited, listeners(firedHealthy))...)
	f.watchedBy("tcpdiag-gone", slices.Concat(limited, listeners(firedHealthy))...)
	f.watchedBy("tcpdiag-configured", "--config", config)
	f.blind(listeners(firedHealthy)...)
	f.monitor()

	stay := demo.BurstOptions{Path: forEver, Rate: 20}
	f.clients(firedFull, stay, 23)
	f.clients(firedBusy, stay, 10)
	f.clients(firedStuck, stay, queueCapacity)
	f.clients(firedDown, stay, 4)
	f.clients(firedIdle, demo.BurstOptions{Path: "/?ms=1", Rate: 20, Requests: -1, Think: time.Hour}, 20)
	f.clients(firedAbandoned, demo.BurstOptions{Path: "/?ms=2500", Rate: 1, RequestTimeout: time.Second}, 6000)
	f.clients(firedClamped, demo.BurstOptions{Address: fmt.Sprintf("127.0.0.2:%d", firedClamped), Path: "/", Rate: 1}, 6000)
	f.clients(firedFilling, stay, 72)
	time.AfterFunc(5*time.Second, func() {
		f.clients(firedFilling, demo.BurstOptions{Path: forEver, Rate: 1. / 15}, 28)
		f.clients(firedIdle, demo.BurstOptions{Path: "/?ms=1"}, 3)
	})
	time.Sleep(faultsAfter)

	crowd := demo.BurstOptions{Path: "/hello?ms=1000", Rate: 5, ConnectTimeout: 2 * time.Second, RequestTimeout: 10 * time.Second}
	f.clients(firedTomcat, crowd, 6000)
	crowd.Path = forEver
	crowd.RequestTimeout = 0
	f.clients(firedFiles, crowd, 6000)
	f.clients(firedUnlimited, crowd, 6000)
	require.NoError(t, syscall.Kill(paused.PID, syscall.SIGSTOP))
	t.Cleanup(func() { _ = syscall.Kill(paused.PID, syscall.SIGCONT) })
	f.clients(firedPaused, crowd, 6000)
	time.AfterFunc(diesAfter-faultsAfter, func() { _ = syscall.Kill(dying, syscall.SIGKILL) })
	f.agents["tcpdiag-gone"].Kill()
	require.NoError(t, os.WriteFile(config, []byte("targets:\n- port: eighty\n"), 0o600))
	require.NoError(t, syscall.Kill(f.agents["tcpdiag-configured"].PID, syscall.SIGHUP))
	f.freeze(f.agents["tcpdiag-misses"].PID)
	f.late(moment, firedMoment, 30, 800*time.Millisecond)
	f.late(burst, firedBurst, 60, 5*time.Second)
}

func spec(port, connections, threads, queue int) string {
	return fmt.Sprintf("%d,%d,%d,%d", port, connections, threads, queue)
}

func stuck(port int) string { return spec(port, connections, threads, acceptCount) + ",stuck" }

func listeners(ports ...int) (args []string) {
	for _, port := range ports {
		args = append(args, "--port", fmt.Sprint(port))
	}
	return args
}

// serve starts a process with listeners.
func (f *fired) serve(attr *syscall.SysProcAttr, args ...string) (pid int) {
	f.t.Helper()
	cmd := exec.CommandContext(f.t.Context(), f.shop, args...)
	cmd.Stderr = os.Stderr
	if cmd.SysProcAttr = attr; attr == nil {
		cmd.SysProcAttr = rig.DiesWithParent()
	}
	in, err := cmd.StdinPipe()
	require.NoError(f.t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(f.t, err)
	require.NoError(f.t, cmd.Start())
	f.t.Cleanup(func() { _ = in.Close(); rig.End(cmd) })
	ready := make([]byte, len("ready"))
	_, err = out.Read(ready)
	require.NoError(f.t, err)
	return cmd.Process.Pid
}

// listenAlone is a listener of this process that accepts nobody before it is told to.
func (f *fired) listenAlone(port int) *demo.Server {
	f.t.Helper()
	s, err := demo.Listen(f.t.Context(), demo.ServerOptions{Address: local(port), MaxConnections: 100, MaxThreads: 100, AcceptCount: acceptCount})
	require.NoError(f.t, err)
	return s
}

// late has clients come to it, and accepts them after a while.
func (f *fired) late(s *demo.Server, port, n int, after time.Duration) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	f.t.Cleanup(cancel)
	f.clients(port, demo.BurstOptions{Path: "/", ConnectTimeout: 20 * time.Second}, n)
	time.AfterFunc(after, func() { _ = s.Serve(ctx) })
}

// clients come to a port, until the end of the test.
func (f *fired) clients(port int, o demo.BurstOptions, n int) {
	o.Address, o.Clients = cmp.Or(o.Address, local(port)), n
	load, err := demo.NewLoad(o)
	if err != nil {
		f.t.Error(err)
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	done := make(chan struct{})
	go func() { defer close(done); load.Run(ctx) }()
	f.t.Cleanup(func() { cancel(); <-done })
}

// watchedBy starts an agent, which is a job of its own.
func (f *fired) watchedBy(job string, args ...string) {
	f.t.Helper()
	agent, err := f.rig.StartAgent(f.t.Context(), 10900+len(f.jobs), args...)
	require.NoError(f.t, err, job)
	f.watched(job, agent)
}

func (f *fired) watched(job string, agent *rig.Agent) {
	f.t.Cleanup(func() { _ = syscall.Kill(agent.PID, syscall.SIGCONT); _, _ = agent.Stop() })
	f.agents[job] = agent
	f.jobs = append(f.jobs, Job{Name: job, Target: agent.Address, ScrapeInterval: 5 * time.Second})
}

// blind starts an agent in a mount namespace in which the kernel's parameters are hidden, as some sandboxes do.
func (f *fired) blind(args ...string) {
	f.t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", 10900+len(f.jobs))
	line := append([]string{"-m", "sh", "-c", `mount -t tmpfs none /proc/sys/net && exec "$@"`, "sh", f.rig.Tcpdiag}, rig.AgentArgs(address, args)...)
	cmd := exec.Command("unshare", line...)
	cmd.SysProcAttr = rig.DiesWithParent()
	agent, err := rig.RunAgent(f.t.Context(), address, cmd)
	require.NoError(f.t, err)
	f.watched("tcpdiag-blind", agent)
}

// freeze lets a process run for a part of each second.
func (f *fired) freeze(pid int) {
	ctx := f.t.Context()
	go func() {
		for ctx.Err() == nil {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			time.Sleep(agentFrozen)
			_ = syscall.Kill(pid, syscall.SIGCONT)
			time.Sleep(agentThawed)
		}
	}()
}

// monitor starts Prometheus and Alertmanager, and a Prometheus that has nothing to scrape.
func (f *fired) monitor() {
	t := f.t
	rules, err := filepath.Abs(rulesDir)
	require.NoError(t, err)
	f.receiver, err = StartReceiver(t.Context(), firedReceiver, nil)
	require.NoError(t, err)
	t.Cleanup(f.receiver.Stop)
	f.alertmanager, err = StartAlertmanager(t.Context(), AlertmanagerOptions{
		Dir: t.TempDir(), Address: firedManager, Config: filepath.Join(rules, "alertmanager.yml"), Receiver: f.receiver.URL(),
		GroupWait: time.Second, GroupInterval: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(f.alertmanager.Stop)
	f.started = time.Now()
	for address, jobs := range map[string][]Job{firedMonitor: f.jobs, firedNobody: nil} {
		p, err := StartPrometheus(t.Context(), PrometheusOptions{
			Dir: t.TempDir(), Address: address, Rules: rules, EvaluationInterval: evaluation, Alertmanager: f.alertmanager.Address, Jobs: jobs,
		})
		require.NoError(t, err)
		t.Cleanup(p.Stop)
	}
}

// listen takes what has arrived since: of each alert the first of each listener or agent.
func (f *fired) listen() {
	got := f.receiver.Got()
	for _, n := range got[f.seen:] {
		name := n.Labels["alertname"]
		told := slices.ContainsFunc(f.arrived[name], func(o Notification) bool { return maps.Equal(o.Labels, n.Labels) })
		if n.Status == "firing" && !told {
			f.arrived[name] = append(f.arrived[name], n)
			f.t.Logf("%v %s: %s", n.At.Sub(f.started).Round(time.Second), name, n.Annotations["summary"])
		}
	}
	f.seen = len(got)
}

// complete reports whether there is nothing left to wait for: five kinds of overload make one alert.
func (f *fired) complete(names []string) bool {
	for _, name := range names {
		if len(f.arrived[name]) == 0 {
			return false
		}
	}
	return len(f.arrived["TcpdiagBacklogOverflow"]) >= 5 && len(f.arrived["TcpdiagBacklogFull"]) >= 2
}

// all are the texts, in the order of the rules.
func (f *fired) all() (out []Notification) {
	_, alerting := rules(f.t)
	for _, rule := range alerting {
		out = append(out, f.arrived[rule.Alert]...)
	}
	return out
}

const firedHead = `# Every alert, fired

Written by ` + "`make prove PROOF=alerts`" + `: real servers and agents with one fault each, a Prometheus with the delivered rules,
an Alertmanager with the delivered routes (it waits 1 s instead of 10 to 30), and each text as a receiver got it.
What another alert says better is kept back, so each comes from a server with that fault alone.

| alert | made by | after |
|---|---|---|
`

// write has the texts as they came, and where a proof is run the results.
func (f *fired) write(names []string) {
	root, err := rig.ModuleRoot()
	require.NoError(f.t, err)
	all := f.all()
	b, err := json.MarshalIndent(all, "", " ")
	require.NoError(f.t, err)
	require.NoError(f.t, os.WriteFile(filepath.Join(root, ".cache", "alerts.json"), b, 0o600))
	if !proof.Full() {
		return
	}
	by, text := firedBy(), strings.Builder{}
	text.WriteString(firedHead)
	for _, name := range names {
		after := "**not fired**"
		if got := f.arrived[name]; len(got) > 0 {
			after = fmt.Sprint(got[0].At.Sub(f.started).Round(time.Second))
		}
		fmt.Fprintf(&text, "| %s | %s | %s |\n", name, by[name], after)
	}
	text.WriteString("\n## As they arrived\n")
	for _, n := range all {
		fmt.Fprintf(&text, "\n**%s** (%s)\n\n> %s\n>\n> %s\n>\n> %s\n", n.Labels["alertname"], n.Receiver, n.Annotations["summary"], n.Annotations["description"], n.Annotations["runbook"])
	}
	require.NoError(f.t, os.WriteFile(filepath.Join(root, "docs", "results", "alerts.md"), []byte(text.String()), 0o600))
}
