package docker

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// The application's user, and its limits: 10 + 5 + 1 clients fit.
const (
	appUser        = "1001:999"
	threads        = 4
	maxConnections = 10
	acceptCount    = 5
)

// tomcat is a Spring Boot application in a container.
type tomcat struct {
	id, ip string
	pid    int // as the engine's host sees it
}

func (w *world) tomcat(t *testing.T) tomcat {
	t.Helper()
	network := "test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	w.docker(t, "network", "create", network)
	t.Cleanup(func() { _ = w.command(context.Background(), "network", "rm", network).Run() })
	id := w.start(t, "--network", network, "--user", appUser, "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"-e", "SERVER_TOMCAT_THREADS_MAX="+strconv.Itoa(threads),
		"-e", "SERVER_TOMCAT_MAXCONNECTIONS="+strconv.Itoa(maxConnections),
		"-e", "SERVER_TOMCAT_ACCEPTCOUNT="+strconv.Itoa(acceptCount),
		"-e", "MANAGEMENT_PORT=8081", app) // which answers while 8080 is full
	pid, err := strconv.Atoi(w.inspect(t, id, "{{.State.Pid}}"))
	require.NoError(t, err)
	server := tomcat{id: id, ip: w.inspect(t, id, "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"), pid: pid}
	nettest.Within(t, time.Minute, "the application answers", func() bool { return answers("http://" + server.ip + ":8081/actuator/health") })
	return server
}

func answers(url string) bool {
	answer, err := http.Get(url)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode == http.StatusOK
}

// overload lets 24 clients come within 0.2 s, each with a request of 30 s:
// 4 are served, 6 wait inside, 6 in the accept queue, and 8 try again and again.
func (s tomcat) overload(t *testing.T) (leave func()) {
	t.Helper()
	load, err := demo.NewLoad(demo.BurstOptions{
		Address: s.ip + ":8080", Clients: 24, Rate: 120, Path: "/hello?ms=30000",
		ConnectTimeout: time.Minute, RequestTimeout: time.Minute,
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); load.Run(ctx) }()
	leave = func() { cancel(); <-done }
	t.Cleanup(leave)
	nettest.Within(t, 10*time.Second, "16 clients connected", func() bool { return load.Now().Open == maxConnections+acceptCount+1 })
	return leave
}

// beside returns the flags of a container in the namespaces of the application's.
func (s tomcat) beside(user string, pidNamespace bool) []string {
	args := append(locked(), "--network", "container:"+s.id)
	if pidNamespace {
		args = append(args, "--pid", "container:"+s.id)
	}
	if user != "" {
		args = append(args, "--user", user)
	}
	return args
}

// a view is one way to look at the application.
type view struct {
	options []string // of docker run
	args    []string // of tcpdiag snapshot
	see     func(t *testing.T, host, d *rig.Document)
}

