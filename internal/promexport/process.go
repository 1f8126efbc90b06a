package promexport

import (
	"strconv"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

type processMetrics struct {
	openFiles      *metric
	openFilesLimit *metric
	threads        *metric
	safepoint      *metric
	throttled      *metric
	runDelay       *metric
}

func newProcessMetrics(c *catalogue) processMetrics {
	return processMetrics{
		openFiles: c.gauge("tcpdiag_process_open_files",
			"Open files of the process that listens.",
			"netns", "process"),
		openFilesLimit: c.gauge("tcpdiag_process_open_files_limit",
			"Open files the process may have (soft limit).",
			"netns", "process"),
		threads: c.gauge("tcpdiag_process_threads",
			"Threads of the process.",
			"netns", "process"),
		safepoint: c.counter("tcpdiag_jvm_safepoint_seconds_total",
			"Time the JVM has stood still at safepoints, garbage collection and the wait until all threads have stopped included (sun.rt.safepointTime and, from Java 13 on, .safepointSyncTime).",
			"netns", "process"),
		throttled: c.counter("tcpdiag_process_cpu_throttled_seconds_total",
			"Time the process's cgroup was kept from the CPU by its quota, summed over CPUs (throttled_usec of cpu.stat).",
			"netns", "process"),
		runDelay: c.counter("tcpdiag_process_run_delay_seconds_total",
			"Time the process's threads, ready to run, have waited for a CPU (schedstat).",
			"netns", "process"),
	}
}

// processes exports each process once, however many ports it listens on. The
// process label is made of the command name and the lowest listening port, so
// that it survives a restart; where two processes share both, the first wins.
func (c *Collector) processes(e emitter, s *model.Snapshot) {
	type key struct {
		netns   uint64
		process string
	}
	names := newProcessNames(s.Listeners)
	seen := make(map[key]bool)
	for i := range s.Listeners {
		l := &s.Listeners[i]
		k := key{l.ID.NetNS, names.of(l)}
		if k.process == "" || seen[k] {
			continue
		}
		seen[k] = true
		ls := labels{netnsLabel(k.netns), label("process", k.process)}
		c.process(e, ls, l.Process)
		c.downstream(e, ls, l.Process.Downstream)
	}
}

func (c *Collector) process(e emitter, ls labels, p *model.Process) {
	m := &c.catalogue.process
	known(e, m.openFiles, ls, p.OpenFiles)
	known(e, m.openFilesLimit, ls, p.OpenFilesLimit)
	known(e, m.threads, ls, p.Threads)
	knownSeconds(e, m.safepoint, ls, p.SafepointTime)
	knownSeconds(e, m.throttled, ls, p.CPUThrottled)
	knownSeconds(e, m.runDelay, ls, p.RunDelay)
}

func knownSeconds(e emitter, m *metric, ls labels, d *time.Duration) {
	if d != nil {
		e.value(m, ls, d.Seconds())
	}
}

// processNames gives each process its lowest listening port.
type processNames map[processKey]uint16

type processKey struct {
	netns uint64
	pid   int
}

func newProcessNames(ls []model.Listener) processNames {
	names := make(processNames)
	for i := range ls {
		l := &ls[i]
		if l.Process == nil || !l.Listening() {
			continue
		}
		k := processKey{l.ID.NetNS, l.Process.PID}
		if port, ok := names[k]; !ok || l.Port < port {
			names[k] = l.Port
		}
	}
	return names
}

// of is the process label, "java:8080", and "" where the owner is not known.
func (n processNames) of(l *model.Listener) string {
	if l.Process == nil || !l.Listening() {
		return ""
	}
	return l.Process.Comm + ":" + strconv.Itoa(int(n[processKey{l.ID.NetNS, l.Process.PID}]))
}
