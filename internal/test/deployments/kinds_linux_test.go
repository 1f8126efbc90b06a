package deployments

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// kinds are servers of which a habit of judging was wrong.
func kinds() []deployment {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	backend := func(c *rig.Case) *rig.Backend {
		return (&rig.Backend{Address: fmt.Sprintf("127.0.0.1:%d", rig.BackendPort)}).Serve(c)
	}
	asking := fmt.Sprintf("/?to=%d&hold=120000&timeout=120000", rig.BackendPort)
	named := func(name string, busy int, server func(c *rig.Case) *rig.Server, clients func() rig.Clients) deployment {
		return deployment{name, func(c *rig.Case) {
			b := backend(c)
			s := server(c)
			clients := clients()
			c.Answers(clients.Address)
			c.Hold(clients)
			c.Until("all threads wait for the backend", func() bool { return b.Waiting.Load() >= int64(busy) })
			c.Wait(time.Second)
			c.Row.Truth = fmt.Sprintf("%s; %d requests at the backend", s.Says(0), b.Waiting.Load())
			c.Both(rig.Port, "saturated downstream").Names("127.0.0.1:9000")
		}}
	}
	return []deployment{
		{"a full old generation: many short pauses (-Xmx40m, SerialGC), 10 threads", func(c *rig.Case) {
			log := filepath.Join(c.Dir, "gc.log")
			s := c.Embedded(rig.JVM{VM: []string{"-Xmx40m", "-XX:+UseSerialGC", "-Xlog:gc:file=" + log}}, tomcat("maxThreads=10", "maxConnections=200")...)
			c.Answers("127.0.0.1:8080")
			client := &http.Client{Timeout: 20 * time.Second}
			c.Must(rig.Fetch(c.Ctx, client, "http://127.0.0.1:8080/?keep=22500"))
			for range 40 {
				one := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}
				keep(c, func() error { return rig.Fetch(c.Ctx, one, "http://127.0.0.1:8080/?litter=4000") })
			}
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 10 })
			c.Wait(4 * time.Second)
			c.Both(rig.Port, "saturated jvm_pause", "losing jvm_pause").Names("stood still", "the heap").Silent("maxThreads from 10", "threads.max from 10")
			text, _ := os.ReadFile(log)
			c.Row.Truth = fmt.Sprintf("%s; %d full collections in the collector's log", s.Says(rig.Port), strings.Count(string(text), "Pause Full"))
		}},
		{"bursts of 300 on a warm server with 20 connections, half of the machine's CPU in use", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=20", "minSpareThreads=20", "maxConnections=20", "acceptCount=10")...)
			c.Answers("127.0.0.1:8080")
			warm := rig.Arrivals(100, "/?ms=1")(c, s)
			for range max(1, runtime.NumCPU()/2) {
				c.Program("sh", "-c", "while :; do :; done")
			}
			ends := make(chan demo.Outcomes, 1)
			go func() { ends <- rig.Waves(300, 1500*time.Millisecond, "/?ms=300")(c, s) }()
			// Of 300 that come within milliseconds 31 have room: what was read between two packets may be
			// too little to say whether the connections or the acceptor came first.
			said := c.Ask(rig.Port, "--interval", "3s", "--max-connections", "20", "--max-threads", "20").Verdict("losing max_connections", "losing").Silent("could not be found")
			c.Row.Unknown = said.Cause() == ""
			out := <-ends
			c.Row.Truth = fmt.Sprintf("%d warm requests answered; then %d of %d clients turned away, 20 of 20 connections taken", warm.Of(demo.OK), out.Lost(), out.Total())
		}},
		{"heap histograms in a loop on a crowded machine, with threads to spare", func(c *rig.Case) {
			log := filepath.Join(c.Dir, "safepoints.log")
			s := c.Embedded(rig.JVM{VM: []string{"-Xmx1400m", "-Xlog:safepoint:file=" + log}}, tomcat("maxThreads=30", "minSpareThreads=30")...)
			c.Answers("127.0.0.1:8080")
			kept := c.Hold(rig.Clients{N: 1, Text: rig.Get("/?hoard=24")})
			c.Until("the heap has something to be counted", func() bool { return kept.Answered.Load() == 1 })
			c.Visit(8, "http://127.0.0.1:8080/?ms=100")
			c.Program("sh", "-c", fmt.Sprintf("while :; do jcmd %d GC.class_histogram -all >/dev/null; done", s.PID))
			for range 4 * runtime.NumCPU() {
				c.Program("nice", "-n", "5", "sh", "-c", "while :; do :; done")
			}
			c.Wait(5 * time.Second)
			before, begun := stoodStill(log), time.Now()
			// What keeps the requests waiting is a pause, a CPU, or not known: at no time the threads.
			var said []string
			told := false
			for range 4 {
				a := c.Ask(rig.Port, "--interval", "2s").Silent(`"not_reading"`, `"not_accepting"`, `"slow_accept"`, "maxThreads from 30")
				said = append(said, c.Row.Said)
				// A safepoint that both readings are in shows in no counter: then the poller is said to stand, and of what it may.
				told = told || strings.Contains(a.All, "stood still") || strings.Contains(a.All, "with the whole JVM at a safepoint")
			}
			share := (stoodStill(log) - before).Seconds() / time.Since(begun).Seconds()
			c.Holds(told || share < 0.4, "that the JVM stood still is not said")
			c.Row.Said = strings.Join(said, " Then: ")
			c.Row.Truth = fmt.Sprintf("%s; the JVM stood still for %.0f %% of the time, by its log", s.Says(rig.Port), 100*share)
		}},
		{"the acceptor thread has ended, 30 clients wait", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("acceptCount=50", "kill=-Acceptor")...)
			c.Answers("127.0.0.1:8080")
			c.Wait(3 * time.Second)
			_ = once("127.0.0.1:8080") // stop() takes effect when accept() returns
			c.Until("the acceptor has ended", func() bool { return !s.HasThread("http-nio-8080-A") })
			clients := c.Hold(rig.Clients{N: 30, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 30 })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("no acceptor thread, %d of 30 clients connected, %d answered", clients.Connected.Load(), clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting", "losing not_accepting", "warning not_accepting").Names("acceptor thread").Silent("raise acceptCount", "slow_accept")
		}},
		{"a paused connector whose clients fit into the queue", func(c *rig.Case) {
			c.Embedded(rig.JVM{}, tomcat("acceptCount=50", "pause=2000")...)
			c.Answers("127.0.0.1:8080")
			c.Until("it is paused", func() bool { _, err := os.Stat(filepath.Join(c.Dir, "paused")); return err == nil })
			clients := c.Hold(rig.Clients{N: 30, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 30 })
			c.Wait(4 * time.Second)
			c.Row.Truth = fmt.Sprintf("connector.pause(), %d of 30 clients connected, %d answered", clients.Connected.Load(), clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting", "warning not_accepting").Silent("cpu_saturated", "slow_accept")
		}},
		{"a paused NIO2 connector, whose threads are idle", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=org.apache.coyote.http11.Http11Nio2Protocol", "port=8080", "maxThreads=10", "acceptCount=50", "pause=2000")
			c.Answers("127.0.0.1:8080")
			c.Until("it is paused", func() bool { _, err := os.Stat(filepath.Join(c.Dir, "paused")); return err == nil })
			clients := c.Hold(rig.Clients{N: 30, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 30 })
			c.Wait(2 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; connector.pause(), %d of 30 clients connected, %d answered", s.Says(rig.Port), clients.Connected.Load(), clients.Answered.Load())
			c.Ask(rig.Port, "--max-threads", "10", "--max-connections", "8192").Verdict("warning").Names("nothing has been accepted for at least").Silent("none is left to accept", "Raise ")
			c.Both(rig.Port, "warning").Names("nothing has been accepted for at least", "thread-dump").Silent("none is left to accept", "Raise ", "--max-connections N")
			c.Row.Unknown = true
		}},
		{"AJP: a proxy's connections that send pings, with room", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=AJP/1.3", "port=8080", "secretRequired=false", "maxThreads=10")
			c.Answers("127.0.0.1:8080")
			// CPing, as mod_jk and mod_proxy_ajp send it before a request.
			clients := c.Hold(rig.Clients{N: 30, Text: "\x12\x34\x00\x01\x0a"})
			c.Until("they have their CPong", func() bool { return clients.Answered.Load() >= 30 })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("%s; 30 connections whose pings were answered", s.Says(rig.Port))
			c.Both(rig.Port, "ok").Silent("request waits", "requests wait", "given up")
		}},
		{"a pool of three without a name, 12 handlers wait for one (the default interval)", func(c *rig.Case) {
			b := backend(c)
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=12")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get(fmt.Sprintf("/?to=%d&hold=2500&timeout=120000&pool=1&three=1", rig.BackendPort))})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 12 && b.Waiting.Load() >= 3 })
			c.Wait(time.Second)
			c.Row.Truth = fmt.Sprintf("%s; %d requests at the backend", s.Says(rig.Port), b.Waiting.Load())
			c.Ask(rig.Port).Verdict("saturated connection_pool").Names("127.0.0.1:9000").Silent("threads.max from 12", "maxThreads from 12")
		}},
		named("HTTPS on an address of its own (https-jsse-nio-ADDRESS-PORT-), 8 threads at a backend", 8, func(c *rig.Case) *rig.Server {
			return c.Embedded(rig.JVM{}, tomcat("address=127.0.0.1", "maxThreads=8", "SSLEnabled=true", "scheme=https", "secure=true", "keystore="+c.KeystoreFile())...)
		}, func() rig.Clients {
			return rig.Clients{N: 24, Text: rig.Get(asking), TLS: rig.Unverified(), Address: "127.0.0.1:8080"}
		}),
		named("IPv6 address of its own (http-nio-0:0:0:0:0:0:0:1-), 8 threads at a backend", 8, func(c *rig.Case) *rig.Server {
			return c.Embedded(rig.JVM{}, tomcat("address=::1", "maxThreads=8")...)
		}, func() rig.Clients { return rig.Clients{N: 24, Text: rig.Get(asking), Address: "[::1]:8080"} }),
		{"nginx on the port: its master listens, and its worker has the connections", func(c *rig.Case) {
			c.Nginx("keepalive_timeout 600s; server { listen 8080; location / { return 200 hello; } }")
			clients := c.Hold(rig.Clients{N: 30, Text: rig.Get("/")})
			c.Until("they are answered", func() bool { return clients.Answered.Load() >= 30 })
			c.Wait(2 * time.Second)
			c.Row.Truth = "30 connections of the worker's, all idle"
			c.Both(rig.Port, "ok").Names("30 connections").Silent("belong to pid", "shutting down")
		}},
		{"settings that the Boot version ignores: server.tomcat.max-threads", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{}, "server.tomcat.max-threads=7", "server.tomcat.max-connections=40")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 20, Text: rig.Get("/hello?ms=60000")})
			c.Until("all are served", func() bool { return s.Says(rig.Port).Busy >= 20 })
			c.Row.Truth = s.Says(rig.Port).String() + "; server.tomcat.max-threads=7 is ignored since Boot 2.3"
			c.Both(rig.Port, "ok").Names("max-threads").Silent("of 7 threads")
		}},
	}
}