func testSidecar(t *testing.T, w *world) {
	server := w.tomcat(t)
	agent := &rig.Agent{Address: server.ip + ":10889"}
	sidecar := w.start(t, slices.Concat(server.beside(appUser, true),
		[]string{"--memory", "64m", "--pids-limit", "32", "--health-interval", "500ms", image})...)
	nettest.Within(t, 20*time.Second, "the sidecar is ready", func() bool { return answers("http://" + agent.Address + "/-/ready") })
	node := w.nodeAgent(t, 10890, "SYS_ADMIN", "SYS_PTRACE", "DAC_READ_SEARCH", "SETUID", "SETGID")
	blindNode := w.nodeAgent(t, 10891, "SYS_ADMIN", "SYS_PTRACE", "SETUID", "SETGID")
	leave := server.overload(t)

	views := views(server)
	documents := w.lookAll(t, server, views)
	host := documents[""]
	requireOverload(t, host)
	for name, v := range views {
		t.Run(name, func(t *testing.T) { v.see(t, host, documents[name]) })
	}
	t.Run("agent", func(t *testing.T) {
		requireSame(t, host, agentSnapshot(t, agent), 1)
		require.Equal(t, "healthy", w.inspect(t, sidecar, "{{.State.Health.Status}}"), "an overload is not the agent's illness")
	})
	t.Run("node agent", func(t *testing.T) {
		requireSame(t, host, agentSnapshot(t, node), server.pid)
		metrics, err := node.Metrics(t.Context())
		require.NoError(t, err)
		_, found := metrics.Find("tcpdiag_listener_info", `port="8080"`, `container="`+server.id+`"`)
		require.True(t, found, "with the container's id")
	})
	t.Run("node agent without DAC_READ_SEARCH", func(t *testing.T) {
		requireDenied(server.pid, "environ", "descriptors")(t, host, agentSnapshot(t, blindNode))
	})
	leave()
	t.Run("every packet is accounted for", func(t *testing.T) {
		var metrics rig.Series
		nettest.Within(t, 10*time.Second, "what the agent counted is what the kernel counted", func() bool {
			d := w.host(t, server, "--interval", "0")
			var err error
			metrics, err = agent.Metrics(t.Context())
			require.NoError(t, err)
			counted := metrics.Sum("tcpdiag_listener_dropped_packets_total") + metrics.Sum("tcpdiag_netns_unattributed_dropped_packets_total")
			return int(counted) == d.NetNS[0].Counters["ListenDrops"]
		})
		require.GreaterOrEqual(t, metrics.Sum("tcpdiag_listener_dropped_packets_total", `cause="max_connections"`), 8.0, "8 clients found no place")
		memory, ok := metrics.Find("process_resident_memory_bytes")
		require.True(t, ok)
		require.Less(t, memory, 30.0*(1<<20))
	})
}

// nodeAgent runs an agent for every namespace of the host.
func (w *world) nodeAgent(t *testing.T, port int, capabilities ...string) *rig.Agent {
	t.Helper()
	agent := &rig.Agent{Address: "127.0.0.1:" + strconv.Itoa(port)}
	args := append(locked(), "--network", "host", "--pid", "host", "--user", "0:0")
	for _, c := range capabilities {
		args = append(args, "--cap-add", c)
	}
	w.start(t, append(args, image, "agent", "--all-namespaces", "--web.listen-address", agent.Address)...)
	nettest.Within(t, 20*time.Second, "the node agent is ready", func() bool { return answers("http://" + agent.Address + "/-/ready") })
	return agent
}

func agentSnapshot(t *testing.T, agent *rig.Agent) *rig.Document {
	t.Helper()
	d, err := agent.Snapshot(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := agent.Get(context.Background(), "/api/v1/snapshot")
			t.Logf("the agent said, a moment later:\n%s", text)
		}
	})
	return d
}

// views are the ways that differ in what they may see.
func views(s tomcat) map[string]view {
	all := func(t *testing.T, host, d *rig.Document) { requireSame(t, host, d, 1) }
	fromHost := func(t *testing.T, host, d *rig.Document) { requireSame(t, host, d, s.pid) }
	byHand := []string{"--max-connections", strconv.Itoa(maxConnections), "--max-threads", strconv.Itoa(threads)}
	return map[string]view{
		"uid and gid of the application": {s.beside(appUser, true), nil, all},
		"root with SYS_PTRACE, DAC_READ_SEARCH, SETUID and SETGID": {
			append(s.beside("0:0", true), "--cap-add", "SYS_PTRACE", "--cap-add", "DAC_READ_SEARCH",
				"--cap-add", "SETUID", "--cap-add", "SETGID"), nil, all,
		},
		"the host's namespaces, and another entered": {
			append(locked(), "--network", "host", "--pid", "host", "--user", "0:0",
				"--cap-add", "SYS_ADMIN", "--cap-add", "SYS_PTRACE", "--cap-add", "DAC_READ_SEARCH", "--cap-add", "SETUID", "--cap-add", "SETGID"),
			[]string{"--pid", strconv.Itoa(s.pid)},
			fromHost,
		},
		"its uid, another gid":       {s.beside("1001:1000", true), nil, requireDenied(1, "environ", "descriptors")},
		"the image's own user":       {s.beside("", true), nil, requireDenied(1, "environ", "descriptors", "working directory")},
		"root without capabilities":  {s.beside("0:0", true), nil, requireDenied(1, "environ", "descriptors", "working directory")},
		"root with SYS_PTRACE alone": {append(s.beside("0:0", true), "--cap-add", "SYS_PTRACE"), nil, requireDenied(1, "environ", "descriptors")},
		"no shared pid namespace":    {s.beside("", false), nil, requireUnowned("", "accept_queue")},
		"the same, limits given":     {s.beside("", false), byHand, requireUnowned("max_connections", "max_connections")},
		"the same, Actuator asked":   {s.beside("", false), []string{"--actuator", "http://127.0.0.1:8081/actuator"}, requireUnowned("max_connections", "max_connections")},
	}
}

