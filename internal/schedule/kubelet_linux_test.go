package schedule

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/owner"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proof"
	"github.com/tcpdiag/tcpdiag/internal/watchlist"
)

// podMaker makes pods as a kubelet does: a cgroup with a real process that listens, and folders of logs.
type podMaker struct {
	t      *testing.T
	ns     *nettest.NS
	logs   string
	cgroup string // a hierarchy, or "" where none may be written
	made   int
	there  []*labelled
}

// labelled is a pod that runs.
type labelled struct {
	namespace, name, uid, container string
	port                            uint16
	end                             func()
}

func newPodMaker(t *testing.T) *podMaker {
	t.Helper()
	nettest.Root(t)
	k := &podMaker{t: t, ns: nettest.Namespace(t), logs: t.TempDir()}
	for _, folder := range []string{"pods", "containers"} {
		require.NoError(t, os.Mkdir(filepath.Join(k.logs, folder), 0o700))
	}
	for _, root := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup"} { // version 1, version 2
		dir := filepath.Join(root, "kubepods", "tcpdiag-"+strconv.Itoa(os.Getpid()))
		if _, err := os.Stat(filepath.Join(root, "cgroup.procs")); err != nil || os.MkdirAll(dir, 0o700) != nil {
			continue
		}
		k.cgroup = dir
		t.Cleanup(func() {
			_ = exec.Command("find", dir, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
			_ = os.Remove(filepath.Dir(dir)) // ours, unless others use it
		})
		return k
	}
	t.Skip("no cgroup may be made here")
	return nil
}

// start has a pod run.
func (k *podMaker) start(workload string) {
	k.t.Helper()
	k.made++
	uid := fmt.Sprintf("%08x-2cd4-4f3e-9f7a-0123456789ab", k.made)
	p := &labelled{
		namespace: "team-" + workload, name: fmt.Sprintf("%s-%x", workload, k.made), uid: uid, container: fmt.Sprintf("%064x", k.made),
		port: uint16(20000 + k.made),
	}
	require.NoError(k.t, os.MkdirAll(filepath.Join(k.logs, "pods", p.folder(), "app"), 0o700))
	require.NoError(k.t, os.Symlink("/nowhere", filepath.Join(k.logs, "containers", p.link())))
	group := filepath.Join(k.cgroup, "pod"+uid, p.container)
	require.NoError(k.t, os.MkdirAll(group, 0o700))
	k.ns.Do(func() {
		l := nettest.Listen(k.t, nettest.ListenOptions{Address: "0.0.0.0:" + strconv.Itoa(int(p.port)), Backlog: 5})
		file := l.File(k.t)
		server := k.ns.Command("sleep", "900")
		server.ExtraFiles = []*os.File{file}
		require.NoError(k.t, server.Start())
		require.NoError(k.t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(server.Process.Pid)), 0o600))
		p.end = sync.OnceFunc(func() {
			_ = server.Process.Kill()
			_ = server.Wait()
			_ = os.Remove(group)
			_ = os.Remove(filepath.Dir(group))
			_ = os.RemoveAll(filepath.Join(k.logs, "pods", p.folder()))
			_ = os.Remove(filepath.Join(k.logs, "containers", p.link()))
		})
		k.t.Cleanup(p.end)
		require.NoError(k.t, file.Close())
		l.Close()
	})
	k.there = append(k.there, p)
}

// stop ends the oldest pod.
func (k *podMaker) stop() {
	k.there[0].end()
	k.there = k.there[1:]
}

func (p *labelled) folder() string { return p.namespace + "_" + p.name + "_" + p.uid }
func (p *labelled) link() string {
	return p.name + "_" + p.namespace + "_app-" + p.container + ".log"
}

// wrong are the listeners of a snapshot that have another pod's name; named is how many have their
// own.
func (k *podMaker) wrong(s *model.Snapshot, all map[uint16]*labelled) (wrong []string, named int) {
	for i := range s.Listeners {
		l := &s.Listeners[i]
		p := all[l.Port]
		switch {
		case p == nil || l.Pod == nil:
		case *l.Pod != model.Pod{Namespace: p.namespace, Name: p.name, Container: "app", UID: p.uid}:
			wrong = append(wrong, fmt.Sprintf("%d: %+v for %+v", l.Port, *l.Pod, *p))
		default:
			named++
		}
	}
	return wrong, named
}

// Fifty pods of twelve workloads, each a process in a cgroup of its own: all have their names at
// once, and while pods are replaced none has another's.
func TestPodsHaveTheirNames(t *testing.T) {
	k := newPodMaker(t)
	all := make(map[uint16]*labelled)
	start := func(n int) {
		for i := range n {
			k.start(fmt.Sprintf("app-%d", (k.made+i)%12))
			p := k.there[len(k.there)-1]
			all[p.port] = p
		}
	}
	start(50)
	var s *Scheduler
	k.ns.Do(func() {
		var err error
		opt := Defaults()
		opt.All, opt.KubeletLogs = true, k.logs
		proc, procErr := hostproc.NewFS("/proc")
		require.NoError(t, procErr)
		s, err = New(Sources{Sources: watchlist.Sources{Mount: "/proc", Proc: proc, Owners: owner.New(proc)}}, opt)
		require.NoError(t, err)
	})
	t.Cleanup(func() { _ = s.Close() })
	scan := func() {
		var err error
		k.ns.Do(func() { err = s.Scan(t.Context()) }) // the agent's own namespace, in which a list has a socket of its own
		require.NoError(t, err)
	}
	scan()
	wrong, named := k.wrong(s.Snapshot(), all)
	require.Empty(t, wrong)
	require.Equal(t, 50, named, "with the first list")

	// Ten a second are replaced.
	began, late := time.Now(), time.Duration(0)
	for round := range proof.Size(300, 4) {
		for range 10 {
			k.stop()
		}
		start(10)
		replaced := time.Now()
		require.Eventually(t, func() bool {
			scan()
			wrong, named := k.wrong(s.Snapshot(), all)
			require.Empty(t, wrong)
			return named == 50
		}, time.Minute, 100*time.Millisecond)
		late = max(late, time.Since(replaced))
		require.LessOrEqual(t, len(s.Snapshot().Listeners), 50)
		if rest := time.Duration(round+1)*time.Second - time.Since(began); rest > 0 {
			time.Sleep(rest)
		}
	}
	t.Logf("%d pods in %v; all named within %v of the start of ten", k.made, time.Since(began).Round(time.Second), late.Round(10*time.Millisecond))
}
