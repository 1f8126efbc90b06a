package owner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeProc is a folder in the form of proc, for counting what a search costs
// undisturbed by the other processes of this machine.
type fakeProc struct {
	t   *testing.T
	dir string
	now time.Time
	*counting
	*Finder
}

func newFakeProc(t *testing.T) *fakeProc {
	t.Helper()
	p := &fakeProc{t: t, dir: t.TempDir(), now: time.Unix(1000, 0)}
	require.NoError(t, os.Symlink("1", filepath.Join(p.dir, "self")))
	p.counting = newCounting(t, p.dir)
	p.Finder = New(p.counting)
	p.Finder.now = func() time.Time { return p.now }
	p.process(1, 0)
	return p
}

// process makes a process with socket descriptors 0, 1, 2, … of these inodes.
func (p *fakeProc) process(pid, start int, inodes ...uint32) {
	p.t.Helper()
	dir := filepath.Join(p.dir, fmt.Sprint(pid))
	require.NoError(p.t, os.RemoveAll(dir))
	require.NoError(p.t, os.MkdirAll(filepath.Join(dir, "fd"), 0o700))
	stat := fmt.Sprintf("%d (p%d) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0", pid, pid, start)
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "stat"), []byte(stat), 0o600))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "status"), []byte("Name:\tp\nUid:\t0\t0\t0\t0\n"), 0o600))
	for fd, inode := range inodes {
		require.NoError(p.t, os.Symlink(fmt.Sprintf("socket:[%d]", inode), filepath.Join(dir, "fd", fmt.Sprint(fd))))
	}
}

func (p *fakeProc) exit(pid int) {
	p.t.Helper()
	require.NoError(p.t, os.RemoveAll(filepath.Join(p.dir, fmt.Sprint(pid))))
}

// find returns the owner of the socket, 0 for none, and the readlinks it took.
func (p *fakeProc) find(inode uint32) (pid, readlinks int) {
	p.t.Helper()
	before := p.readlinks
	found, denied := p.Find([]Socket{{Inode: inode, UID: uint32(os.Getuid())}})
	require.Empty(p.t, denied)
	return found[inode].PID, p.readlinks - before
}

func (p *fakeProc) requireFind(inode uint32, pid, readlinks int) {
	p.t.Helper()
	gotPID, gotReadlinks := p.find(inode)
	require.Equal(p.t, pid, gotPID, "owner")
	require.Equal(p.t, readlinks, gotReadlinks, "readlinks")
}

// A socket that nobody owns costs a full search at most every 30 s; between
// them only processes that are new are asked, each once.
func TestUnownedSocketIsNotSearchedForAgain(t *testing.T) {
	p := newFakeProc(t)
	p.process(10, 5, 100, 101, 102)
	p.process(11, 6, 103)
	p.requireFind(999, 0, 4)
	p.requireFind(999, 0, 0)
	p.process(12, 7, 104, 105)
	p.requireFind(999, 0, 2)
	p.requireFind(999, 0, 0)
	p.now = p.now.Add(retryAfter - time.Second)
	p.requireFind(999, 0, 0)
	p.now = p.now.Add(time.Second)
	p.requireFind(999, 0, 6)
	p.requireFind(999, 0, 0)

	p.process(13, 8, 999) // alone: the order of a directory is the file system's
	p.requireFind(999, 13, 1)
	p.requireFind(999, 13, 1)
}

// A search that takes a second is not repeated before 100 s have passed.
func TestSlowSearchRestsLonger(t *testing.T) {
	p := newFakeProc(t)
	p.process(10, 5, 100)
	p.Finder.now = func() time.Time {
		p.now = p.now.Add(time.Second)
		return p.now
	}
	p.requireFind(999, 0, 1)
	p.now = p.now.Add(retryAfter + time.Second)
	p.requireFind(999, 0, 0)
	p.now = p.now.Add(restRatio * time.Second)
	p.requireFind(999, 0, 1)
}

