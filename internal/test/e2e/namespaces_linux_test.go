package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// floodSize is how many SYNs are dropped while everybody looks.
const floodSize = 7

// The same server, read from the host, from its own namespaces and by agents,
// all at the same time: the same numbers, limits, losses and verdict.
func TestLongEveryPlaceSeesTheSame(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *pod{
		"Spring Boot in net, mount and pid namespaces": springPod,
		"Tomcat in ip netns":                           tomcatPod,
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			p.files = countOpenFiles(t, p.pid)
			port := strconv.Itoa(p.port)
			agents := map[string]*rig.Agent{
				"of the process": startAgent(t, "--pid", strconv.Itoa(p.pid)),
				"of the node":    startNodeAgent(t),
			}
			host := viewer{name: "host", all: true}.sees(t, "--pid", strconv.Itoa(p.pid), "--interval", "7s")
			beside := p.sidecar().sees(t, "--port", port, "--interval", "7s")
			apart := p.container().sees(t, "--port", port, "--interval", "7s")
			told := p.container().sees(t, append(flags(p.port, rig.Limits{Threads: podThreads, MaxConnections: podConnections}), "--interval", "7s")...)
			stranger := viewer{name: "another user of the host", uid: "65534", gid: "65534", net: p.net}.sees(t, "--port", port, "--interval", "0")
			time.Sleep(5 * time.Second) // all have looked once
			p.do(func() {
				p.drops = counters(t)["ListenDrops"]
				nettest.Overflow(t, p.address(), floodSize)
			})

			want := p.requireTruth(t, host())
			require.Equal(t, want, p.numbers(t, beside(), p.inner), "sidecar")
			p.requireApart(t, apart(), told(), want)
			for mode, agent := range agents {
				p.requireAgent(t, agent, mode, want)
			}
			p.requireNoFileOfTheHost(t, stranger())
		})
	}
}

// startNodeAgent watches every namespace, as no user in particular and with the
// capabilities that takes and no other.
func startNodeAgent(t *testing.T) *rig.Agent {
	t.Helper()
	a := artifacts(t)
	v := viewer{uid: "65534", gid: "65534", caps: []string{"sys_admin", "sys_ptrace", "dac_read_search", "setuid", "setgid"}}
	script := write(t, filepath.Join(appDir(t), "tcpdiag"), "#!/bin/sh\nexec "+strings.Join(v.setpriv(), " ")+" "+a.Tcpdiag+` "$@"`+"\n")
	require.NoError(t, os.Chmod(script, 0o755))
	a.Tcpdiag = script
	agent, err := a.StartAgent(t.Context(), fiveDigits(), "--all-namespaces")
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := agent.Stop()
		require.NoError(t, err)
	})
	return agent
}

// sidecar is a container that shares the pod's network and pid namespace, of
// the same user and group, with files of its own.
func (p *pod) sidecar() viewer {
	return viewer{name: "sidecar", uid: appID, gid: appID, net: p.net, pids: p.pid}
}

// container shares the network namespace only.
func (p *pod) container() viewer {
	return viewer{name: "without the pid namespace", uid: appID, gid: appID, net: p.net, alone: true}
}

// numbers are what must not depend on where they are read from.
type numbers struct {
	rig.Listener
	Counters, Delta map[string]int
	Codes           []string
	Dropped         map[string]int // packets by cause
}

// numbers takes out what does: the server's pid, which is known, moments, clients, and
// of which kind a dropped packet was: a drop between the readings of two
// counters makes that uncertain.
func (p *pod) numbers(t *testing.T, d *rig.Document, pid int) numbers {
	t.Helper()
	l := *listener(t, d, p.port)
	require.NotNil(t, l.Process)
	require.Equal(t, pid, l.Process.PID)
	require.NotNil(t, l.Process.SafepointSeconds, "the JVM's counters, by the pid that it has in its namespace")
	process, queue, held := *l.Process, *l.AcceptQueue, *l.Connections
	process.PID, queue.OldestWaitSeconds, held.AgeSeconds = 0, nil, 0
	process.SafepointSeconds = nil
	l.Limits = p.requireOpenFiles(t, &process, l.Limits)
	require.NotNil(t, process.Threads)
	process.Threads = nil // HotSpot starts and ends its compilers' as it likes
	l.Process, l.AcceptQueue, l.Connections = &process, &queue, &held
	l.Clients = nil // a sidecar may not follow handshakes
	var n numbers
	for _, ns := range d.NetNS {
		if ns.ID == l.NetNS {
			n.Counters, n.Delta = comparableCounters(ns.Counters), sinceAllBegan(ns.Delta)
		}
	}
	if l.Losses != nil {
		losses := *l.Losses
		n.Dropped = map[string]int{}
		for _, by := range losses.By {
			n.Dropped[by.Cause] += by.Packets
		}
		losses.By, losses.WorstCase = nil, nil
		l.Losses = &losses
	}
	for _, f := range l.Verdict.Findings {
		if f.Code != "clients_before_unknown" { // said where clients are followed
			n.Codes = append(n.Codes, f.Code)
		}
	}
	l.Verdict.Findings, l.Verdict.Summary = nil, ""
	l.Verdict.Answer.What = "" // clients where they can be counted, else packets
	l.Verdict.Answer.Do = slices.Clone(l.Verdict.Answer.Do)
	for i := range l.Verdict.Answer.Do {
		step := &l.Verdict.Answer.Do[i]
		step.Effect = "" // that is of as many clients as can be seen
		step.Command = strings.ReplaceAll(strings.ReplaceAll(step.Command, fmt.Sprintf("-p %d)", pid), "-p PID)"), fmt.Sprintf("--pid %d ", pid), "--pid PID ")
	}
	n.Listener = l
	return n
}

