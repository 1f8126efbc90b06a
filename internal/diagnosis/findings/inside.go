package findings

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// silentPeer says that requests cannot be answered for want of a peer.
func silentPeer(s *symptoms.Symptoms, add adder) {
	if s.SilentPeer() == nil {
		return
	}
	add("backend_silent", model.SeverityWarning, phrase.Capital(words.SilentPeer(s))+".",
		"Find out why: it is down, its own accept queue is full, or a firewall drops the packets. Set a connect timeout on the client, so that a request is not held for longer than its caller waits. More threads would wait there as well.")
}

// insideFinding: what the threads wait for is in the process itself, which only the
// JVM can say more of.
func insideFinding(s *symptoms.Symptoms, add adder) {
	n := s.Inside()
	if n == 0 {
		return
	}
	evidence := words.Join(phrase.Sprintf("%s %s for %s, none of them in a call on a connection",
		phrase.Count(n, "busy thread"), phrase.Verb(n, "waits", "wait"), words.Inside(s.Now))+besideInCall(s), words.StackNumbers(s.Now))
	if down := words.Unconnected(s.Now); down != "" {
		add("waiting_inside", model.SeverityWarning,
			phrase.Sprintf("%s No connection to %s is open, which the configuration names.", evidence, down),
			phrase.Sprintf("Find out first whether %s can be reached: a pool that cannot connect has its threads wait until they give up. --thread-dump asks the JVM what they wait for, as its user and group (or jstack PID).", down))
		return
	}
	g := reading.StacksOf(s.Now).BusyGroup()
	if g == nil {
		add("waiting_inside", model.SeverityWarning, evidence,
			"See what they wait for before raising threads, of which more would wait as well: --thread-dump asks the JVM, as its user and group (or jstack PID).")
		return
	}
	where := model.ShortMethod(g.Library)
	if g.Application != "" {
		where = model.ShortMethod(g.Application)
	}
	add("waiting_inside", model.SeverityWarning, evidence,
		phrase.Sprintf("Look at %s, where most of them are: at what it waits for, and who has that. More threads would wait there as well.", where))
}

// besideInCall is who may have what the others wait for.
func besideInCall(s *symptoms.Symptoms) string {
	d := reading.DownstreamOf(s.Now)
	if d == nil || d.Workers == nil || d.Workers.InCalls() == 0 {
		return ""
	}
	n := d.Workers.InCalls()
	return phrase.Sprintf("; %s %s, and may have it", phrase.Count(n, "other"), words.BlockedIn(d.Workers, n))
}

// callFinding: the threads are in a call on a file or a pipe, which returns at once where the
// file system answers, or wait for an answer on a socket that is not TCP's.
func callFinding(s *symptoms.Symptoms, add adder) {
	n := s.InCalls()
	if n == 0 {
		return
	}
	w := reading.DownstreamOf(s.Now).Workers
	evidence := words.Join(phrase.Sprintf("%s %s", phrase.Count(n, "busy thread"), words.BlockedIn(w, n)), words.StackNumbers(s.Now))
	if w.Call().OnSocket() {
		add("waiting_for_socket", model.SeverityWarning, evidence,
			"See who does not answer there: a name server (/etc/resolv.conf of the process), or the other end of the Unix socket (ss -xp). Where in the code: --thread-dump as its user and group, or jstack PID. More threads would wait there as well.")
		return
	}
	add("waiting_for_file", model.SeverityWarning, evidence,
		"Find the file (--thread-dump as its user and group, or jstack PID, shows where; /proc/PID/fd and /proc/mounts what): a network file system that does not answer, a full disk, a pipe that nobody reads. More threads would wait there as well.")
}

// carriersFinding: virtual threads could run, and have no carrier, by the JVM's own
// account: those that have one compute, or wait and are pinned to it (a native frame; until
// JDK 24 also a synchronized block).
func carriersFinding(s *symptoms.Symptoms, add adder) {
	dump := reading.StacksOf(s.Now)
	if dump == nil || !dump.Scheduler.Starved() {
		return
	}
	add("carriers_taken", model.SeverityWarning,
		words.Join(phrase.Sprintf("%d of %s of virtual threads %s taken, and %s that could run %s for one", dump.Scheduler.Mounted, phrase.Count(dump.Scheduler.Parallelism, "carrier"),
			phrase.Verb(dump.Scheduler.Parallelism, "is", "are"), phrase.Count(dump.Scheduler.Queued, "virtual thread"), phrase.Verb(dump.Scheduler.Queued, "waits", "wait")), words.StackNumbers(s.Now)),
		"See what the virtual threads on the carriers do: they compute, for which only more CPUs help, or they wait and are pinned (-Djdk.tracePinnedThreads=short until JDK 23, the event jdk.VirtualThreadPinned from JFR): move what pins them to a pool of platform threads. maxThreads has no part in it.")
}

// deadlockFinding: threads that wait for one another do so until the restart.
func deadlockFinding(s *symptoms.Symptoms, add adder) {
	if dump := reading.StacksOf(s.Now); dump != nil && dump.Deadlocked {
		add("deadlock", model.SeverityCritical, "The JVM found threads that wait for one another's locks.",
			"Restart it, and have the application take its locks in one order: these threads never go on. jstack PID names the locks and their threads.")
	}
}

func gateFinding(s *symptoms.Symptoms, add adder) {
	if reading.Gate(s.Now) == nil || !s.ThreadsFull {
		return
	}
	add("semaphore_valve", model.SeverityWarning, phrase.Capital(words.GateWords(s))+".",
		"More threads would wait there, too.")
}
