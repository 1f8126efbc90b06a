package deployments

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/test/rig"
)

// shares are servers whose group gets little of a CPU that others want, without a limit:
// all their threads have a request, and wait for a processor.
func shares() []deployment {
	crowded := func(path, share string, warm bool, expected ...string) func(*rig.Case) {
		return func(c *rig.Case) {
			s := c.Embedded(rig.JVM{}, "protocol=HTTP/1.1", "port=8080", "maxThreads=20", "minSpareThreads=20")
			c.Answers("127.0.0.1:8080")
			if warm {
				w := c.Hold(rig.Clients{N: 40, Text: rig.Get("/?burn=20")})
				c.Until("it is warm", func() bool { return w.Answered.Load() == 40 && s.Says(rig.Port).Busy == 0 })
				w.Reset(40)
			}
			c.Hold(rig.Clients{Address: "127.0.0.1:8080", N: 40, Text: rig.Get(path)})
			c.Until("all threads are busy", func() bool { return s.Says(rig.Port).Busy == 20 && s.Says(rig.Port).Connections >= 40 })
			c.Row.Truth = s.Says(rig.Port).String()
			c.CrowdedOut(s)
			c.Group("cpu", s, "cpu.shares", share)
			c.Wait(time.Second)
			used, began := cpuTime(s), time.Now()
			said := c.Ask(rig.Port, "--max-threads", "20", "--max-connections", "8192", "--interval", "2s")
			c.Row.Truth += fmt.Sprintf("; %d of its threads runnable (state R), %.3f CPUs used", runnable(s), (cpuTime(s)-used).Seconds()/time.Since(began).Seconds())
			v := said.Listener.Verdict
			got := v.Status + " " + v.Cause
			c.Holds(slices.Contains(expected, got), "%q is none of %q", got, expected) // however busy this machine is
			if !warm && v.Cause == "max_threads" {
				said.Names("See cpu_saturated first")
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
func runnable(s *rig.Server) (n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.PID))
	for _, file := range tasks {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), ") R ") {
			n++
		}
	}
	return n
}

// cpuTime is what the process has used (utime and stime of stat, in hundredths).
func cpuTime(s *rig.Server) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.PID))
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