// openFiles are the fewest and the most files that a process had open, by /proc, since it was first looked at.
type openFiles struct {
	path         string
	mu           sync.Mutex
	fewest, most int
	missed       error
}

// countOpenFiles counts them hundreds of times a second, until the test ends: a JVM opens and closes
// some as it likes.
func countOpenFiles(t *testing.T, pid int) *openFiles {
	t.Helper()
	f := &openFiles{path: fmt.Sprintf("/proc/%d/fd", pid), fewest: math.MaxInt}
	f.count()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for tick := time.Tick(2 * time.Millisecond); ctx.Err() == nil; <-tick {
			f.count()
		}
	}()
	t.Cleanup(func() { stop(); <-ended })
	return f
}

func (f *openFiles) count() {
	f.mu.Lock()
	defer f.mu.Unlock()
	entries, err := os.ReadDir(f.path)
	if err != nil {
		f.missed = err
		return
	}
	f.fewest, f.most = min(f.fewest, len(entries)), max(f.most, len(entries))
}

// requireOpenFiles holds the number of open files to what /proc had, and takes it out: two who look
// one after the other may see another one.
func (p *pod) requireOpenFiles(t *testing.T, process *rig.Process, limits []rig.Limit) []rig.Limit {
	t.Helper()
	p.files.count()
	p.files.mu.Lock()
	defer p.files.mu.Unlock()
	require.NoError(t, p.files.missed)
	require.NotNil(t, process.OpenFiles)
	open := *process.OpenFiles
	require.GreaterOrEqual(t, open, p.files.fewest)
	require.LessOrEqual(t, open, p.files.most)
	process.OpenFiles = nil
	limits = slices.Clone(limits)
	i := slices.IndexFunc(limits, func(l rig.Limit) bool { return l.Name == "open_files" })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, open, limits[i].Used)
	require.InDelta(t, float64(open)/float64(limits[i].Max), limits[i].Ratio, 1e-9)
	limits[i].Used, limits[i].Ratio = 0, 0
	return limits
}

// comparableCounters leaves out what takes CAP_NET_ADMIN to read, what is read where CAP_NET_RAW is missing, and what moves while one
// after the other looks.
func comparableCounters(counters map[string]int) map[string]int {
	maps.DeleteFunc(counters, func(name string, _ int) bool {
		return strings.HasPrefix(name, "nft") || strings.HasPrefix(name, "refused") || name == "OutSegs"
	})
	return counters
}

// sinceAllBegan leaves out what clients opened while some did not yet look.
func sinceAllBegan(delta map[string]int) map[string]int {
	for _, opened := range []string{"ActiveOpens", "PassiveOpens", "CurrEstab"} {
		delete(delta, opened)
	}
	return comparableCounters(delta)
}

// requireTruth holds the snapshot from the host to what is known.
func (p *pod) requireTruth(t *testing.T, d *rig.Document) numbers {
	t.Helper()
	n := p.numbers(t, d, p.pid)
	require.Equal(t, "[::]:"+strconv.Itoa(p.port), n.Address)
	require.Equal(t, podBacklog+1, n.AcceptQueue.Length)
	require.Equal(t, podBacklog, n.AcceptQueue.Limit)
	require.True(t, n.AcceptQueue.Full)
	require.Equal(t, podConnections, n.Connections.Accepted)
	require.Equal(t, p.served, n.Connections.InService)
	require.Equal(t, p.idle, n.Connections.Idle)
	require.Equal(t, podConnections-p.served-p.idle, n.Connections.Waiting)
	require.Equal(t, new(podConnections+podBacklog+1), n.Capacity)
	for name, limit := range map[string]struct {
		*rig.Setting
		want int
	}{
		"max_connections": {n.Connector.MaxConnections, podConnections},
		"max_threads":     {n.Connector.MaxThreads, podThreads},
		"accept_count":    {n.Connector.AcceptCount, podBacklog},
	} {
		require.NotNil(t, limit.Setting, name)
		require.Equal(t, limit.want, limit.Value, "%s from %s", name, limit.Source)
		require.Equal(t, p.sources[name], trimDir(limit.Source), name)
	}
	require.Equal(t, "losing", n.Verdict.Status)
	require.Equal(t, p.cause, n.Verdict.Cause)
	require.Equal(t, floodSize, n.Losses.DroppedPackets)
	require.Equal(t, map[string]int{p.cause: floodSize}, n.Dropped)
	require.Equal(t, floodSize, n.Delta["ListenDrops"])
	p.do(func() {
		kernel := counters(t)
		for _, name := range []string{"ListenDrops", "ListenOverflows"} {
			require.Equal(t, floodSize, kernel[name]-p.drops, "nobody else is there")
			require.Equal(t, kernel[name], n.Counters[name], name)
		}
	})
	return n
}

