package deployments

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// shared is a connector whose threads are an Executor's, with a name that no rule knows,
// behind a SemaphoreValve, or another one.
func shared(threads int, valve string) string {
	xml := rig.InServer("", fmt.Sprintf(`<Executor name="web" namePrefix="shop-web-" maxThreads="%d" minSpareThreads="4"/><Connector port="8080" protocol="HTTP/1.1" executor="web"/>`, threads))
	return strings.Replace(xml, `appBase="webapps"/>`, `appBase="webapps">`+valve+`</Host>`, 1)
}

// owners are ports, sockets and threads that belong to whom few would think of.
func owners() []deployment {
	const (
		semaphore = `<Valve className="org.apache.catalina.valves.SemaphoreValve" concurrency="3"/>`
		stuck     = `<Valve className="org.apache.catalina.valves.StuckThreadDetectionValve" threshold="10"/>`
	)
	behind := func(name, valve string, says rig.Says) rig.Overload {
		return rig.Overload{
			Name: name, Server: rig.JVM{}.Tomcat(rig.Tomcat10, shared(12, valve)), Agent: true,
			Clients: []rig.Clients{{N: 40, Text: rig.Get("/slow.jsp?ms=120000")}}, Full: rig.Full{Any: true, Connections: 40, Connected: 40}, Says: says,
		}
	}
	bound := func(name string, start func(c *rig.Case, port int) *rig.Server, clients func(path string) rig.Clients) deployment {
		return deployment{name, func(c *rig.Case) {
			backend := (&rig.Backend{Address: fmt.Sprintf("127.0.0.1:%d", rig.BackendPort)}).Serve(c)
			s := start(c, rig.BackendPort)
			c.Answers("127.0.0.1:8080")
			c.Hold(clients(fmt.Sprintf("/?to=%d&hold=120000&timeout=120000", rig.BackendPort)))
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 && backend.Waiting.Load() >= 8 })
			c.Row.Truth = fmt.Sprintf("%s; %d requests at the backend", s.Says(rig.Port), backend.Waiting.Load())
			c.Both(rig.Port, "saturated downstream").Names("127.0.0.1:9000")
		}}
	}
	return append([]deployment{
		{"a second instance takes the port while the first serves what it has", func(c *rig.Case) {
			first := c.Boot("none", rig.JVM{}, "server.shutdown=graceful", "spring.lifecycle.timeout-per-shutdown-phase=10m")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get("/hello?ms=600000")})
			c.Until("24 requests are served", func() bool { return first.Says(rig.Port).Busy >= 24 })
			c.Must(syscall.Kill(first.PID, syscall.SIGTERM))
			c.Until("its listener is closed", func() bool { return !c.Connects(rig.Port) })
			next := c.Beside("next")
			second := next.Boot("none", rig.JVM{}, "server.tomcat.max-connections=25", "server.tomcat.threads.max=40")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get("/hello?ms=600000")})
			c.Until("24 more are", func() bool { return second.Says(rig.Port).Busy >= 24 })
			if first.Ended() {
				c.Must(errors.New("the first has ended"))
			}
			c.Row.Truth = fmt.Sprintf("the second: %s; 24 connections of the first's, pid %d, whose listener is closed", second.Says(rig.Port), first.PID)
			c.Both(rig.Port, "ok").Names(fmt.Sprintf("belong to pid %d", first.PID), "24 connections more", "24 of 25").Silent("48 of 25", "48 connections")
		}},
		{"a SemaphoreValve of 3: its concurrency raised as advised, and the threads as they are tempting", func(c *rig.Case) {
			answered := func(threads, concurrency int) int {
				mark := c.Mark()
				defer c.UnwindTo(mark)
				at := c.Beside(fmt.Sprintf("%d-%d", threads, concurrency))
				s := at.Tomcat(rig.Tomcat10, rig.JVM{}, shared(threads, strings.Replace(semaphore, `"3"`, fmt.Sprintf("%q", strconv.Itoa(concurrency)), 1)))
				c.Answers("127.0.0.1:8080")
				ends := make(chan demo.Outcomes, 1)
				go func() { ends <- rig.Arrivals(30, "/slow.jsp?ms=300", rig.Longer(12*time.Second))(c, s) }()
				if threads == 12 && concurrency == 3 {
					c.Wait(3 * time.Second)
					c.Ask(rig.Port, "--interval", "2s").Verdict("saturated max_threads", "losing max_threads").Names("SemaphoreValve").Silent("maxThreads from 12", "threads.max from 12")
				}
				return (<-ends).Of(demo.OK)
			}
			as, valve, threads := answered(12, 3), answered(12, 12), answered(34, 3)
			c.Row.Truth = fmt.Sprintf("30 requests/s of 0.3 s for 12 s: %d answered; %d with a concurrency of 12, %d with 34 threads instead", as, valve, threads)
			c.Holds(valve > as*3/2, "a larger concurrency did not help")
			// At this load a handful more or fewer are answered within their patience, whatever was set.
			c.Holds(threads-as < (valve-as)/4, "more threads helped")
		}},
		dead("nproc 42: the poller thread has ended, 60 clients wait", false),
		dead("nproc 42: the poller thread has ended, and its 60 clients have left", true),
		bound("server.address is set, and 8 threads wait for a backend", func(c *rig.Case, _ int) *rig.Server {
			return c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "address=127.0.0.1", "maxThreads=8")
		}, func(path string) rig.Clients { return rig.Clients{N: 24, Text: rig.Get(path)} }),
	}, data(
		behind("an Executor named shop-web-, and a SemaphoreValve of 3", semaphore, rig.Says{
			Verdict: []string{"saturated max_threads"}, Names: []string{"SemaphoreValve", "lets 3 requests through"}, Silent: []string{"threads.max from", "maxThreads from 12", "then every request"},
		}),
		behind("an Executor named shop-web-, and a StuckThreadDetectionValve", stuck, rig.Says{
			Verdict: []string{"saturated max_threads"}, Silent: []string{"SemaphoreValve"},
		}),
	)...)
}