// lookAll looks at the same two seconds in all ways; "" is the host's.
func (w *world) lookAll(t *testing.T, s tomcat, views map[string]view) map[string]*rig.Document {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[string]*rig.Document{}
	look := func(name string, fn func() *rig.Document) {
		all.Go(func() {
			d := fn()
			mu.Lock()
			defer mu.Unlock()
			out[name] = d
		})
	}
	look("", func() *rig.Document { return w.host(t, s, "--interval", "4s") })
	for name, v := range views {
		look(name, func() *rig.Document {
			return decode(t, w.docker(t, slices.Concat([]string{"run", "--rm"}, v.options,
				[]string{image, "snapshot", "--output", "json", "--port", "8080", "--interval", "4s"}, v.args)...))
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return out
}

// host looks from where the engine runs, as root, into the namespaces of pid.
func (w *world) host(t *testing.T, s tomcat, args ...string) *rig.Document {
	t.Helper()
	out, errs, code, err := w.Run(t.Context(), nil, append([]string{
		"snapshot", "--output", "json", "--pid", strconv.Itoa(s.pid), "--port", "8080",
	}, args...)...)
	require.NoError(t, err)
	require.Zero(t, code, "%s", errs)
	return decode(t, string(out))
}

func decode(t *testing.T, text string) *rig.Document {
	t.Helper()
	d, err := rig.Decode([]byte(text))
	require.NoError(t, err, "%s", text)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("a snapshot said:\n%s", text)
		}
	})
	return d
}

// requireOverload: the host sees what was arranged.
func requireOverload(t *testing.T, host *rig.Document) {
	t.Helper()
	l := host.On(8080)
	require.NotNil(t, l)
	require.Equal(t, acceptCount+1, l.AcceptQueue.Length)
	require.True(t, l.AcceptQueue.Full)
	require.Equal(t, maxConnections, l.Connections.Accepted)
	require.Equal(t, threads, l.Connections.InService)
	require.Equal(t, rig.Setting{Value: maxConnections, Source: "env SERVER_TOMCAT_MAXCONNECTIONS"}, *l.Connector.MaxConnections)
	require.Equal(t, "java", l.Process.Comm)
	require.Equal(t, "losing", l.Verdict.Status)
	require.Equal(t, "max_connections", l.Verdict.Cause)
	require.Equal(t, []string{"accept_queue", "max_connections", "max_threads"}, l.Verdict.Chain)
}

// requireSameSockets: what netlink reports does not depend on which process asks.
func requireSameSockets(t *testing.T, host, d *rig.Document) {
	t.Helper()
	want, got := host.On(8080), d.On(8080)
	require.NotNil(t, got)
	require.Equal(t, want.Address, got.Address)
	require.Equal(t, want.Inode, got.Inode)
	require.Equal(t, want.NetNS, got.NetNS)
	require.Equal(t, want.AcceptQueue.Length, got.AcceptQueue.Length)
	require.Equal(t, want.AcceptQueue.Capacity, got.AcceptQueue.Capacity)
	require.True(t, got.AcceptQueue.Full)
	later := d.Time.Sub(host.Time).Seconds() - got.Connections.AgeSeconds + want.Connections.AgeSeconds // between the two walks
	require.InDelta(t, *want.AcceptQueue.OldestWaitSeconds+later, *got.AcceptQueue.OldestWaitSeconds, .5)
	require.Equal(t, want.Connections.Accepted, got.Connections.Accepted)
	require.Equal(t, want.Connections.InService, got.Connections.InService)
	require.Equal(t, want.Connections.Waiting, got.Connections.Waiting)
	require.Equal(t, "losing", got.Verdict.Status)
	require.Positive(t, got.Losses.DroppedPackets, "clients try again every second")
	for i := range d.NetNS { // a node agent shows others as well
		if d.NetNS[i].ID == got.NetNS {
			require.Equal(t, settled(host.NetNS[0].Sysctl), settled(d.NetNS[i].Sysctl))
			require.Equal(t, d.NetNS[i].Delta["ListenDrops"], got.Losses.DroppedPackets+got.Losses.Unattributed)
			return
		}
	}
	require.FailNow(t, "no entry for the listener's namespace")
}