// trimDir leaves "conf/server.xml line 3" of a path.
func trimDir(source string) string {
	dir, file := filepath.Split(source)
	if filepath.Base(dir) == "conf" {
		return "conf/" + file
	}
	return file
}

// requireApart: without the pid namespace there is no process to be seen, and
// so no limit; everything of the kernel's is there all the same. With the limits
// given by hand the verdict is, too.
func (p *pod) requireApart(t *testing.T, apart, told *rig.Document, want numbers) {
	t.Helper()
	for _, d := range []*rig.Document{apart, told} {
		l := listener(t, d, p.port)
		require.Nil(t, l.Process)
		require.Equal(t, want.Address, l.Address)
		require.Equal(t, want.Inode, l.Inode)
		require.Equal(t, want.NetNS, l.NetNS)
		l.AcceptQueue.OldestWaitSeconds, l.Connections.AgeSeconds = nil, 0
		require.Equal(t, want.AcceptQueue, l.AcceptQueue)
		require.Equal(t, want.SynBacklog, l.SynBacklog)
		require.Equal(t, want.Connections, l.Connections)
		require.Equal(t, want.Losses.DroppedPackets, l.Losses.DroppedPackets)
		require.Equal(t, want.Counters, comparableCounters(d.NetNS[0].Counters))
		require.Equal(t, want.Delta, sinceAllBegan(d.NetNS[0].Delta))
		require.Equal(t, want.Verdict.Status, l.Verdict.Status)
	}
	l := listener(t, apart, p.port)
	require.Empty(t, l.Verdict.Cause)
	_, unknown := code(l.Verdict, "limits_unknown")
	require.True(t, unknown)
	require.Nil(t, l.Capacity)
	var how string
	for _, u := range apart.Unavailable {
		how += u.How
	}
	require.Contains(t, how, "shareProcessNamespace")

	l = listener(t, told, p.port)
	require.Equal(t, want.Verdict.Cause, l.Verdict.Cause)
	require.Equal(t, want.Capacity, l.Capacity)
}

// requireAgent holds the agent's document to the others': its window is longer,
// nothing else.
func (p *pod) requireAgent(t *testing.T, agent *rig.Agent, mode string, want numbers) {
	t.Helper()
	want = withoutOpens(want)
	var got numbers
	deadline := time.Now().Add(20 * time.Second) // its facts each have their own clock
	nettest.Within(t, time.Minute, "the agent has seen the drops", func() bool {
		d := agentSnapshot(t, agent)
		l := d.On(p.port)
		if l == nil || l.Losses == nil || l.Losses.DroppedPackets < floodSize {
			return false
		}
		got = withoutOpens(p.numbers(t, d, p.pid))
		return reflect.DeepEqual(want, got) || time.Now().After(deadline)
	})
	require.Equal(t, want, got, "agent %s", mode)
}

// withoutOpens leaves out how many connections were opened, by any client that asks
// Actuator as well, and how many more there are now: that differs by the window.
func withoutOpens(n numbers) numbers {
	n.Counters, n.Delta = maps.Clone(n.Counters), maps.Clone(n.Delta)
	for _, name := range []string{"ActiveOpens", "PassiveOpens", "CurrEstab"} {
		delete(n.Counters, name)
		delete(n.Delta, name)
	}
	return n
}

// requireNoFileOfTheHost: who may not look into the server's mount namespace
// must not take the file that lies under the same path in his own.
func (p *pod) requireNoFileOfTheHost(t *testing.T, d *rig.Document) {
	t.Helper()
	l := listener(t, d, p.port)
	require.Equal(t, p.pid, l.Process.PID, "by its threads' names")
	require.Nil(t, l.Connector.MaxConnections)
	require.Nil(t, l.Connector.MaxThreads)
	require.Equal(t, podBacklog, l.Connector.AcceptCount.Value, "the kernel's")
	var named []string
	for _, u := range d.Unavailable {
		named = append(named, u.What)
	}
	require.Contains(t, named, "files (root) of pid "+strconv.Itoa(p.pid))
}
