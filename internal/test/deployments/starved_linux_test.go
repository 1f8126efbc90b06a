package deployments

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// starved are servers that do not get to their requests, although no limit of theirs is
// reached: clients that wait for seconds are not to be called well.
func starved() []deployment {
	const clients = 40
	embedded := func(c *rig.Case) *rig.Server {
		s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=200", "minSpareThreads=100")
		c.Answers("127.0.0.1:8080")
		c.Until("it is warm", func() bool { return s.Says(rig.Port).MaxThreads > 0 })
		return s
	}
	limits := []string{"--max-threads", "200", "--max-connections", "8192", "--interval", "3s"}
	again := func(c *rig.Case, s *rig.Server, halt func()) *rig.Said {
		w := c.Hold(rig.Clients{N: clients, Text: rig.Get("/?ms=0")})
		c.Until("all had an answer", func() bool { return w.Answered.Load() == clients && s.Says(rig.Port).Busy == 0 })
		halt()
		w.Again(c, rig.Get("/?ms=0"))
		c.Wait(2 * time.Second)
		c.Row.Truth = fmt.Sprintf("%d clients wait for the answer to a second request on their connections, at least 4 s", clients)
		return c.Ask(rig.Port, limits...)
	}
	return []deployment{
		{"a CPU limit of 0.01, 40 new clients", func(c *rig.Case) {
			s := embedded(c)
			c.Quota(s, "0.01")
			w := c.Hold(rig.Clients{N: clients, Text: rig.Get("/?burn=50")})
			c.Wait(2 * time.Second)
			said := c.Ask(rig.Port, limits...)
			c.Row.Truth = fmt.Sprintf("%d of %d clients have no answer after 7 s", clients-int(w.Answered.Load()), clients)
			said.Verdict("saturated cpu_throttled")
		}},
		{"a cgroup whose memory is used up, without the OOM killer (version 1)", func(c *rig.Case) {
			const controller = "/sys/fs/cgroup/memory"
			if _, err := os.Stat(controller); err != nil {
				c.Skips("no memory controller of version 1")
			}
			dir := filepath.Join(controller, filepath.Base(c.Dir))
			c.Must(os.Mkdir(dir, 0o755))
			c.AtLast(func() { c.Do("sh", "-c", "for i in $(seq 50); do rmdir "+dir+" && break; sleep .1; done 2>/dev/null") })
			c.Must(os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), []byte("180M"), 0o600))
			c.Must(os.WriteFile(filepath.Join(dir, "memory.oom_control"), []byte("1"), 0o600))
			c.Embedded(rig.JVM{
				VM: []string{"-Xmx1g"}, Wrap: []string{"sh", "-c", "echo $$ > " + dir + "/cgroup.procs; exec \"$@\"", "sh"},
			}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
			for range 4 {
				keep(c, func() error { return rig.Fetch(c.Ctx, client, "http://127.0.0.1:8080/?keep=3000") })
			}
			c.Until("its memory is used up", func() bool {
				text, err := os.ReadFile(filepath.Join(dir, "memory.oom_control"))
				return err == nil && strings.Contains(string(text), "under_oom 1")
			})
			c.Wait(3 * time.Second)
			c.Row.Truth = "a limit of 180 MiB and -Xmx1g: threads wait for memory (under_oom), the others for these at a safepoint"
			c.Ask(rig.Port, "--interval", "2s").Verdict("saturated jvm_pause", "losing jvm_pause").
				Names("MiB of memory that its cgroup may use", "Give its cgroup more memory").Silent("Give it a larger heap", "removes the long ones")
		}},
		{"stopped (SIGSTOP), 40 clients on connections they had before", func(c *rig.Case) {
			s := embedded(c)
			said := again(c, s, func() { c.Halt(s) })
			said.Verdict("saturated jvm_pause")
		}},
		{"frozen by its cgroup, as docker pause does, 40 clients on connections they had before", func(c *rig.Case) {
			s := embedded(c)
			said := again(c, s, func() {
				c.Freeze(s)
			})
			said.Verdict("saturated jvm_pause")
		}},
		{"frozen by its cgroup, 40 new clients", func(c *rig.Case) {
			s := embedded(c)
			c.Freeze(s)
			w := c.Hold(rig.Clients{N: clients, Text: rig.Get("/?ms=0")})
			c.Until("all are queued", func() bool { return w.Connected.Load() == clients })
			said := c.Ask(rig.Port, limits...)
			c.Row.Truth = fmt.Sprintf("%d clients wait in the accept queue for at least 5 s", clients)
			said.Verdict("saturated jvm_pause")
		}},
		{"frozen by its cgroup, a queue of 10, 40 new clients", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=200", "acceptCount=10")
			c.Answers("127.0.0.1:8080")
			c.Until("it is warm", func() bool { return s.Says(rig.Port).MaxThreads > 0 })
			overflowsFrozen(c, s, limits)
		}},
		{"frozen by its cgroup, all connections taken, a queue of 10, 40 new clients", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=200", "acceptCount=10", "maxConnections=20")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 20, Text: rig.Get("/?ms=60000")})
			c.Until("all connections are taken", func() bool { return s.Says(rig.Port).Busy == 20 })
			overflowsFrozen(c, s, []string{"--max-threads", "200", "--max-connections", "20", "--interval", "3s"})
		}},
		{"pids.max lets 3 more threads start, 40 clients", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.threads.min-spare=4")
			c.Answers("127.0.0.1:8080")
			c.Group("pids", s, "pids.max", fmt.Sprint(s.Threads()+3))
			c.Hold(rig.Clients{N: clients, Text: rig.Get("/hello?ms=60000")})
			c.Until("the threads there are are busy", func() bool { return s.Says(rig.Port).Busy >= 4 && s.Says(rig.Port).Connections >= clients })
			c.Row.Truth = s.Says(rig.Port).String() + "; no more can start"
			said := c.Ask(rig.Port, "--interval", "3s")
			if !s.HasThread("http-nio-8080-P") { // it is the poller that starts a thread, and may end by the error
				c.Row.Truth += "; the poller has ended"
				said.Verdict("saturated not_reading")
				return
			}
			said.Verdict("saturated max_threads")
			said.Names("See pids_limit")
			said.Silent("raise server.tomcat.threads.max")
		}},
	}
}

// overflowsFrozen has more clients come than the queue of a frozen server holds: no
// limit of its own dropped their packets.
func overflowsFrozen(c *rig.Case, s *rig.Server, flags []string) {
	c.Freeze(s)
	w := c.Hold(rig.Clients{N: 40, Text: rig.Get("/?ms=0")})
	c.Until("the queue is full", func() bool { return w.Connected.Load() >= 11 })
	said := c.Ask(rig.Port, flags...)
	c.Row.Truth = "11 clients in the accept queue, the others' packets are dropped, nothing runs"
	said.Verdict("losing jvm_pause")
	said.Names("frozen with its cgroup")
	said.Silent(`"cause": "slow_accept"`, `"cause": "max_connections"`, "raise maxConnections", "Raise acceptCount")
}