// settled leaves out what changes from one moment to the next.
func settled(sysctl map[string]int) map[string]int {
	out := maps.Clone(sysctl)
	delete(out, "nf_conntrack_count")
	return out
}

// requireSame: the same sockets, limits with their sources, process and verdict.
// pid is the application's in the pid namespace of the document.
func requireSame(t *testing.T, host, d *rig.Document, pid int) {
	t.Helper()
	requireSameSockets(t, host, d)
	want, got := host.On(8080), d.On(8080)
	require.Equal(t, want.Connector, got.Connector)
	require.Equal(t, want.Capacity, got.Capacity)
	require.Equal(t, pid, got.Process.PID)
	require.Equal(t, want.Process.Comm, got.Process.Comm)
	require.Equal(t, want.Process.OpenFilesLimit, got.Process.OpenFilesLimit)
	require.InDelta(t, *want.Process.OpenFiles, *got.Process.OpenFiles, 3)
	require.InDelta(t, *want.Process.Threads, *got.Process.Threads, 3)
	require.Equal(t, want.Verdict.Cause, got.Verdict.Cause)
	require.Equal(t, want.Verdict.Chain, got.Verdict.Chain)
	for i, limit := range want.Limits {
		require.Equal(t, limit.Name, got.Limits[i].Name)
		require.Equal(t, limit.Max, got.Limits[i].Max)
		if limit.Name != "syn_backlog" { // half-open ones come and go between the walks
			require.InDelta(t, limit.Used, got.Limits[i].Used, 3, limit.Name)
		}
	}
	for _, u := range d.Unavailable {
		require.NotContains(t, u.Why, "denied", u.What)
	}
}

// requireDenied: the process is found by its threads' names, and each thing
// that its user alone may read is named, with the user.
func requireDenied(pid int, what ...string) func(t *testing.T, host, d *rig.Document) {
	return func(t *testing.T, host, d *rig.Document) {
		t.Helper()
		requireSameSockets(t, host, d)
		l := d.On(8080)
		require.NotNil(t, l.Process)
		require.Equal(t, pid, l.Process.PID)
		require.NotNil(t, l.Connector)
		require.Equal(t, "tomcat", l.Connector.Server)
		require.Equal(t, new(threads), l.Connector.PoolThreads)
		for _, f := range l.Verdict.Findings {
			require.NotEqual(t, "backlog_clamped", f.Code, "acceptCount is %d in an environment that was not read", acceptCount)
		}
		for _, s := range []*rig.Setting{l.Connector.MaxConnections, l.Connector.MaxThreads} {
			require.True(t, s == nil || s.Note != "", "no limit is called certain: %+v", s)
		}
		for _, want := range what {
			requireNamed(t, d, want, "permission denied", "uid 1001")
		}
	}
}

// requireUnowned: depth, limit and drops need no process; what needs one is
// missing, and the document says how to get it. drops is the cause that the
// dropped packets are booked to.
func requireUnowned(cause, drops string) func(t *testing.T, host, d *rig.Document) {
	return func(t *testing.T, host, d *rig.Document) {
		t.Helper()
		requireSameSockets(t, host, d)
		l := d.On(8080)
		require.Nil(t, l.Process)
		require.Equal(t, cause, l.Verdict.Cause)
		for _, by := range l.Losses.By {
			require.Equal(t, drops, by.Cause)
		}
		requireNamed(t, d, "owner of", "no process in this /proc", "pid namespace")
	}
}

// requireNamed: the document names what it could not see, why, and how to.
func requireNamed(t *testing.T, d *rig.Document, what, why, how string) {
	t.Helper()
	for _, u := range d.Unavailable {
		if strings.Contains(u.What, what) && strings.Contains(u.Why, why) && strings.Contains(u.How, how) {
			return
		}
	}
	require.FailNow(t, "not named: "+what, "%+v", d.Unavailable)
}
