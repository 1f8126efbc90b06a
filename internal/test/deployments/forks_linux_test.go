package deployments

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// forks are servers that accept by themselves, and start a process for each request.
func forks() []deployment {
	return []deployment{
		{"a server that forks for each request: all of its children are stopped (SIGSTOP), and it accepts the next clients", func(c *rig.Case) {
			waiting := stoppedChildren(c, 6, 40)
			failed := keep(c, func() error { return rejectedAt(c.Ctx, "127.0.0.1:8080", "/") })
			c.Wait(3 * time.Second)
			said := c.Both(rig.Port, "warning").Names("all 6 worker processes of python3 are stopped", "pkill -CONT -P ", "process_stopped").Silent("jvm_pause\"", "not_accepting\"")
			said.Silent("one of the ")
			c.Row.Truth = fmt.Sprintf("SIGSTOP of 6 children, %d of their clients answered; of the others who come meanwhile %d failed", waiting.Answered.Load(), failed.Load())
			c.Holds(failed.Load() == 0, "%d clients failed", failed.Load())
		}},
		{"the same with as many children as it may have: it waits for one of them to end, and accepts nobody", func(c *rig.Case) {
			waiting := stoppedChildren(c, 6, 6)
			others := c.Hold(rig.Clients{N: 5, Text: rig.Get("/")})
			c.Wait(3 * time.Second)
			c.Both(rig.Port, "saturated jvm_pause").Names("all 6 worker processes of python3 are stopped", "pkill -CONT -P ").Silent("not_accepting\"")
			c.Row.Truth = fmt.Sprintf("SIGSTOP of 6 of 6 children; 11 clients connected, %d answered", waiting.Answered.Load()+others.Answered.Load())
		}},
		stuck("wait for the lock of a file", "import fcntl; fcntl.flock(open('lock', 'w'), fcntl.LOCK_EX)", "S"),
		stuck("compute without end", "while True: pass", "R"),
		stuck("are in a call that no signal ends (state D: vfork, whose child opens a pipe to which nobody writes)", `os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "pipe", os.O_RDONLY, 0)])`, "D"),
	}
}

// stuck is a server that forks its workers beforehand, all of which are stuck with a request, in that state.
func stuck(name, at, state string) deployment {
	return deployment{"a server that forks its three workers beforehand, all of which " + name, func(c *rig.Case) {
		c.Needs("python3")
		c.Must(syscall.Mkfifo(filepath.Join(c.Dir, "pipe"), 0o600))
		server := c.Program("python3", c.Write("workers.py", fmt.Sprintf(`import os, socket
os.chdir(%q)
def wait():
    %s
import fcntl
held = open("lock", "w"); fcntl.flock(held, fcntl.LOCK_EX)
s = socket.create_server(("127.0.0.1", 8080), backlog=50)
for i in range(3):
    if os.fork() == 0:
        while True:
            c, _ = s.accept(); d = c.recv(1000)
            if b"stuck" in d: wait()
            c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"); c.close()
os.wait()
`, c.Dir, at)))
		c.AtEnd(func() { _ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL) }) // state D: other signals are blocked
		c.Answers("127.0.0.1:8080")
		c.Hold(rig.Clients{N: 3, Text: rig.Get("/stuck")})
		c.Wait(time.Second)
		c.Until("each worker is stuck", func() bool { return states(c, server.Process.Pid) == strings.Repeat(state, 3) })
		clients := c.Hold(rig.Clients{N: 8, Text: rig.Get("/")})
		c.Until("they are connected", func() bool { return clients.Connected.Load() >= 8 })
		c.Wait(3 * time.Second)
		c.Row.Truth = fmt.Sprintf("its workers are in state %s; %d of 8 others answered", state, clients.Answered.Load())
		c.Both(rig.Port, "saturated not_accepting").Names("nothing has been accepted for").Silent("jvm_pause\"", "slow_accept\"", "max_threads\"", "are stopped")
	}}
}

// states are those of a process's children, a letter each.
func states(c *rig.Case, pid int) (all string) {
	for _, child := range childrenOf(c, pid) {
		stat, err := os.ReadFile(filepath.Join("/proc", child, "stat"))
		c.Must(err)
		_, rest, _ := strings.Cut(string(stat), ") ")
		all += rest[:1]
	}
	return all
}

func childrenOf(c *rig.Case, pid int) []string {
	c.Helper()
	of := strconv.Itoa(pid)
	list, err := os.ReadFile(filepath.Join("/proc", of, "task", of, "children"))
	c.Must(err)
	return strings.Fields(string(list))
}

// stoppedChildren starts such a server, with most children at most, and stops those of some clients.
func stoppedChildren(c *rig.Case, clients, most int) *rig.Crowd {
	c.Helper()
	c.Needs("python3")
	server := c.Program("python3", c.Write("forks.py", fmt.Sprintf(`import socketserver, time
class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        time.sleep(600 if b"slow" in self.request.recv(4096) else 0)
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
class Server(socketserver.ForkingMixIn, socketserver.TCPServer):
    allow_reuse_address, request_queue_size, max_children = True, 50, %d
Server(("127.0.0.1", 8080), Handler).serve_forever()
`, most)))
	c.Answers("127.0.0.1:8080")
	children := func() []string { return childrenOf(c, server.Process.Pid) }
	c.Until("the first child has ended", func() bool { return len(children()) == 0 })
	slow := c.Hold(rig.Clients{N: clients, Text: rig.Get("/slow")})
	c.Until("each client has a process", func() bool { return len(children()) == clients })
	for _, child := range children() {
		pid, err := strconv.Atoi(child)
		c.Must(err)
		c.AtEnd(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
		c.Must(syscall.Kill(pid, syscall.SIGSTOP))
	}
	return slow
}
