package owner

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestFind(t *testing.T) {
	a := start(t, childSpec{Listen: true, Comm: "java"})
	b := start(t, childSpec{Listen: true, Comm: "odd) 1 (name", Fillers: 700})
	proc := newCounting(t, "/proc")
	f := New(proc)
	found, denied := f.Find([]Socket{a.Socket, b.Socket, {}})
	require.Empty(t, denied)
	require.Len(t, found, 2)
	require.Equal(t, a.PID(), found[a.Inode].PID)
	require.Equal(t, "java", found[a.Inode].Comm)
	require.Equal(t, b.PID(), found[b.Inode].PID, "its listener comes after 700 descriptors")
	require.Equal(t, "odd) 1 (name", found[b.Inode].Comm)
	for _, p := range found {
		require.False(t, p.ByThreadName)
		st, err := proc.Stat(p.PID)
		require.NoError(t, err)
		require.Equal(t, st.StartTime, p.StartTime)
	}
}

func TestFindFromMemory(t *testing.T) {
	a := start(t, childSpec{Listen: true})
	b := start(t, childSpec{Listen: true})
	proc := newCounting(t, "/proc")
	f := New(proc)
	want, _ := f.Find([]Socket{a.Socket, b.Socket})
	require.Len(t, want, 2)
	readlinks, listings := proc.readlinks, proc.listings
	got, _ := f.Find([]Socket{a.Socket, b.Socket})
	require.Equal(t, want, got)
	require.Equal(t, 2, proc.readlinks-readlinks, "one for each socket")
	require.Zero(t, proc.listings-listings, "of all processes")

	// execve and prctl change the name of a process and nothing else.
	a.Do(t, "rename")
	got, _ = f.Find([]Socket{a.Socket})
	require.Equal(t, "renamed", got[a.Inode].Comm)
}

func TestListenerMovesToAnotherDescriptor(t *testing.T) {
	c := start(t, childSpec{Listen: true})
	proc := newCounting(t, "/proc")
	f := New(proc)
	found, _ := f.Find([]Socket{c.Socket})
	require.Equal(t, c.PID(), found[c.Inode].PID)
	c.Do(t, "move")
	readlinks := proc.readlinks
	found, _ = f.Find([]Socket{c.Socket})
	require.Equal(t, c.PID(), found[c.Inode].PID)
	require.Less(t, proc.readlinks-readlinks, 20, "only the process that had it is asked")
}

