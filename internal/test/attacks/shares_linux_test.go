package attacks

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	neighbour      = "65533" // a user beside the attacker
	neighbourPort  = 18085
	neighbourLimit = 42
	crowd          = 60
)

// neighbourly is an honest server of another user, with a limit that its own file says.
func neighbourly(port int, full bool) attack {
	return attack{
		user: neighbour, args: []string{"-jar", "app.jar"},
		files: map[string]string{
			"app.jar":                bootJar(nil),
			"application.properties": fmt.Sprintf("server.port=%d\nserver.tomcat.threads.max=%d\n", port, neighbourLimit),
		},
		part: part{From: port, To: port + 1, Full: full, Threads: []string{fmt.Sprintf("http-nio-%d-e", port)}},
	}
}

// TestLongShares: a user's servers in trouble are more than are recorded at once, and another
// user's incident is recorded all the same.
func TestLongShares(t *testing.T) {
	nettest.Root(t)
	program, last := build(t), 10*time.Second
	if everything() {
		last = time.Minute
	}
	header(t)
	attempt(t, "root", fmt.Sprintf("%d servers in trouble", crowd), func(t *testing.T) row {
		incidents := filepath.Join(public(t), "incidents")
		require.NoError(t, os.Mkdir(incidents, 0o750))
		s := newScene(t, viewer{name: "root"}, program, "--all", "--incident-dir", incidents)
		full := attack{args: application(), files: map[string]string{"app.jar": bootJar(nil)}, part: part{From: 19_000, To: 19_000 + crowd, NumberedOf: crowd, Full: true}}
		full.start(t, s.pods, s.java)
		s.incidents(t, func(all []api.IncidentSummary) bool { return len(all) >= 32 })
		neighbourly(neighbourPort, true).start(t, s.pods, s.java)
		var dropped uint64
		s.incidents(t, func(all []api.IncidentSummary) bool {
			for _, i := range all {
				if i.Port == neighbourPort {
					dropped = i.DroppedPackets
				}
			}
			return dropped > 0
		})
		for end := time.Now().Add(last); time.Now().Before(end); time.Sleep(time.Second) {
			s.look(t)
		}
		return s.finish(t, fmt.Sprintf("the neighbour's incident, with %d packets when it was first listed", dropped))
	})
}

// incidents asks until the list is as it is to be.
func (s *scene) incidents(t *testing.T, right func([]api.IncidentSummary) bool) {
	t.Helper()
	var list api.Incidents
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		require.NoError(t, json.Unmarshal([]byte(s.get(t, "/api/v1/incidents")), &list))
		if right(list.Incidents) {
			return
		}
	}
	require.Fail(t, "never so", "%d incidents", len(list.Incidents))
}

// TestLongStoppedReaders: the readers of sixty processes of one user are all stopped, and another
// user's server has its limit after a few turns.
func TestLongStoppedReaders(t *testing.T) {
	nettest.Root(t)
	program := build(t)
	header(t)
	attempt(t, "root", fmt.Sprintf("%d whose readers are stopped", crowd), func(t *testing.T) row {
		s := newScene(t, viewer{name: "root"}, program, "--all")
		s.untilOmitted(t, 0) // the honest one, of the same user, was first
		s.stoppedCrowd(t)
		neighbourly(neighbourPort, false).start(t, s.pods, s.java)
		began := time.Now()
		for known := false; !known; time.Sleep(100 * time.Millisecond) {
			d := s.look(t)
			require.Less(t, time.Since(began), time.Minute, "the neighbour's limit: %v", d.Unavailable)
			known = s.knows(t, d, neighbourPort)
		}
		return s.finish(t, fmt.Sprintf("the neighbour's limit after %.1f s", time.Since(began).Seconds()))
	})
}

// knows reports whether the limit of a neighbour's server is known.
func (s *scene) knows(t *testing.T, d *document, port int) bool {
	t.Helper()
	for _, l := range d.Listeners {
		if most := l.Connector.MaxThreads; l.Port == port && s.has(t, l.NetNS) && most != nil && most.Value == neighbourLimit {
			return true
		}
	}
	return false
}

// stoppedCrowd are sixty servers of one user, who stops each process that reads their files. It says how many it has stopped.
func (s *scene) stoppedCrowd(t *testing.T) *atomic.Int64 {
	t.Helper()
	var stopped atomic.Int64
	go s.stopReaders(t, &stopped)
	for i := range crowd {
		a := boot("application.properties", "")
		port := 19_000 + i
		a.part = part{From: port, To: port + 1, Threads: []string{fmt.Sprintf("http-nio-%d-e", port)}}
		a.start(t, s.pods, s.java)
	}
	return &stopped
}

// stopReaders stops each child process of the agent that has taken the attacker's user.
func (s *scene) stopReaders(t *testing.T, stopped *atomic.Int64) {
	agents, known := runs(s.cmd.Process.Pid), map[int]bool{}
	for ; t.Context().Err() == nil; time.Sleep(2 * time.Millisecond) {
		for _, pid := range children(s.cmd.Process.Pid) {
			if !known[pid] && user(pid) == nobody && runs(pid) != agents && unix.Kill(pid, unix.SIGSTOP) == nil {
				known[pid] = true
				stopped.Add(1)
			}
		}
	}
}

// children are a process's, by the lists of its threads.
func children(of int) (pids []int) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", of))
	for _, path := range threads {
		text, _ := os.ReadFile(path)
		for field := range strings.FieldsSeq(string(text)) {
			pid, _ := strconv.Atoi(field)
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestLongPods: ten pods a second, each a network namespace with a server, alive for three seconds.
func TestLongPods(t *testing.T) {
	nettest.Root(t)
	program, last := build(t), 15*time.Second
	if everything() {
		last = 2 * time.Minute
	}
	header(t)
	beside(t)
	attempt(t, "DaemonSet", "ten pods a second", func(t *testing.T) row {
		s := newScene(t, viewer{name: "DaemonSet", caps: daemonSet(t)}, program, "--all-namespaces", "--all")
		began := make(chan int, 1)
		go func() { began <- s.pods10(t, warm+last) }()
		said := s.stays(t, last)
		return s.finish(t, fmt.Sprintf("%d pods, %s", <-began, said))
	})
}

// pods10 starts ten pods a second, and says how many there were.
func (s *scene) pods10(t *testing.T, last time.Duration) (n int) {
	p := part{From: 8080, To: 8081, Threads: []string{"http-nio-8080-e"}}
	var alive []*exec.Cmd
	stop := func(cmd *exec.Cmd) { _, _ = cmd.Process.Kill(), cmd.Wait() }
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for begin := time.Now(); time.Since(begin) < last && t.Context().Err() == nil; <-tick.C {
		cmd := exec.CommandContext(t.Context(), "unshare", "--net", "--", s.java, "-jar", "app.jar")
		cmd.Env = []string{p.variable()}
		cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if cmd.Start() != nil {
			continue
		}
		n++
		if alive = append(alive, cmd); len(alive) > 30 {
			stop(alive[0])
			alive = alive[1:]
		}
	}
	for _, cmd := range alive {
		stop(cmd)
	}
	return n
}
