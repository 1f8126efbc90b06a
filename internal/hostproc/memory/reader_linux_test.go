package memory

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

func TestMain(m *testing.M) {
	proctest.Main(m, map[string]func(string) error{"memory": func(string) error { return Serve() }, "lies": lie})
}

// lie answers each request with some bytes, in hex, or never.
func lie(text string) error {
	says, err := hex.DecodeString(text)
	if err != nil {
		return err
	}
	if _, err := unix.Write(Socket, []byte{0}); err != nil {
		return err
	}
	request := make([]byte, 4+8*mostAddresses)
	for {
		n, _, _, _, err := unix.Recvmsg(Socket, request, nil, 0)
		if err != nil || n == 0 {
			return err
		}
		if len(says) > 0 {
			if _, err := unix.Write(Socket, says); err != nil {
				return err
			}
		}
	}
}

func newReader(t *testing.T) *Reader {
	t.Helper()
	r := NewReader(func() *exec.Cmd { return proctest.Command(t, "memory", "") })
	r.deadline = time.Minute // a busy machine is no failure
	t.Cleanup(r.Close)
	return r
}

func file(t *testing.T, pid int, name string) *os.File {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The child reads what would be read here.
func TestReadAt(t *testing.T) {
	r := newReader(t)
	c := proctest.Start(t, "wait", "")
	for name, at := range map[string][]int64{"cmdline": {0, 4096, 1 << 30}, "environ": {5}, "mem": {0}} {
		want, err := Here{}.ReadAt("", file(t, c.PID(), name), at, 4096)
		require.NoError(t, err)
		got, err := r.ReadAt(name, file(t, c.PID(), name), at, 4096)
		require.NoError(t, err)
		require.Len(t, got, len(at))
		for i := range want {
			require.Equal(t, string(want[i]), string(got[i]), "%s at %d", name, at[i])
		}
	}
	maps, err := r.ReadAt("maps", file(t, c.PID(), "maps"), []int64{0}, 4096)
	require.NoError(t, err)
	require.Contains(t, string(maps[0]), "r-xp", "whole lines, as many as the kernel gives at once")
	got, err := r.ReadAt("many", file(t, c.PID(), "cmdline"), make([]int64, mostAddresses), 4)
	require.NoError(t, err)
	require.Len(t, got, mostAddresses)
	require.Equal(t, "/pro", string(got[mostAddresses-1]))
}

// A process whose memory never answers is given up, and nobody else waits for it.
func TestMemoryThatNeverAnswers(t *testing.T) {
	r := newReader(t)
	mapped := proctest.NewMappedFile(t, proctest.PollFD())
	hostile, honest := proctest.Start(t, "mapped", mapped.Path), proctest.Start(t, "wait", "")
	address, err := strconv.ParseInt(hostile.Lines[0], 10, 64)
	require.NoError(t, err)
	read := func(owner string, pid int) error {
		_, err := r.ReadAt(owner, file(t, pid, "mem"), []int64{address}, 8)
		return err
	}
	require.NoError(t, read("as long as it answers", hostile.PID()))
	mapped.Silence(t)
	r.deadline = 50 * time.Millisecond
	require.ErrorIs(t, read("hostile", hostile.PID()), ErrNoAnswer)
	require.ErrorIs(t, read("hostile", hostile.PID()), ErrWaits, "its turn comes later")
	r.deadline = time.Minute
	_, err = r.ReadAt("honest", file(t, honest.PID(), "cmdline"), []int64{0}, 8)
	require.NoError(t, err, "by another child")
	require.Eventually(t, func() bool { return proctest.Blocked(os.Getpid()) == 0 }, time.Minute, time.Millisecond, "it was not this process that read")
	ended := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.patience.children.Taken() == 0
	}
	require.Never(t, ended, 200*time.Millisecond, 10*time.Millisecond, "SIGKILL does not end what stands still")
	mapped.End()
	require.Eventually(t, ended, time.Minute, time.Millisecond, "it ends when it is answered")
}

