package attacks

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/tcpdiag/tcpdiag/internal/test/nettest"
	"github.com/tcpdiag/tcpdiag/internal/test/proctest"
)

// TestEndsWhileAReaderHangs: the process that reads a stranger's files stands still, as
// at a file system that does not answer. (A process of the same user can stop it.)
func TestEndsWhileAReaderHangs(t *testing.T) {
	nettest.Root(t)
	program := build(t)
	header(t)
	hangs := func(v viewer, attack string, before func(t *testing.T, reader int)) {
		attempt(t, v.name, attack, func(t *testing.T) row {
			s := newScene(t, v, program, v.targets()...)
			a := tomcat(strings.Repeat("<!DOCTYPE a [<!ENTITY b 'c'>]>", 30_000) + server(42)) // takes a while to read
			stopped := s.stopReader(t)
			a.start(t, s.pods, s.java)
			before(t, <-stopped) // the agent is to end
			return s.finish(t, "")
		})
	}
	for _, v := range viewers(t) {
		hangs(v, "stops what reads its files", func(*testing.T, int) {})
		hangs(v, "the same, and it is waited for", func(t *testing.T, reader int) {
			require.Eventually(t, func() bool { return parent(reader) == 0 }, time.Minute, 10*time.Millisecond, "the reader ends while the agent lives")
		})
	}
}

// stopReader stops the next child process of the agent that has taken the observed
// process's user and runs its command. Until a child has called execve it holds up the
// agent's own thread (vfork), and only who may stop the agent as well can stop it then.
func (s *scene) stopReader(t *testing.T) <-chan int {
	t.Helper()
	stopped, agents := make(chan int, 1), runs(s.cmd.Process.Pid)
	go func() {
		defer close(stopped)
		for t.Context().Err() == nil {
			found, _ := filepath.Glob("/proc/[0-9]*/stat")
			for _, path := range found {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
				if parent(pid) == s.cmd.Process.Pid && user(pid) == nobody && runs(pid) != agents && unix.Kill(pid, unix.SIGSTOP) == nil {
					stopped <- pid
					return
				}
			}
		}
	}()
	return stopped
}

// parent is a process's; 0 when there is no such process, or it has ended.
func parent(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 2 || fields[0] == "Z" {
		return 0
	}
	ppid, _ := strconv.Atoi(fields[1])
	return ppid
}

// runs is the command line of a process; empty when there is no such process.
func runs(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}

// user is a process's real user id; empty when there is no such process.
func user(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(text), "\nUid:\t")
	uid, _, _ := strings.Cut(rest, "\t")
	return uid
}

// TestMemoryThatNeverAnswers: a worker thread of a server in trouble polls, and its list of descriptors stands in
// memory that is mapped from a file system that never answers. What reads it stands still, and it is not the agent.
func TestMemoryThatNeverAnswers(t *testing.T) {
	nettest.Root(t)
	program := build(t)
	header(t)
	for _, v := range viewers(t) {
		if v.caps != nil {
			continue // without CAP_DAC_READ_SEARCH the descriptors of others cannot be read, and nobody asks who waits for which
		}
		attempt(t, v.name, "memory that never answers", func(t *testing.T) row {
			s := newScene(t, v, program, v.targets()...)
			mapped := proctest.NewMappedFile(t, proctest.PollFD())
			a := attack{
				args: application(), files: map[string]string{"app.jar": bootJar(nil)},
				part: part{From: hostilePort, To: hostilePort + 1, Full: true, Mapped: mapped.Path},
			}
			a.start(t, s.pods, s.java)
			mapped.Silence(t)
			for deadline := time.Now().Add(time.Minute); len(s.standStill()) == 0; {
				require.True(t, time.Now().Before(deadline), "nobody reads it")
				s.look(t)
			}
			for until := time.Now().Add(3 * time.Second); time.Now().Before(until); { // it is not read again soon
				s.look(t)
			}
			require.Eventually(t, func() bool { // what waits for a disk does not do so for ever
				return len(s.standStill()) == 1 && proctest.Blocked(s.cmd.Process.Pid) == 0
			}, time.Minute, 10*time.Millisecond, "one child stands still, and no thread of the agent")
			return s.finish(t, "one child stands still")
		})
	}
}

// standStill are the child processes of the agent that wait for what does not answer, killed as they are.
func (s *scene) standStill() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range found {
		text, _ := os.ReadFile(path)
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", s.cmd.Process.Pid)) && proctest.Blocked(pid) > 0 {
			pids = append(pids, pid)
		}
	}
	return pids
}
