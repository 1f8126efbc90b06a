package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/demo"
)

// limited starts the server with that many open files.
func limited(files string) options {
	return options{wrap: []string{"prlimit", "--nofile=" + files + ":" + files}}
}

// processRemedies are about what the process may use.
func processRemedies() []remedy {
	// A full queue drops SYNs: who does not get in gives up while it connects, and what
	// CPU there is goes to those inside.
	shed := try{says: `or shed load before it gets here`, did: "maxConnections=4 and acceptCount=1: who does not get in is turned away in 0.9 s", apply: setting("maxConnections=4", "acceptCount=1")}
	burning := []string{"port=8080", "maxThreads=20", "minSpareThreads=20"}
	return []remedy{{
		finding: "open_files", load: "70 open files, 30 requests/s of 2.5 s",
		world: world{options: limited("70")},
		press: arrivals(30, "/hello?ms=2500"),
		tries: []try{
			{says: `Raise the open-files limit from \d+ to ([\d,]+)`, did: "ulimit -n %s and a restart", apply: func(w *world, groups []string) { w.options = limited(digits(groups[1])) }},
			{says: `Raising maxConnections or acceptCount would not help`, did: "server.tomcat.accept-count=1000", apply: setting("server.tomcat.accept-count=1000"), vain: true},
		},
	}, {
		finding: "open_files_below_max_connections", load: "70 open files, 8,192 connections configured; 5 requests/s of 0.5 s before, 30 of 2.5 s afterwards (see open_files)",
		world: world{options: limited("70")},
		press: arrivals(5, "/hello?ms=500"),
		tries: []try{
			{
				says: `Raise the open-files limit to ([\d,]+)`, did: "ulimit -n %s and a restart",
				apply: func(w *world, groups []string) { w.options = limited(digits(groups[1])) },
				press: arrivals(30, "/hello?ms=2500"), after: "no cause",
			},
			{
				says: `or lower server\.tomcat\.max-connections to (\d+), so that clients wait in the queue instead of accept\(\) failing`,
				did:  moreConnections, apply: set("server.tomcat.max-connections"),
				press: arrivals(30, "/hello?ms=2500"), after: "max_connections",
			},
		},
	}, {
		finding: "pids_limit", load: "pids.max of the cgroup lets 3 more threads start; 40 requests/s of 2 s",
		world: world{settings: []string{"server.tomcat.threads.min-spare=4"}, started: func(b *bench, s *server) { b.group("pids", s, "pids.max", fmt.Sprint(threadsOf(s)+3)) }},
		press: arrivals(40, "/hello?ms=2000"),
		tries: []try{{says: `Raise the limit \(--pids-limit of the container`, did: "pids.max=500 and a restart", apply: func(w *world, _ []string) {
			w.started = func(b *bench, s *server) { b.group("pids", s, "pids.max", "500") }
		}}},
	}, {
		finding: "cpu_throttled", load: "a limit of 0.1 CPUs, 20 requests/s that each take 10 ms of it",
		world: world{embedded: true, settings: burning, started: func(b *bench, s *server) { b.quota(s, "0.1") }},
		press: arrivals(20, "/?burn=10"),
		tries: []try{
			{says: `Raise the CPU limit`, did: "a limit of 1 CPU, while it runs", act: func(b *bench, s *server, _ []string) { b.quota(s, "1") }},
			{says: `or remove it`, did: "no limit, while it runs", act: func(b *bench, s *server, _ []string) { b.group("cpu", s, "cpu.cfs_quota_us", "-1") }},
			{says: `More threads would make it worse`, did: "maxThreads=200", apply: setting("maxThreads=200", "minSpareThreads=200"), vain: true},
		},
	}, {
		finding: "cpu_saturated", load: "a sixteenth of one CPU, of which eight others want the rest (cpu.shares 64), 20 requests/s that each take 10 ms of it",
		world: world{embedded: true, settings: burning, started: func(b *bench, s *server) { b.crowdedOut(s) }},
		press: arrivals(20, "/?burn=10"),
		tries: []try{
			{says: `Give the process more CPU`, did: "cpu.shares=8192, while it runs", act: func(b *bench, s *server, _ []string) { b.group("cpu", s, "cpu.shares", "8192") }},
			shed,
			{says: `More threads, connections or acceptCount would make it worse`, did: "maxThreads=200", apply: setting("maxThreads=200", "minSpareThreads=200"), vain: true},
		},
	}}
}

