package netns_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/netns"
	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
)

const (
	waitFor = time.Minute
	tick    = time.Millisecond
)

func current(t *testing.T) netns.ID {
	t.Helper()
	id, err := netns.Current()
	require.NoError(t, err)
	return id
}

func TestCurrentIsTheLinksNumber(t *testing.T) {
	link, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.Equal(t, "net:["+strconv.FormatUint(uint64(current(t)), 10)+"]", link)
}

func TestOfPID(t *testing.T) {
	ns := nettest.Namespace(t)
	var inside netns.ID
	ns.Do(func() { inside = current(t) })
	sleeper := ns.Command("sleep", "600")
	pipe, err := sleeper.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _ = pipe.Close(); _ = sleeper.Process.Kill(); _ = sleeper.Wait() })
	require.Eventually(t, func() bool {
		id, err := netns.OfPID("/proc", sleeper.Process.Pid)
		return err == nil && id == inside
	}, waitFor, tick)

	_, err = netns.OfPID("/proc", 1<<30)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestDeniedAsNobody(t *testing.T) {
	nobody, arg := nettest.AsNobody(t, strconv.Itoa(os.Getpid()))
	if !nobody {
		return
	}
	pid, err := strconv.Atoi(arg)
	require.NoError(t, err)
	_, err = netns.OfPID("/proc", pid)
	require.ErrorIs(t, err, fs.ErrPermission)
	err = netns.Do(netns.Path("/proc", pid), func() error { return nil })
	require.ErrorIs(t, err, fs.ErrPermission)
	ran := false
	require.NoError(t, netns.Do("/proc/self/ns/net", func() error { ran = true; return nil }))
	require.True(t, ran, "one's own namespace needs no privilege")
	_, err = netns.New()
	require.ErrorIs(t, err, fs.ErrPermission)
}

func TestDoEntersAndReturns(t *testing.T) {
	ns := nettest.Namespace(t)
	home := current(t)
	var inside netns.ID
	require.NoError(t, netns.Do(ns.Path(), func() error {
		inside = current(t)
		return nil
	}))
	require.NotEqual(t, home, inside)
	require.Equal(t, home, current(t))
}

func TestDoNests(t *testing.T) {
	a, b := nettest.Namespace(t), nettest.Namespace(t)
	home := current(t)
	requireAllThreadsIn(t, home)
	require.NoError(t, netns.Do(a.Path(), func() error {
		outer := current(t)
		require.NoError(t, netns.Do(b.Path(), func() error {
			require.NotEqual(t, outer, current(t))
			return nil
		}))
		require.Equal(t, outer, current(t))
		return nil
	}))
	require.Empty(t, threadElsewhere(t, home), "the inner visit's thread was at home before, not where the outer one is")
}

func TestDoPassesErrorOn(t *testing.T) {
	ns := nettest.Namespace(t)
	want := errors.New("of fn")
	require.Same(t, want, netns.Do(ns.Path(), func() error { return want }))
}

func TestDoPanicReachesCaller(t *testing.T) {
	ns := nettest.Namespace(t)
	home := current(t)
	require.PanicsWithValue(t, "of fn", func() {
		_ = netns.Do(ns.Path(), func() error { panic("of fn") })
	})
	require.Equal(t, home, current(t))
	requireAllThreadsIn(t, home)
}

func TestDoGoexitEndsCaller(t *testing.T) {
	ns := nettest.Namespace(t)
	survived := false
	var caller sync.WaitGroup
	caller.Go(func() {
		_ = netns.Do(ns.Path(), func() error { runtime.Goexit(); return nil })
		survived = true
	})
	caller.Wait()
	require.False(t, survived)
}

func TestDoRefusesWhatIsNoNamespace(t *testing.T) {
	nettest.Root(t)
	for _, path := range []string{"/proc/self/ns/uts", "/dev/null"} {
		err := netns.Do(path, func() error { t.Error("ran"); return nil })
		require.ErrorIs(t, err, unix.EINVAL, path)
		require.ErrorContains(t, err, strconv.Quote(path))
	}
	require.ErrorIs(t, netns.Do("/nowhere", nil), fs.ErrNotExist)
}

// TestDoLeaksNothing checks every thread and descriptor of the process after
// a thousand visits, some of which ended badly.
func TestDoLeaksNothing(t *testing.T) {
	ns := nettest.Namespace(t)
	home := current(t)
	visit := func(i int) {
		defer func() { _ = recover() }()
		_ = netns.Do(ns.Path(), func() error {
			if i%10 == 0 {
				panic(i)
			}
			return nil
		})
	}
	visit(1)
	descriptors, goroutines := count(t, "/proc/self/fd"), runtime.NumGoroutine()
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 250 {
				visit(worker + i)
			}
		})
	}
	all.Wait()
	// What other tests left may end meanwhile; a leak stays.
	require.Eventually(t, func() bool {
		return count(t, "/proc/self/fd") <= descriptors && runtime.NumGoroutine() <= goroutines+1 // Eventually's own
	}, waitFor, tick)
	requireAllThreadsIn(t, home)
}

func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	return len(entries)
}

// requireAllThreadsIn waits: a thread that was given up ends a moment after its
// goroutine.
func requireAllThreadsIn(t *testing.T, home netns.ID) {
	t.Helper()
	require.Eventually(t, func() bool { return threadElsewhere(t, home) == "" }, waitFor, tick)
}

// threadElsewhere is a thread in another namespace, "" if there is none.
func threadElsewhere(t *testing.T, home netns.ID) string {
	t.Helper()
	threads, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, thread := range threads {
		fi, err := os.Stat("/proc/self/task/" + thread.Name() + "/ns/net")
		if errors.Is(err, fs.ErrNotExist) {
			continue // ended meanwhile
		}
		require.NoError(t, err)
		if fi.Sys().(*syscall.Stat_t).Ino != uint64(home) {
			return thread.Name()
		}
	}
	return ""
}

// A namespace that is kept can be entered when its process has ended, and its
// number is no other's meanwhile.
func TestNamespaceIsKept(t *testing.T) {
	ns := nettest.Namespace(t)
	var inside netns.ID
	ns.Do(func() { inside = current(t) })
	sleeper := ns.Command("sleep", "600")
	require.NoError(t, sleeper.Start())
	path := netns.Path("/proc", sleeper.Process.Pid)
	require.Eventually(t, func() bool {
		id, err := netns.OfPID("/proc", sleeper.Process.Pid)
		return err == nil && id == inside
	}, waitFor, tick)
	kept, err := netns.Open(path)
	require.NoError(t, err)
	require.NoError(t, sleeper.Process.Kill())
	_ = sleeper.Wait()
	_, err = netns.Open(path)
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.Equal(t, inside, kept.ID())
	var entered netns.ID
	require.NoError(t, kept.Do(func() error { entered = current(t); return nil }))
	require.Equal(t, inside, entered)
	require.NoError(t, kept.Close())
	require.Error(t, kept.Do(func() error { return nil }))
}

// The interfaces are those of the namespace that the thread is in, as the standard library
// sees them there.
func TestDevices(t *testing.T) {
	ns := nettest.Namespace(t)
	ns.Do(func() {
		list, err := net.Interfaces()
		require.NoError(t, err)
		require.NotEmpty(t, list)
		indices := []uint32{9999}
		for _, i := range list {
			indices = append(indices, uint32(i.Index))
		}
		got, err := netns.Devices(indices)
		require.NoError(t, err)
		require.Len(t, got, len(list))
		for _, i := range list {
			require.Equal(t, i.Name, got[uint32(i.Index)])
		}
	})
}