// Another socket's full search must not hide a new process from this one.
func TestNewProcessesAreNewToEachSocket(t *testing.T) {
	p := newFakeProc(t)
	p.process(10, 5, 100)
	p.requireFind(999, 0, 1)
	p.process(11, 6, 999)
	p.requireFind(100, 10, 1)
	p.requireFind(999, 11, 1)
}

// The pid of an earlier owner says nothing: its start time must agree.
func TestPIDReuse(t *testing.T) {
	p := newFakeProc(t)
	p.process(10, 5, 100)
	p.requireFind(100, 10, 1)
	p.process(10, 50, 200)
	pid, _ := p.find(100)
	require.Zero(t, pid)
	p.process(10, 60, 100) // the same inode by chance, or by inheritance
	p.now = p.now.Add(retryAfter)
	found, _ := p.Find([]Socket{{Inode: 100, UID: uint32(os.Getuid())}})
	require.Equal(t, uint64(60), found[100].StartTime)
}

func TestOldestOwnerWins(t *testing.T) {
	p := newFakeProc(t)
	p.process(10, 9, 100)
	p.process(11, 5, 100) // older, though its pid is higher: pids wrap around
	p.process(12, 9, 100)
	pid, _ := p.find(100)
	require.Equal(t, 11, pid)
	p.exit(11)
	pid, _ = p.find(100)
	require.Equal(t, 10, pid, "of the same age, the lower pid")
}

func TestForgetsWhatNobodyAsksFor(t *testing.T) {
	p := newFakeProc(t)
	p.process(10, 5, 100)
	p.requireFind(100, 10, 1)
	_, _ = p.find(999)
	require.Len(t, p.owners, 1)
	require.Len(t, p.missing, 1)
	p.now = p.now.Add(forgetAfter + time.Second)
	_, _ = p.find(998)
	require.Empty(t, p.owners)
	require.Len(t, p.missing, 1)
}

// What a process holds costs a search of all its descriptors once, not each time.
func TestHeldFromMemory(t *testing.T) {
	const listener, foreign, connections = 7, 8, 1000
	inodes := []uint32{listener}
	for i := range uint32(connections) {
		inodes = append(inodes, 1000+i)
	}
	p := newFakeProc(t)
	p.process(42, 1, inodes...)
	const all = 1 + connections // descriptors; the search ends where it has found
	held := func(want map[uint32]uint64, most int, ask ...uint32) {
		t.Helper()
		before := p.readlinks
		found, err := p.OwnedBy(42, ask)
		require.NoError(t, err)
		got := map[uint32]uint64{}
		for inode, o := range found {
			require.Equal(t, 42, o.PID)
			got[inode] = o.StartTime
		}
		require.Equal(t, want, got)
		require.LessOrEqual(t, p.readlinks-before, most)
	}
	its := map[uint32]uint64{listener: 1}
	held(its, all, listener)
	held(its, 1, listener)
	before := p.readlinks
	held(its, 1+all, listener, foreign)
	held(its, 1, listener, foreign)
	p.now = p.now.Add(retryAfter)
	held(its, 1+all, listener, foreign)
	require.Equal(t, 1+all+1+1+all, p.readlinks-before, "it may have got it meanwhile")
	held(map[uint32]uint64{}, 0)

	p.process(42, 1, append([]uint32{5}, inodes...)...) // the listener has another descriptor
	held(its, 1+all+1, listener)
	held(its, 1, listener)
	p.process(42, 2, inodes...) // another process of that number
	held(map[uint32]uint64{listener: 2}, 1+all, listener)
	require.Len(t, p.byPID, 1)

	p.now = p.now.Add(2 * forgetAfter)
	p.process(43, 3)
	_, err := p.OwnedBy(43, nil)
	require.NoError(t, err)
	require.NotContains(t, p.byPID, 42)
}