// A child that has ended is replaced, and one that does not start is nobody's failure.
func TestChildThatEnds(t *testing.T) {
	r := newReader(t)
	self := file(t, os.Getpid(), "cmdline")
	owner := 0
	read := func() error {
		owner++ // whoever was slow on a busy machine would wait
		_, err := r.ReadAt(fmt.Sprint(owner), self, []int64{0}, 4)
		return err
	}
	require.NoError(t, read())
	require.NoError(t, r.free.process.Kill())
	<-r.free.ended
	require.NoError(t, read(), "by the next child")
	r.command = func() *exec.Cmd { return exec.Command("/nonexistent") }
	r.Close()
	require.Error(t, read())
	require.ErrorIs(t, read(), ErrWaits)
	require.Zero(t, r.patience.children.Taken())
}

// Children that end at each request are not started without a pause.
func TestChildThatEndsAtEachRequest(t *testing.T) {
	r := newReader(t)
	now, started := time.Unix(0, 0), 0
	r.patience = newPatience(func() time.Time { return now })
	r.command = func() *exec.Cmd {
		started++
		return exec.Command("/bin/sh", "-c", "printf . >&3")
	}
	self := file(t, os.Getpid(), "cmdline")
	for range 700 { // seven seconds
		_, err := r.ReadAt("a", self, []int64{0}, 4)
		require.Error(t, err)
		now = now.Add(10 * time.Millisecond)
	}
	require.Equal(t, 3, started, "after one second, and after two more")
	require.Zero(t, r.patience.children.Taken())
}

// The answer of a child that was taken over is bounded and checked.
func TestSplit(t *testing.T) {
	for name, answer := range map[string]string{
		"nothing":        "",
		"a length alone": "\x04\x00\x00\x00",
		"more than size": "\x05\x00\x00\x00abcde",
		"one of two":     "\x04\x00\x00\x00abcd",
	} {
		_, err := split([]byte(answer), 2, 4)
		require.ErrorIs(t, err, ErrNoAnswer, name)
	}
	out, err := split([]byte("\xff\xff\xff\xff\x02\x00\x00\x00ab"), 2, 4)
	require.NoError(t, err)
	require.Equal(t, [][]byte{nil, []byte("ab")}, out)
}

// A child that was taken over and says what it likes, or nothing, costs an error within the deadline; the next one serves
// the next owner, and nothing is left of it.
func TestChildrenThatLie(t *testing.T) {
	for name, says := range map[string]string{
		"nothing":                "",
		"a length alone":         "04000000",
		"a negative length":      "feffffff",
		"more than was asked":    "05000000" + "6162636465",
		"more than there is":     "04000000" + "61",
		"half a length":          "0400",
		"more than the buffer's": "ff000000" + strings.Repeat("61", 4096),
	} {
		t.Run(name, func(t *testing.T) {
			r := newReader(t)
			r.command = func() *exec.Cmd { return proctest.Command(t, "lies", says) }
			if says == "" {
				r.deadline = 100 * time.Millisecond
			}
			self := file(t, os.Getpid(), "cmdline")
			_, err := r.ReadAt("a", self, []int64{0}, 4)
			require.ErrorIs(t, err, ErrNoAnswer)
			r.command = func() *exec.Cmd { return proctest.Command(t, "memory", "") }
			r.deadline = time.Minute
			want, err := Here{}.ReadAt("", self, []int64{0}, 4)
			require.NoError(t, err)
			got, err := r.ReadAt("b", self, []int64{0}, 4)
			require.NoError(t, err)
			require.Equal(t, want, got)
			require.Eventually(t, func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				return r.patience.children.Taken() == 0
			}, time.Minute, time.Millisecond)
		})
	}
}

// A thousand worker threads that poll are asked for at once.
func BenchmarkReadAt(b *testing.B) {
	r := NewReader(func() *exec.Cmd {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "HOSTPROC_TEST_CHILD=memory")
		return cmd
	})
	defer r.Close()
	f, err := os.Open("/proc/self/cmdline")
	require.NoError(b, err)
	at := make([]int64, 1000)
	for b.Loop() {
		if _, err := r.ReadAt("", f, at, 4); err != nil {
			b.Fatal(err)
		}
	}
}