// copied is a class path whose entries any user may read.
func copied(c *rig.Case, path string) string {
	entries := strings.Split(path, ":")
	for i, entry := range entries {
		to := filepath.Join(c.Dir, "lib", strconv.Itoa(i), filepath.Base(entry))
		c.Must(os.MkdirAll(filepath.Dir(to), 0o755)) //nolint:gosec // read by the server's user
		c.Do("cp", "-rL", entry, to)
		entries[i] = to
	}
	c.Do("chmod", "-R", "a+rX", filepath.Join(c.Dir, "lib"))
	return strings.Join(entries, ":")
}

// dead is a server of a user that may have that many threads, whose poller ends when its 60
// clients come.
func dead(name string, leave bool) deployment {
	return deployment{name, func(c *rig.Case) {
		c.Must(os.Chmod(c.Dir, 0o777)) //nolint:gosec // the server's user writes there
		s := c.Java(rig.JVM{
			Wrap: []string{"prlimit", "--nproc=42:42"},
			Attr: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1042, Gid: 1042}},
			Main: []string{"-cp", copied(c, c.EmbeddedPath()), "Embedded", "protocol=HTTP/1.1", "port=8080", "maxThreads=100", "minSpareThreads=2"},
		})
		c.Answers("127.0.0.1:8080")
		clients := c.Hold(rig.Clients{N: 60, Text: rig.Get("/?ms=3000")})
		c.Until("the clients are connected", func() bool { return clients.Connected.Load() >= 60 })
		c.Until("the poller has ended", func() bool { return !s.HasThread("http-nio-8080-P") })
		c.Wait(4 * time.Second)
		if leave {
			clients.HalfClose(60)
			c.Wait(2 * time.Second)
		}
		c.Row.Truth = fmt.Sprintf("%s; %d of 60 clients had an answer, no poller thread", s.Says(rig.Port), clients.Answered.Load())
		c.Both(rig.Port, "saturated not_reading", "losing not_reading").Names("poller thread", "user_threads_limit")
	}}
}
