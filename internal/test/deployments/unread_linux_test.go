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

// ofUnread are reports of servers other than Tomcat that accept connections and read nothing of them.
func ofUnread() []report {
	return []report{
		{"G", "https://github.com/jetty/jetty.project/issues/4724", "an endpoint of Jetty stops answering: bytes stay unread (Recv-Q), connections stay in CLOSE_WAIT", func(c *rig.Case) {
			c.BootOf("none", "jetty", rig.BootVersion, rig.JVM{}, "server.jetty.threads.max=12")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 20, Text: rig.Get("/hello?ms=600000")})
			c.Wait(time.Second)
			failed := keep(c, func() error { return rejected(c.Ctx, "/hello") })
			c.Until("clients time out", func() bool { return failed.Load() >= 3 })
			c.Row.Truth = fmt.Sprintf("its 12 threads are taken by requests that do not end; %d clients timed out, none was answered", failed.Load())
			c.Both(rig.Port, "warning", "losing").Names("to be read", "requests_stand").Silent("poller", "max_threads\"", `"server": "tomcat"`)
		}},
		{"A", "https://github.com/reactor/reactor-netty/issues/1032", "a filter blocks Netty's event loops: the accept queue is full, connecting times out", func(c *rig.Case) {
			c.AtEnd(c.SetSysctl(map[string]string{"net/core/somaxconn": "16"}))
			flux(c)
			failed := make([]func() int64, 60)
			for i := range failed {
				failed[i] = keep(c, func() error { return rejected(c.Ctx, "/blocks?ms=5000") }).Load
			}
			sum := func() (n int64) {
				for _, of := range failed {
					n += of()
				}
				return n
			}
			c.Until("clients time out", func() bool { return sum() >= 90 })
			c.Row.Truth = fmt.Sprintf("60 clients with a patience of 3 s, each request blocks an event loop for 5 s: %d failed", sum())
			c.Both(rig.Port, "losing not_accepting", "saturated not_accepting").Names("event loop").Silent("max_threads\"", "slow_accept\"", "poller")
		}},
		{"L", "https://github.com/pragmaticalabs/pragmatica/issues/967", "a health check asks by http:// on a port with TLS: each is answered with 400, or closed", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, tlsConnector(c, `port="8080"`))
			c.Answers("127.0.0.1:8080")
			failed := keep(c, func() error { return rejected(c.Ctx, "/") })
			c.Until("checks fail", func() bool { return failed.Load() >= 10 })
			c.Row.Truth = fmt.Sprintf("%s; %d checks failed", s.Says(rig.Port), failed.Load())
			c.Both(rig.Port, "ok").Names("not_observable")
			c.Row.Unknown = true // what the server answers is not read
		}},
	}
}