// pauseRemedies are about a JVM that does not run.
func pauseRemedies() []remedy {
	heap := func(collector string) []string { return []string{"-XX:+Use" + collector, "-Xms2g", "-Xmx2g"} }
	return []remedy{{
		finding: "jvm_pause", load: "the process is stopped; 20 requests/s",
		world: world{started: func(_ *bench, s *server) { _ = syscall.Kill(s.pid, syscall.SIGSTOP) }},
		press: arrivals(20, "/hello"),
		tries: []try{{says: `"kill -CONT (\d+)" lets it go on`, did: "kill -CONT %s", act: func(b *bench, _ *server, groups []string) {
			b.must(output(b.ctx, "", "kill", "-CONT", groups[1]))
			time.Sleep(time.Second) // what was queued is answered
		}}},
	}, {
		finding: "jvm_pause", load: "a full collection of 2^24 objects every 1.5 s (SerialGC), 150 requests/s, acceptCount 10",
		world: world{embedded: true, options: options{vm: heap("SerialGC")}, settings: []string{"port=8080", "acceptCount=10"}, started: hoard},
		press: collecting(arrivals(150, "/?ms=5")),
		tries: []try{{says: `a collector with short pauses \((ZGC)`, did: "-XX:+Use%s", apply: func(w *world, groups []string) { w.options.vm = heap(groups[1]) }}},
	}}
}

func hoard(b *bench, _ *server) {
	o := patient("/?hoard=24")
	o.Clients, o.RequestTimeout = 1, time.Minute
	if b.burst(b.ctx, o).Of(demo.OK) != 1 {
		b.must(errors.New("the heap does not hold it"))
	}
}

// collecting has the heap collected while the clients come.
func collecting(p pressure) pressure {
	return func(b *bench, s *server) demo.Outcomes {
		for i := range 4 {
			time.AfterFunc(time.Duration(i)*1500*time.Millisecond+time.Second, func() {
				o := patient("/?collect=1")
				o.Clients, o.RequestTimeout = 1, time.Minute
				b.burst(b.ctx, o)
			})
		}
		return p(b, s)
	}
}

func threadsOf(s *server) int {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.pid))
	return len(threads)
}

// group puts the server into a cgroup (version 1) of its own and sets what it may use.
func (b *bench) group(controller string, s *server, file, value string) {
	dir := filepath.Join("/sys/fs/cgroup", controller, fmt.Sprintf("tcpdiag-advice-%d", s.pid))
	if err := os.Mkdir(dir, 0o755); err == nil {
		b.cleanup = append([]func(){func() { removeSoon(dir) }}, b.cleanup...) // after the server has ended
	}
	b.must(os.WriteFile(filepath.Join(dir, file), []byte(value), 0o600))
	b.must(os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(s.pid)), 0o600))
}

func removeSoon(dir string) {
	for range 50 {
		if os.Remove(dir) == nil {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (b *bench) quota(s *server, cpus string) {
	share, err := strconv.ParseFloat(cpus, 64)
	b.must(err)
	b.group("cpu", s, "cpu.cfs_quota_us", fmt.Sprint(int(math.Round(share*100_000))))
}

// crowdedOut leaves the server what eight others leave of one CPU.
func (b *bench) crowdedOut(s *server) {
	for range 8 {
		cmd := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done") //nolint:noctx // ends with the case
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		b.must(cmd.Start())
		b.cleanup = append(b.cleanup, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	b.must(output(b.ctx, "", "taskset", "-apc", "0", strconv.Itoa(s.pid)))
	b.group("cpu", s, "cpu.shares", "64")
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
