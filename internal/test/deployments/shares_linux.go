package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// shares are servers whose group gets little of a CPU that others want, without a limit:
// all their threads have a request, and wait for a processor.
func shares() []deployment {
	crowded := func(path, share string, warm bool, expected ...string) func(*bench) {
		return func(b *bench) {
			s := b.embedded(options{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=20", "minSpareThreads=20")
			b.answers("127.0.0.1:8080")
			if warm {
				c := b.hold("tcp", "127.0.0.1:8080", 40, get("/?burn=20"), nil)
				b.until("it is warm", func() bool { return c.answered.Load() == 40 && s.says(port).Busy == 0 })
				c.reset(40)
			}
			b.hold("tcp", "127.0.0.1:8080", 40, get(path), nil)
			b.until("all threads are busy", func() bool { return s.says(port).Busy == 20 && s.says(port).Connections >= 40 })
			b.row.Truth = s.says(port).String()
			b.crowdedOut(s)
			b.group("cpu", s, "cpu.shares", share)
			wait(b.ctx, time.Second)
			used, began := cpuTime(s), time.Now()
			said := b.ask(port, "--max-threads", "20", "--max-connections", "8192", "--interval", "2s")
			b.row.Truth += fmt.Sprintf("; %d of its threads runnable (state R), %.3f CPUs used", runnable(s), (cpuTime(s)-used).Seconds()/time.Since(began).Seconds())
			v := said.listener.Verdict
			got := v.Status + " " + v.Cause
			b.holds(slices.Contains(expected, got), "%q is none of %q", got, expected) // however busy this machine is
			if !warm && v.Cause == "max_threads" {
				b.names(said, "See cpu_saturated first")
			}
		}
	}
	return []deployment{
		{"cpu.shares 64 beside eight loops on one CPU, 20 handlers that compute", crowded("/?burn=600000", "64", true, "saturated cpu_saturated")},
		{"cpu.shares 2, a pod without requests, beside eight loops on one CPU, 20 handlers that compute", crowded("/?burn=600000", "2", true, "saturated cpu_saturated")},
		{"cpu.shares 2 before the server is warm: some handlers compute, others wait for a lock that one without a CPU has", crowded("/?burn=600000", "2", false, "saturated cpu_saturated", "saturated max_threads")},
		{"cpu.shares 64 beside eight loops on one CPU, 20 handlers that sleep", crowded("/?ms=600000", "64", true, "saturated max_threads")},
	}
}

// runnable counts the threads that run or wait for a CPU.
func runnable(s *server) (n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.pid))
	for _, file := range tasks {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), ") R ") {
			n++
		}
	}
	return n
}

// cpuTime is what the process has used (utime and stime of stat, in hundredths).
func cpuTime(s *server) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