// unread are requests that nobody reads, as the sockets alone show it, and whoever does not run.
func unread() []deployment {
	return []deployment{
		{"a sidecar without the server's pid namespace: the poller thread is blocked, and requests are unread", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "callers=4", "maxThreads=4")
			c.Answers("127.0.0.1:8080")
			clients := c.Hold(rig.Clients{N: 24, Text: rig.Get("/?ms=600000")})
			c.Until("they are connected", func() bool { return s.Says(rig.Port).Connections >= 24 })
			c.Wait(2 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; five requests are served, 19 are unread, %d answered", s.Says(rig.Port), clients.Answered.Load())
			c.Outside = []string{"unshare", "--pid", "--fork", "--mount-proc"}
			c.Ask(rig.Port, "--interval", "2s").Verdict("warning").Names("wait to be read", "shareProcessNamespace").Silent(`"comm": "java"`, "poller")
			c.Row.Unknown = true
		}},
		{"a sidecar without the server's pid namespace, limits given by hand: all threads stand, and clients get not a byte", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=4", "maxConnections=50", "acceptCount=10")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 6, Text: rig.Get("/?ms=600000")})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 4 })
			for range 4 {
				failed := keep(c, func() error { return rejected(c.Ctx, "/") })
				c.Until("clients time out", func() bool { return failed.Load() >= 1 })
			}
			c.Row.Truth = fmt.Sprintf("%s; clients with a patience of 3 s, none of whom is answered", s.Says(rig.Port))
			c.Outside = []string{"unshare", "--pid", "--fork", "--mount-proc"}
			c.Ask(rig.Port, "--interval", "10s", "--max-threads", "4", "--max-connections", "50", "--accept-count", "10").
				Verdict("losing max_threads", "losing").Names(`"unanswered": `, "gave up waiting inside").Silent(`"answered": `)
		}},
		{"nginx, whose only worker process is stopped (SIGSTOP)", func(c *rig.Case) {
			halted(c, 1)
			clients := c.Hold(rig.Clients{N: 5, Address: "127.0.0.1:80", Text: rig.Get("/")})
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("SIGSTOP; 5 clients connected, %d answered", clients.Answered.Load())
			c.Both(80, "saturated jvm_pause").Names("the worker process of nginx, ", "kill -CONT").Silent("not_accepting\"")
		}},
		{"nginx, one of whose two worker processes is stopped", func(c *rig.Case) {
			halted(c, 2).Again(c, rig.Get("/"))
			failed := keep(c, func() error { return rejectedAt(c.Ctx, "127.0.0.1:80", "/") })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("SIGSTOP of one, behind which some of 20 kept connections ask again; of others %d failed", failed.Load())
			c.Both(80, "warning").Names("one of the 2 worker processes of nginx, ", "kill -CONT")
		}},
		{"a pool of three connections to three hosts of a cluster, 12 handlers wait for one", func(c *rig.Case) {
			const hosts = 3
			var at []*rig.Backend
			for i := range hosts {
				at = append(at, (&rig.Backend{Address: fmt.Sprintf("127.0.0.%d:%d", i+1, rig.BackendPort)}).Serve(c))
			}
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=12")
			c.Answers("127.0.0.1:8080")
			asked := func() (n int) {
				for _, b := range at {
					n += int(b.Waiting.Load())
				}
				return n
			}
			for i := range hosts { // the first three have the three connections, one to each host
				c.Hold(rig.Clients{N: 1, Text: rig.Get(fmt.Sprintf("/?to=%d&host=127.0.0.%d&hold=60000&timeout=120000&three=1", rig.BackendPort, i+1))})
			}
			c.Until("all hosts are asked", func() bool { return asked() >= hosts })
			c.Hold(rig.Clients{N: 21, Text: rig.Get(fmt.Sprintf("/?to=%d&hold=60000&timeout=120000&three=1", rig.BackendPort))})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 12 })
			c.Wait(time.Second)
			c.Row.Truth = fmt.Sprintf("%s; %d requests, at three hosts", s.Says(rig.Port), asked())
			c.Ask(rig.Port).Verdict("saturated connection_pool").Names("127.0.0.1:9000, 127.0.0.2:9000 and 127.0.0.3:9000", "one of their 3 connections").Silent("maxThreads from 12")
		}},
		{"a backend whose network drops all packets, clients that wait for 10 s, with threads to spare", func(c *rig.Case) {
			c.Needs("nft")
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
			c.Answers("127.0.0.1:8080")
			far(c, "")
			c.Do("ip", "netns", "exec", "far", "nft", "add table inet deaf; add chain inet deaf in { type filter hook input priority 0; }; add rule inet deaf in tcp dport 9000 drop")
			ends := make(chan struct{})
			go func() {
				defer close(ends)
				rig.Arrivals(1, "/?to=9000&host=10.77.0.2&timeout=60000", rig.Longer(45*time.Second))(c, s)
			}()
			c.Wait(9 * time.Second)
			var said []string
			for range 4 {
				c.Ask(rig.Port).Verdict("warning", "losing").Names("10.77.0.2:9000")
				said = append(said, c.Row.Said)
			}
			c.Row.Truth = s.Says(rig.Port).String() + "; no SYN to 10.77.0.2:9000 is answered"
			c.Row.Said = strings.Join(said, " Then: ")
			<-ends
		}},
	}
}

// halted starts nginx in front of a Tomcat, with some clients that keep their connections, and stops one of its worker processes.
func halted(c *rig.Case, workers int) *rig.Crowd {
	c.Helper()
	c.Needs("nginx")
	c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080")
	c.Answers("127.0.0.1:8080")
	c.Program("nginx", "-g", fmt.Sprintf("worker_processes %d;", workers), "-c", c.Write("nginx.conf", fmt.Sprintf(`daemon off; error_log %[1]s/nginx.log; pid %[1]s/nginx.pid; user root;
events {}
http { access_log off; client_body_temp_path %[1]s/t1; proxy_temp_path %[1]s/t2; fastcgi_temp_path %[1]s/t3; uwsgi_temp_path %[1]s/t4; scgi_temp_path %[1]s/t5;
keepalive_timeout 600s; server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } } }
`, c.Dir)))
	c.Answers("127.0.0.1:80")
	master, err := os.ReadFile(filepath.Join(c.Dir, "nginx.pid"))
	c.Must(err)
	pid := strings.TrimSpace(string(master))
	list, err := os.ReadFile(filepath.Join("/proc", pid, "task", pid, "children"))
	c.Must(err)
	all := strings.Fields(string(list))
	c.Holds(len(all) == workers, "nginx has the children %q", all)
	worker, err := strconv.Atoi(all[0])
	c.Must(err)
	kept := c.Hold(rig.Clients{N: 20, Address: "127.0.0.1:80", Text: rig.Get("/")})
	c.Until("clients are answered", func() bool { return kept.Answered.Load() >= 20 })
	c.Must(syscall.Kill(worker, syscall.SIGSTOP))
	c.AtEnd(func() { _ = syscall.Kill(worker, syscall.SIGKILL) })
	return kept
}