func TestOwnerDies(t *testing.T) {
	c := start(t, childSpec{Listen: true})
	proc := newCounting(t, "/proc")
	f := New(proc)
	found, _ := f.Find([]Socket{c.Socket})
	require.Len(t, found, 1)
	c.Stop()
	found, _ = f.Find([]Socket{c.Socket})
	require.Empty(t, found)
	_, err := f.OwnedBy(c.PID(), []uint32{c.Inode})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

// A listener shared by two processes is the older one's, and when that dies
// the younger one's.
func TestListenerHandedOver(t *testing.T) {
	fd, s, err := listen()
	require.NoError(t, err)
	shared := os.NewFile(uintptr(fd), "listener")
	older := start(t, childSpec{}, withFile(shared))
	younger := start(t, childSpec{}, withFile(shared))
	require.NoError(t, shared.Close())
	proc := newCounting(t, "/proc")
	f := New(proc)
	found, _ := f.Find([]Socket{s})
	require.Equal(t, older.PID(), found[s.Inode].PID)
	older.Stop()
	found, denied := f.Find([]Socket{s})
	require.Equal(t, younger.PID(), found[s.Inode].PID)
	require.Empty(t, denied)
}

// Many processes of many descriptors, all of one user: the hints find the owner
// without reading them.
func TestHintsKeepTheSearchShort(t *testing.T) {
	proctest.NeedRoot(t)
	const uid, processes, fillers = 54321, 8, 1200
	others := 0
	startOthers := func() {
		for range processes {
			start(t, childSpec{Fillers: fillers}, proctest.AsUser(uid))
			others++
		}
	}
	startOthers()
	tomcat := start(t, childSpec{Listen: true, Fillers: 40, Threads: []string{"a", "b", "http-nio-PORT-exec-1", "c", "d", "e"}}, proctest.AsUser(uid))
	java := start(t, childSpec{Listen: true, Fillers: 40, Comm: "java"}, proctest.AsUser(uid))
	plain := start(t, childSpec{Listen: true, Fillers: 40}, proctest.AsUser(uid))
	startOthers()

	for name, tt := range map[string]struct {
		c     *child
		bound int
	}{
		"named by its threads": {tomcat, 100},
		"called java":          {java, 100},
		"nothing but its user": {plain, (others + 3) * lowDescriptors},
	} {
		t.Run(name, func(t *testing.T) {
			proc := newCounting(t, "/proc")
			f := New(proc)
			found, _ := f.Find([]Socket{tt.c.Socket})
			require.Equal(t, tt.c.PID(), found[tt.c.Inode].PID)
			require.LessOrEqual(t, proc.readlinks, tt.bound)
		})
	}
}

// On a node all pods may run JVMs of one user that serve on one port: a process
// of the socket's namespace is asked before those of other pods.
func TestNamespaceKeepsTheSearchShort(t *testing.T) {
	proctest.NeedRoot(t)
	const processes, fillers = 4, 400
	for range processes {
		start(t, childSpec{Fillers: fillers, Comm: "java"})
	}
	pod := start(t, childSpec{NetNS: true, Listen: true, Fillers: 40, Comm: "java"})
	s := pod.Socket
	proc := newCounting(t, "/proc")
	f := New(proc)
	s.Net, _ = proc.NetID(pod.PID())
	found, _ := f.Find([]Socket{s})
	require.Equal(t, pod.PID(), found[s.Inode].PID)
	require.LessOrEqual(t, proc.readlinks, 100)
	require.Equal(t, 1, proc.stats, "nothing is read of those in other namespaces")

	// A socket that nobody in its namespace holds is looked for everywhere.
	elsewhere := start(t, childSpec{Listen: true, Fillers: 40})
	s = elsewhere.Socket
	s.Net, _ = proc.NetID(pod.PID())
	found, _ = New(proc).Find([]Socket{s, pod.Socket})
	require.Equal(t, elsewhere.PID(), found[s.Inode].PID)
}

func TestHeld(t *testing.T) {
	c := start(t, childSpec{Listen: true, Fillers: 400})
	held, err := New(newCounting(t, "/proc")).OwnedBy(c.PID(), []uint32{c.Inode, 1})
	require.NoError(t, err)
	require.Len(t, held, 1)
	require.Equal(t, c.PID(), held[c.Inode].PID)
	_, err = New(newCounting(t, "/proc")).OwnedBy(-1, nil)
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

func TestConcurrentUse(t *testing.T) {
	a := start(t, childSpec{Listen: true})
	b := start(t, childSpec{Listen: true})
	proc := newCounting(t, "/proc")
	f := New(proc)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, c := range []*child{a, b, a} {
				found, _ := f.Find([]Socket{c.Socket})
				if found[c.Inode].PID != c.PID() {
					t.Errorf("found %+v, want pid %d", found, c.PID())
				}
				if _, err := f.OwnedBy(c.PID(), []uint32{c.Inode}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// A zombie owns nothing, and that it may not be read is no news.
func TestZombieIsNotDenied(t *testing.T) {
	c := start(t, childSpec{Listen: true})
	require.NoError(t, c.Process.Kill())
	proc := newCounting(t, "/proc")
	f := New(proc)
	require.Eventually(t, func() bool {
		st, err := proc.Stat(c.PID())
		return err == nil && st.Exited
	}, time.Minute, time.Millisecond)
	found, denied := f.Find([]Socket{c.Socket})
	require.Empty(t, found)
	for _, d := range denied { // of others, when not root
		require.NotEqual(t, c.PID(), d.PID)
	}
	_, err := f.OwnedBy(c.PID(), []uint32{c.Inode})
	require.ErrorIs(t, err, hostproc.ErrNoProcess)
}

// A process in another container was passed a listener, started before its owner, is called java and names a thread after the
// port: it owns it only when nobody else holds it.
func TestListenerPassedToAStranger(t *testing.T) {
	fd, s, err := listen()
	require.NoError(t, err)
	shared := os.NewFile(uintptr(fd), "listener")
	port := strconv.Itoa(int(s.Port))
	names := []string{"http-nio-" + port + "-a", "b", "c", "d", "e", "f", "g", "h"}
	s.Cgroup = 7
	stranger := start(t, childSpec{Comm: "java", Threads: names}, withFile(shared))
	owner := start(t, childSpec{}, withFile(shared))
	require.NoError(t, shared.Close())
	f := New(newCounting(t, "/proc"))
	find := func(cgroup uint64) int {
		f.owners = map[uint32]*owned{}
		f.Containers(func(pid int) (uint64, bool) {
			return cgroup, pid == stranger.PID()
		})
		found, _ := f.Find([]Socket{s})
		return found[s.Inode].PID
	}
	require.Equal(t, stranger.PID(), find(7), "it was made in its container")
	require.Equal(t, owner.PID(), find(8))
	require.Equal(t, stranger.PID(), find(0), "not known")
	s.Net = 4711 // of another network namespace
	require.Equal(t, owner.PID(), find(0))
	owner.Stop()
	require.Equal(t, stranger.PID(), find(0), "nobody else holds it")
}
