package deployments

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// stoodStill is for how long a JVM has, by its log of safepoints.
func stoodStill(log string) (sum time.Duration) {
	text, _ := os.ReadFile(log)
	for _, m := range regexp.MustCompile(`Total: *(\d+) ns`).FindAllSubmatch(text, -1) {
		ns, _ := strconv.ParseInt(string(m[1]), 10, 64)
		sum += time.Duration(ns)
	}
	return sum
}

// ofThreads are reports of threads that wait for something few would think of.
func ofThreads() []report {
	tomcat := func(args ...string) []string { return append([]string{"protocol=HTTP/1.1", "port=8080"}, args...) }
	raised := []string{"maxThreads from 8", "threads.max from 8"}
	// eight is 24 clients at eight threads, all of which wait.
	eight := func(kind, source, told, path, wait string, says rig.Says, prepare func(*rig.Case) (vm []string, path string)) report {
		return report{kind, source, told, func(c *rig.Case) {
			var vm []string
			path := path
			if prepare != nil {
				vm, path = prepare(c)
			}
			s := c.Embedded(rig.JVM{VM: vm}, tomcat("maxThreads=8")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get(path)})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 8 && s.Says(rig.Port).Connections >= 24 })
			c.Wait(time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; " + wait
			c.Both(rig.Port, says.Verdict...).Names(says.Names...).Silent(says.Silent...)
		}}
	}
	threads := func(names ...string) rig.Says {
		return rig.Says{Verdict: []string{"saturated max_threads"}, Names: names, Silent: raised}
	}
	fifo := func(c *rig.Case) string {
		path := filepath.Join(c.Dir, "fifo")
		c.Must(syscall.Mkfifo(path, 0o600))
		kept, err := os.OpenFile(path, os.O_RDWR, 0)
		c.Must(err)
		c.AtEnd(func() { _ = kept.Close() })
		return path
	}
	return []report{
		{"B", "https://github.com/woowacourse/java-http/pull/1079", "an executor that hands requests back to the thread that brings them (CallerRunsPolicy): the poller serves one, and reads no other", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("callers=4", "maxThreads=4")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 24, Text: rig.Get("/?ms=600000")})
			c.Until("they are connected", func() bool { return s.Says(rig.Port).Connections >= 24 })
			c.Wait(3 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; four threads and the poller have a request, 19 are unread"
			c.Both(rig.Port, "warning").Names("The poller thread, which hands requests to the others, waits for something itself")
		}},
		eight("G", "https://github.com/StarRocks/starrocks/pull/78666", "the handlers wait for a task of the common pool, which has few threads", "/?common=600000", "each waits for ForkJoinPool.commonPool, which has one thread a CPU less one", threads("lock"), nil),
		{"G", "https://github.com/sc2-pulse/sc2-pulse/issues/685", "asynchronous requests wait for a pool of their own, and Tomcat's threads are idle", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=50")...)
			c.Answers("127.0.0.1:8080")
			ends := make(chan struct{})
			go func() {
				defer close(ends)
				rig.Arrivals(8, "/?task=3000", rig.Longer(50*time.Second))(c, s)
			}()
			c.Wait(10 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; 8 threads of the application serve 8 requests in 3 s, 24 come, patience 3 s"
			c.Both(rig.Port, "losing", "warning", "saturated").Silent("maxThreads from", "threads.max from", "max_threads\"")
			<-ends
		}},
		{"N", "https://github.com/apache/dubbo/issues/632", "right after its start the server has a high load, and its pool of threads is full: they wait for something else", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, tomcat("maxThreads=10", "maxConnections=200")...)
			c.Answers("127.0.0.1:8080")
			for range runtime.NumCPU() {
				c.Program("sh", "-c", "while :; do :; done")
			}
			c.Hold(rig.Clients{N: 40, Text: rig.Get("/?ms=600000")})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy >= 10 && s.Says(rig.Port).Connections >= 40 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; all threads sleep, beside a loop on each CPU"
			c.Both(rig.Port, "saturated max_threads").Silent("cpu_saturated\"")
		}},
		{"A", "https://github.com/docker-library/tomcat/issues/12", "Tomcat starts for minutes: SecureRandom waits for entropy, and the port is open", func(c *rig.Case) {
			c.Embedded(rig.JVM{VM: []string{"-Djava.security.egd=file:" + fifo(c)}}, tomcat()...)
			c.Until("the port is open", func() bool { return c.Connects(rig.Port) })
			clients := c.Hold(rig.Clients{N: 8, Text: rig.Get("/")})
			c.Until("they are connected", func() bool { return clients.Connected.Load() >= 8 })
			c.Wait(3 * time.Second)
			c.Row.Truth = fmt.Sprintf("the start waits in read(2) of the source of entropy; 8 of 8 clients connected, %d answered", clients.Answered.Load())
			c.Both(rig.Port, "saturated not_accepting").Names("waits for connections there", "still being deployed").Silent("slow_accept", "raise acceptCount")
		}},
		eight("H", "https://github.com/javalite/javalite/issues/710", "the handlers read the output of a program that does not end", "/?program=exec%20sleep%20600", "each in read(2) of a pipe", threads("read(2)"), nil),
		eight("H", "https://github.com/zopefoundation/zc.lockfile/issues/26", "the handlers wait for the lock of a file that another process has", "", "one in fcntl(F_SETLKW), the others wait in the JVM", threads("file_lock"), func(c *rig.Case) ([]string, string) {
			path := c.Write("locked", "x")
			file, err := os.OpenFile(path, os.O_RDWR, 0)
			c.Must(err)
			c.AtEnd(func() { _ = file.Close() })
			c.Must(syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK, Whence: io.SeekStart}))
			return nil, "/?flock=" + path
		}),
		eight("H", "https://github.com/docker-java/docker-java/issues/1069", "the handlers wait for ever in the read of a Unix socket whose other end says nothing", "", "each in read(2) or poll(2) of a Unix socket", threads("on a Unix socket"), func(c *rig.Case) ([]string, string) {
			path := filepath.Join(c.Dir, "deaf.sock")
			deaf, err := (&net.ListenConfig{}).Listen(c.Ctx, "unix", path)
			c.Must(err)
			c.AtEnd(func() { _ = deaf.Close() })
			return nil, "/?unix=" + path
		}),
		eight("M", "https://github.com/redis/lettuce/issues/835", "all threads share one connection, whose answers come one after the other", fmt.Sprintf("/?shared=%d&hold=2000", rig.BackendPort), "one connection to the backend, 8 requests on it, 2 s each", rig.Says{
			Verdict: []string{"saturated connection_pool", "saturated downstream", "saturated max_threads"}, Names: []string{"127.0.0.1:9000"}, Silent: raised,
		}, func(c *rig.Case) ([]string, string) {
			(&rig.Backend{Address: fmt.Sprintf("127.0.0.1:%d", rig.BackendPort)}).Serve(c)
			return nil, fmt.Sprintf("/?shared=%d&hold=2000", rig.BackendPort)
		}),
		eight("M", "https://github.com/dotCMS/core/issues/7790", "the handlers wait in borrowObject of a pool of three", "/?permit=2500", "three sleep, the others wait for a permit", threads("lock"), nil),
		{"K", "https://github.com/spring-projects/spring-boot/issues/41937", "with virtual threads server.tomcat.threads.max is ignored", func(c *rig.Case) {
			s := c.Boot("none", rig.JVM{Java: rig.ModernJava}, "spring.threads.virtual.enabled=true", "server.tomcat.threads.max=10")
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 60, Text: rig.Get("/hello?ms=600000")})
			c.Until("they are connected", func() bool { return s.Says(rig.Port).Connections >= 60 })
			c.Wait(2 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; all 60 in service"
			c.Both(rig.Port, "ok").Silent("of 10 threads", "max_threads\"", "threads.max from 10")
		}},
		{"K", "https://tomcat.apache.org/tomcat-10.1-doc/config/http.html", "a Connector's own maxThreads beside an executor, which counts", func(c *rig.Case) {
			s := c.Tomcat(rig.Tomcat10, rig.JVM{}, `<Executor name="web" namePrefix="catalina-exec-" maxThreads="6" minSpareThreads="2"/><Connector port="8080" protocol="HTTP/1.1" executor="web" maxThreads="500" maxConnections="60"/>`)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 30, Text: rig.Get("/slow.jsp?ms=600000")})
			c.Until("they are connected", func() bool { return s.Says(rig.Port).Connections >= 30 })
			c.Wait(3 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; the Executor's maxThreads is 6, the Connector's 500"
			c.Both(rig.Port, "saturated max_threads").Names("All 6 threads", "from 6 ").Silent("of 500 threads", "from 500")
		}},
		{"I", "https://github.com/LucidDB/luciddb/issues/706", "each request ends in System.gc()", func(c *rig.Case) {
			s := c.Embedded(rig.JVM{VM: []string{"-Xmx400m"}}, tomcat("maxThreads=10", "maxConnections=200")...)
			c.Answers("127.0.0.1:8080")
			kept := c.Hold(rig.Clients{N: 1, Text: rig.Get("/?hoard=21")})
			c.Until("the heap has something to be looked through", func() bool { return kept.Answered.Load() == 1 })
			c.Visit(40, "http://127.0.0.1:8080/?collect=1")
			c.Wait(4 * time.Second)
			c.Row.Truth = s.Says(rig.Port).String() + "; a full collection at the end of each request"
			c.Both(rig.Port, "saturated jvm_pause", "losing jvm_pause").Names("stood still").Silent("maxThreads from 10", "threads.max from 10")
		}},
		{"I", "https://github.com/corretto/corretto-8/issues/455", "the JVM waits long until all threads stop for a safepoint: one of them counts, and the others stand", func(c *rig.Case) {
			log := filepath.Join(c.Dir, "safepoints.log")
			s := c.Embedded(rig.JVM{VM: []string{"-XX:TieredStopAtLevel=4", "-XX:-UseCountedLoopSafepoints", "-XX:LoopStripMiningIter=0", "-Xlog:safepoint:file=" + log}}, tomcat("maxThreads=30", "minSpareThreads=30")...)
			c.Answers("127.0.0.1:8080")
			c.Visit(8, "http://127.0.0.1:8080/?ms=100")
			c.Visit(1, "http://127.0.0.1:8080/?count=300")
			c.Program("sh", "-c", fmt.Sprintf("while :; do jcmd %d Thread.print >/dev/null; done", s.PID))
			c.Wait(10 * time.Second)
			before, begun := stoodStill(log), time.Now()
			silent := []string{`"not_reading"`, `"not_accepting"`, `"max_threads"`, `"slow_accept"`}
			paused := []string{"warning jvm_pause", "saturated jvm_pause", "losing jvm_pause"}
			said := c.Ask(rig.Port, "--interval", "2s").Silent(silent...)
			for range 2 { // each compares about a second, for most of which it may have run
				if said.Cause() != "jvm_pause" {
					said = c.Ask(rig.Port, "--interval", "2s").Silent(silent...)
				}
			}
			said.Verdict(paused...).Names("stood still")
			text := c.Row.Said
			c.AskAgent(rig.Port, paused...).Verdict(paused...).Silent(silent...).Names("stood still")
			c.Row.Said = text + " The agent: " + c.Row.Said
			share := min((stoodStill(log)-before).Seconds()/time.Since(begun).Seconds(), 1)
			c.Holds(share > 0.3, "it stood still for %.0f %% only", 100*share)
			c.Row.Truth = fmt.Sprintf("%s; no collection, and the JVM stood still for %.0f %% of the time by its log of safepoints", s.Says(rig.Port), 100*share)
		}},
		{"I", "https://github.com/jenkinsci/support-core-plugin/pull/135", "somebody's script asks for a heap histogram again and again: each stops the JVM", func(c *rig.Case) {
			log := filepath.Join(c.Dir, "safepoints.log")
			s := c.Embedded(rig.JVM{VM: []string{"-Xmx400m", "-Xlog:safepoint:file=" + log}}, tomcat("maxThreads=10", "maxConnections=200")...)
			c.Answers("127.0.0.1:8080")
			c.Hold(rig.Clients{N: 1, Text: rig.Get("/?hoard=22")})
			c.Wait(3 * time.Second)
			c.Visit(40, "http://127.0.0.1:8080/?ms=100")
			c.Program("sh", "-c", fmt.Sprintf("while :; do jcmd %d GC.class_histogram -all >/dev/null; done", s.PID))
			c.Wait(5 * time.Second)
			before, begun := stoodStill(log), time.Now()
			said := c.Both(rig.Port, "saturated jvm_pause", "losing jvm_pause", "saturated max_threads").Silent(`"not_reading"`, `"not_accepting"`)
			share := (stoodStill(log) - before).Seconds() / time.Since(begun).Seconds()
			if share > 0.25 {
				said.Names("stood still")
			}
			c.Row.Truth = fmt.Sprintf("%s; jcmd GC.class_histogram in a loop, which took %.0f %% of the time by the JVM's log of safepoints", s.Says(rig.Port), 100*share)
		}},
	}
}
