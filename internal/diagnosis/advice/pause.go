package advice

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// PauseSteps are what to do about a process that stands still.
func PauseSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	const limits = "Any of Tomcat's limits: they have no part in it."
	switch {
	case reading.Stopped(s.Now) && s.Now.Process.Dumping:
		return CrashedSteps(s), limits
	case reading.Stopped(s.Now) && s.Now.Process.Frozen:
		return []model.Step{withoutPause("Find out who froze it (docker pause, systemctl freeze, a checkpoint) and let it go on: docker unpause, systemctl thaw", "")}, limits
	case s.Either(reading.Stopped) && s.Now.Process != nil:
		return []model.Step{
			Action("Find out who stopped it: SIGSTOP, a debugger, a shell's job control"),
			withoutPause("Let it go on", Continue(s.Now.Process)),
		}, limits
	}
	if words.Memory(s) != "" {
		return []model.Step{
			withoutPause("Give its cgroup more memory (the container's limit, MemoryMax= of the unit)"+orSmaller(s), ""),
			Command("See how much this process has (a JVM beside its heap: threads, direct buffers, metaspace); others in the cgroup share the limit", phrase.Sprintf("grep -E 'Rss|VmSwap' /proc/%v/status", s.Now.Process.PID)),
		}, "A larger heap alone, more threads or connections: they take memory that is not there."
	}
	if s.PausedOtherwise() {
		return []model.Step{Action("See what it stands still for, and how long its threads take to stop: -Xlog:safepoint"), withoutPause("End what asks for it (histograms or dumps of the heap, thread dumps, an agent); a thread that takes long to stop is named by -XX:+SafepointTimeout", "")},
			"A larger heap, more threads or connections: it is not collections that stop it."
	}
	first := Action("See how full the heap is after a collection, and how long the pauses are (-Xlog:gc,safepoint)")
	if p := s.Now.Process; p != nil && p.PID > 0 {
		first = Command("See how full the heap is; the collector's log has the pauses (-Xlog:gc,safepoint)", phrase.Sprintf("jcmd %v GC.heap_info", p.PID))
	}
	if words.Heap(s) != "" {
		return []model.Step{withoutPause("Give it a larger heap (-Xmx): what stays in it leaves hardly any room, and each collection takes the time of all", ""), Command("See what fills it", phrase.Sprintf("jcmd %v GC.class_histogram", s.Now.Process.PID))},
			"More threads or connections: nothing runs in a pause, and each request in hand takes memory."
	}
	return []model.Step{first, withoutPause("Give it a larger heap (-Xmx), or a collector with short pauses (ZGC, Shenandoah)", "")},
		"More threads or connections: nothing runs in a pause."
}

// orSmaller is the other way to have enough memory, where the heap has room.
func orSmaller(s *symptoms.Symptoms) string {
	if words.Heap(s) != "" {
		return ", and then the heap (-Xmx)"
	}
	return ", or have the JVM use less (-Xmx, fewer threads)"
}

// withoutPause is a step that ends the pauses.
func withoutPause(text, line string) model.Step {
	return model.Step{Text: text, Command: line, Limit: reading.LimitPause}
}

// Pause says what to look at where the JVM stood still.
func Pause(s *symptoms.Symptoms) string {
	if reading.Stopped(s.Now) && s.Now.Process.Dumping {
		return "See what it crashed of (hs_err_pid*.log in its working directory, dmesg). Its port stays open until the core dump is written; SIGKILL ends that. No limit of Tomcat's has a part in this."
	}
	if reading.Stopped(s.Now) && s.Now.Process.Frozen {
		return "Find out who froze it: docker pause, systemctl freeze, a checkpoint; \"docker unpause\" or \"systemctl thaw\" lets it go on. No limit of Tomcat's has a part in this."
	}
	if (s.Either(reading.Stopped) || reading.WorkerStopped(s.Now)) && s.Now.Process != nil {
		return phrase.Sprintf("Find out who stopped it (SIGSTOP, a debugger, a shell's job control); \"%s\" lets it go on. No limit of Tomcat's has a part in this.", Continue(s.Now.Process))
	}
	if words.Memory(s) != "" {
		return "Give its cgroup more memory (the container's limit, MemoryMax= of the unit)" + orSmaller(s) + ": near the limit what runs there waits until the kernel has found some, or is killed. A larger heap alone, more threads or connections would not help: they take memory that is not there."
	}
	if s.PausedOtherwise() {
		return "Look at -Xlog:safepoint: it names what the JVM stands still for (histograms or dumps of the heap, thread dumps, an agent), and how long its threads take to stop; -XX:+SafepointTimeout names a thread that takes long. A larger heap or another collector would not help, nor more threads or connections."
	}
	if words.Heap(s) != "" {
		return "Give it a larger heap (-Xmx), or find what fills it (jcmd PID GC.class_histogram): what stays in it leaves hardly any room, and the collector works most of the time. More threads or connections would not help: nothing runs in a pause, and each request in hand takes memory."
	}
	return phrase.Sentences(
		"Look at the pauses in the collector's log (-Xlog:gc,safepoint): a larger heap, or a collector with short pauses (ZGC, Shenandoah), removes the long ones.",
		"More threads or connections would not help, nothing runs in a pause; a longer acceptCount bridges one only if it holds all that arrives meanwhile.")
}
