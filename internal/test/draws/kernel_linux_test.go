package draws

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// sockets are what the kernel says of the server's port: the length of its accept queue,
// the connections that are not closed, and whether there is a listener.
func sockets() (queue, inside int, there bool) {
	port := fmt.Sprintf(":%04X", rig.Port)
	for _, file := range []string{"tcp", "tcp6"} {
		text, _ := os.ReadFile("/proc/thread-self/net/" + file)
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 5 || !strings.HasSuffix(f[1], port) {
				continue
			}
			switch f[3] {
			case "0A": // TCP_LISTEN
				_, waiting, _ := strings.Cut(f[4], ":")
				n, _ := strconv.ParseInt(waiting, 16, 64)
				queue, there = queue+int(n), true
			case "01", "08": // TCP_ESTABLISHED, TCP_CLOSE_WAIT
				inside++
			}
		}
	}
	return queue, inside, there
}

// openFiles are a process's, with those that open(2) has a number for and waits for, as of a FIFO that nobody writes
// (do_sys_openat2).
func openFiles(pid int) int {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	if info, err := os.Stat(folder); err == nil && info.Size() > 0 { // since Linux 6.2
		return int(info.Size())
	}
	files, _ := os.ReadDir(folder)
	return len(files)
}

// hasThread reports whether a thread of the process has that name, of which the kernel
// has 15 bytes.
func hasThread(pid int, name string) bool {
	if len(name) > 15 {
		name = name[:15]
	}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	for _, task := range tasks {
		if comm, err := os.ReadFile(task); err == nil && strings.TrimSpace(string(comm)) == name {
			return true
		}
	}
	return false
}

// runDelay is for how long the threads of a process have waited for a CPU.
func runDelay(pid int) (sum time.Duration) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, task := range tasks {
		var ran, waited int64
		if text, err := os.ReadFile(task); err == nil {
			_, _ = fmt.Sscan(string(text), &ran, &waited)
			sum += time.Duration(waited)
		}
	}
	return sum
}

// overflows are the namespace's (TcpExt ListenOverflows).
func overflows() (n int) {
	text, _ := os.ReadFile("/proc/thread-self/net/netstat")
	var names []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) == 0 || f[0] != "TcpExt:" {
			continue
		}
		if i := slices.Index(names, "ListenOverflows"); i > 0 {
			n, _ = strconv.Atoi(f[i])
		}
		names = f
	}
	return n
}

// throttled is how often the process's cgroup was.
func throttled(pid int) (n int) {
	for _, file := range []string{fmt.Sprintf("/sys/fs/cgroup/cpu/tcpdiag-rig-%d/cpu.stat", pid), fmt.Sprintf("/sys/fs/cgroup/tcpdiag-rig-%d/cpu.stat", pid)} {
		text, _ := os.ReadFile(file)
		if _, rest, ok := strings.Cut(string(text), "nr_throttled "); ok {
			_, _ = fmt.Sscan(rest, &n)
		}
	}
	return n
}

// openLimit is the process's limit of open files.
func openLimit(pid int) (n int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if _, rest, ok := strings.Cut(string(text), "Max open files"); ok {
		_, _ = fmt.Sscan(rest, &n)
	}
	return n
}
