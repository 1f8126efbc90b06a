package deployments

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// processRemedies are about what the process may use.
func processRemedies() []remedy {
	// A full queue drops SYNs: who does not get in gives up while it connects, and what
	// CPU there is goes to those inside.
	shed := try{says: `or shed load before it gets here`, did: "maxConnections=4 and acceptCount=1: who does not get in is turned away in 0.9 s", apply: setting("maxConnections=4", "acceptCount=1")}
	burning := []string{"port=8080", "maxThreads=20", "minSpareThreads=20"}
	return []remedy{{
		finding: "open_files", load: "70 open files, 30 requests/s of 2.5 s",
		world: world{jvm: rig.LimitedFiles("70")},
		press: rig.Arrivals(30, "/hello?ms=2500"),
		tries: []try{
			{says: `Raise the open-files limit from \d+ to ([\d,]+)`, did: "ulimit -n %s and a restart", apply: func(w *world, groups []string) { w.jvm = rig.LimitedFiles(digits(groups[1])) }},
			{says: `Raising maxConnections or acceptCount would not help`, did: "server.tomcat.accept-count=1000", apply: setting("server.tomcat.accept-count=1000"), vain: true},
		},
	}, {
		finding: "open_files_below_max_connections", load: "70 open files, 8,192 connections configured; 5 requests/s of 0.5 s before, 30 of 2.5 s afterwards (see open_files)",
		world: world{jvm: rig.LimitedFiles("70")},
		press: rig.Arrivals(5, "/hello?ms=500"),
		tries: []try{
			{
				says: `Raise the open-files limit to ([\d,]+)`, did: "ulimit -n %s and a restart",
				apply: func(w *world, groups []string) { w.jvm = rig.LimitedFiles(digits(groups[1])) },
				press: rig.Arrivals(30, "/hello?ms=2500"), after: "no cause",
			},
			{
				says: `or lower server\.tomcat\.max-connections to (\d+), so that clients wait in the queue instead of accept\(\) failing`,
				did:  moreConnections, apply: set("server.tomcat.max-connections"),
				press: rig.Arrivals(30, "/hello?ms=2500"), after: "max_connections",
			},
		},
	}, {
		finding: "pids_limit", load: "pids.max of the cgroup lets 3 more threads start; 40 requests/s of 2 s",
		world: world{settings: []string{"server.tomcat.threads.min-spare=4"}, started: func(c *rig.Case, s *rig.Server) { c.Group("pids", s, "pids.max", fmt.Sprint(s.Threads()+3)) }},
		press: rig.Arrivals(40, "/hello?ms=2000"),
		tries: []try{{says: `Raise the limit \(--pids-limit of the container`, did: "pids.max=500 and a restart", apply: func(w *world, _ []string) {
			w.started = func(c *rig.Case, s *rig.Server) { c.Group("pids", s, "pids.max", "500") }
		}}},
	}, {
		finding: "cpu_throttled", load: "a limit of 0.1 CPUs, 20 requests/s that each take 10 ms of it",
		world: world{embedded: true, settings: burning, started: func(c *rig.Case, s *rig.Server) { c.Quota(s, "0.1") }},
		press: rig.Arrivals(20, "/?burn=10"),
		tries: []try{
			{says: `Raise the CPU limit`, did: "a limit of 1 CPU, while it runs", act: func(c *rig.Case, s *rig.Server, _ []string) { c.Quota(s, "1") }},
			{says: `or remove it`, did: "no limit, while it runs", act: func(c *rig.Case, s *rig.Server, _ []string) { c.Group("cpu", s, "cpu.cfs_quota_us", "-1") }},
			{says: `More threads would make it worse`, did: "maxThreads=200", apply: setting("maxThreads=200", "minSpareThreads=200"), vain: true},
		},
	}, {
		finding: "cpu_saturated", load: "a sixteenth of one CPU, of which eight others want the rest (cpu.shares 64), 20 requests/s that each take 10 ms of it",
		world: world{embedded: true, settings: burning, started: func(c *rig.Case, s *rig.Server) { c.CrowdedOut(s) }},
		press: rig.Arrivals(20, "/?burn=10"),
		tries: []try{
			{says: `Give the process more CPU`, did: "cpu.shares=8192, while it runs", act: func(c *rig.Case, s *rig.Server, _ []string) { c.Group("cpu", s, "cpu.shares", "8192") }},
			shed,
			{says: `More threads, connections or acceptCount would make it worse`, did: "maxThreads=200", apply: setting("maxThreads=200", "minSpareThreads=200"), vain: true},
		},
	}}
}

// pauseRemedies are about a JVM that does not run.
func pauseRemedies() []remedy {
	return []remedy{{
		finding: "jvm_pause", load: "the process is stopped; 20 requests/s",
		world: world{started: func(_ *rig.Case, s *rig.Server) { _ = syscall.Kill(s.PID, syscall.SIGSTOP) }},
		press: rig.Arrivals(20, "/hello"),
		tries: []try{{says: `"kill -CONT (\d+)" lets it go on`, did: "kill -CONT %s", act: func(c *rig.Case, _ *rig.Server, groups []string) {
			c.Do("kill", "-CONT", groups[1])
			time.Sleep(time.Second) // what was queued is answered
		}}},
	}, {
		finding: "jvm_pause", load: "a full collection of 2^24 objects every 1.5 s (SerialGC), 150 requests/s, acceptCount 10",
		world: world{embedded: true, jvm: rig.JVM{VM: heap("SerialGC")}, settings: []string{"port=8080", "acceptCount=10"}, started: hoard},
		press: collecting(4)(rig.Arrivals(150, "/?ms=5")),
		tries: []try{{says: `a collector with short pauses \((ZGC)`, did: "-XX:+Use%s", apply: func(w *world, groups []string) { w.jvm.VM = heap(groups[1]) }}},
	}}
}

func hoard(c *rig.Case, _ *rig.Server) {
	o := rig.Patient("/?hoard=24")
	o.Clients, o.RequestTimeout = 1, time.Minute
	if rig.Burst(c.Ctx, o).Of(demo.OK) != 1 {
		c.Must(errors.New("the heap does not hold it"))
	}
}

func heap(collector string) []string { return []string{"-XX:+Use" + collector, "-Xms2g", "-Xmx2g"} }

// collecting has the heap collected that often while the clients come.
func collecting(times int) func(rig.Load) rig.Load {
	return func(p rig.Load) rig.Load {
		return func(c *rig.Case, s *rig.Server) demo.Outcomes {
			for i := range times {
				time.AfterFunc(time.Duration(i)*1500*time.Millisecond+time.Second, func() {
					o := rig.Patient("/?collect=1")
					o.Clients, o.RequestTimeout = 1, time.Minute
					rig.Burst(c.Ctx, o)
				})
			}
			return p(c, s)
		}
	}
}

func digits(s string) string {
	var out []byte
	for _, c := range []byte(s) {
		if c >= '0' && c <= '9' {
			out = append(out, c)
		}
	}
	return string(out)
}
