package diagnosis

import (
	"fmt"
	"math"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// advice for a cause: one concrete change with its number, its side effects,
// and the change that suggests itself and would not help.
func (j *judge) advice(c model.Cause, v model.Verdict) string {
	switch c {
	case model.CauseMaxThreads:
		return j.adviseThreads(v)
	case model.CauseDownstream:
		return j.adviseDownstream()
	case model.CauseConnectionPool:
		return j.advisePool()
	case model.CauseMaxConnections:
		return j.adviseConnections(v)
	case model.CauseKeepAliveIdle:
		return j.adviseKeepAlive(v)
	case model.CauseExecutorQueue:
		return j.adviseExecutorQueue()
	case model.CauseOpenFiles:
		return j.adviseFiles()
	case model.CauseJVMPause:
		return j.advisePause()
	case model.CauseCPUThrottled:
		return j.adviseThrottled()
	case model.CauseCPUSaturated:
		return adviseCPU
	case model.CauseSlowAccept:
		return j.adviseSlowAccept()
	case model.CauseBacklogClamped:
		return j.adviseClamped()
	case model.CauseSynBacklog:
		return j.adviseSynBacklog()
	case model.CauseListenerClosed:
		if j.Closed != nil && j.Closed.Part {
			return "Set net.ipv4.tcp_migrate_req=1 (Linux 5.14): the kernel then moves whoever waits in the queue of a socket that closes to the others, if they have room."
		}
		return "Take the instance out of the load balancer first, wait until no new connections come, and only then stop it (in Kubernetes a preStop hook that sleeps 10 s). A graceful shutdown alone does not do this: it closes the listener at once and with it whatever waits in its queue."
	case model.CauseNoListener:
		return "Look at the application's log and at \"ss -ltn\": it is down, still starting, or bound to another address or port. No Tomcat limit refuses a connection on Linux."
	case model.CauseEphemeralPorts:
		return j.advisePorts()
	}
	return j.adviseUnknown()
}

const adviseCPU = "Give the process more CPU, or shed load before it gets here. More threads, connections or acceptCount would make it worse: they only add to what waits for a CPU."

// adviseThreads: as many threads as requests are there, if that is within
// reach; else twice as many, which halves the wait.
func (j *judge) adviseThreads(v model.Verdict) string {
	if j.waits.cause != model.CauseNone {
		return phrase.Sprintf("Leave %s at %d: see %s.", maxThreadsSetting().name(j.Now), j.Now.Connector.MaxThreads.Value, j.waits.cause)
	}
	most, _ := maxThreads(j.Now)
	busy, seen := busyThreads(j.Now)
	to, effect := j.threadsAdvised()
	shorten := "Shorten what the handlers wait for"
	if n := sendingThreads(j.Now, min(busy, most)); seen && 2*n > min(busy, most) {
		shorten = fmt.Sprintf("Send less, or let a buffering proxy take the responses: %d of the %d busy threads have one that its client has not taken yet. Shorten that", n, min(busy, most))
	}
	first := ""
	if j.noMoreThreads() && j.Now.Connector.MaxThreads.Kind == model.SourceInferred {
		return phrase.Sentences("See pids_limit: no more threads than these can be started, whatever is configured.", j.acceptCountInVain())
	}
	if p := j.waits.possible; p != model.CauseNone {
		first = fmt.Sprintf("See possible_%s first: more threads may only wait, too.", p)
	}
	if first == "" && j.cpuShortBeside(v.Cause) {
		first = "See cpu_saturated first: more threads may only wait for a CPU, too."
	}
	if first == "" && j.inside() > 0 {
		first = "See waiting_inside first: more threads may only wait, too."
	}
	if first != "" && j.threadsMayBeVain() {
		return phrase.Sentences(first, shorten+".", j.acceptCountInVain())
	}
	text := phrase.Sentences(first,
		shorten+", or raise "+maxThreadsSetting().fromTo(j.Now, most, to)+": "+effect+".",
		"Each thread takes up to 1 MiB of stack, and what the handlers call must handle the additional load.")
	if v.Cause != model.CauseMaxThreads {
		return text // the cause's own advice has the rest
	}
	return phrase.Sentences(text, j.acceptCountInVain())
}

// threadsAdvised is a maxThreads above the one in force, and what it is enough for.
func (j *judge) threadsAdvised() (to int, effect string) {
	most, _ := maxThreads(j.Now)
	busy, seen := busyThreads(j.Now)
	waiting := waitingForThread(j.Now)
	to, effect = roundUp(most+waiting), "then every request now inside has a thread"
	switch {
	case hidden(j.Now):
		return max(to, spare(most)), "a first step, since not all waiting requests can be seen"
	case waiting == 0 || seen && busy+waiting <= most:
		return spare(most), "a quarter more than there are"
	case most+waiting > 5*most:
		return 2 * most, fmt.Sprintf("that halves the wait; a thread for every request now inside would take %d", to)
	}
	return to, effect
}

// sendingThreads is how many of the busy ones are at most accounted for by
// responses that wait for their clients. A connection may have such bytes and no
// thread any more, so those that are in service come first.
func sendingThreads(l *model.Listener, busy int) int {
	return min(phase(l, model.Sending), max(0, busy-phase(l, model.InService)))
}

func (j *judge) adviseExecutorQueue() string {
	n, _ := boundedQueue(j.Now)
	return phrase.Sentences(
		fmt.Sprintf("%s is %d: raise it to %d if rejecting is not what it is for, or raise the threads that empty it.", maxQueueSetting().name(j.Now), n, max(spare(2*n), 10)),
		"A longer queue means that requests wait longer before they are served. acceptCount and maxConnections have no part in it.")
}

func (j *judge) advisePause() string {
	if stopped(j.Now) && j.Now.Process.Frozen {
		return "Find out who froze it: docker pause, systemctl freeze, a checkpoint; \"docker unpause\" or \"systemctl thaw\" lets it go on. No limit of Tomcat's has a part in this."
	}
	if j.either(stopped) && j.Now.Process != nil {
		return fmt.Sprintf("Find out who stopped it (SIGSTOP, a debugger, a shell's job control); \"kill -CONT %d\" lets it go on. No limit of Tomcat's has a part in this.", j.Now.Process.PID)
	}
	return phrase.Sentences(
		"Look at the pauses in the collector's log (-Xlog:gc,safepoint): a larger heap, or a collector with short pauses (ZGC, Shenandoah), removes the long ones.",
		"More threads or connections would not help, nothing runs in a pause; a longer acceptCount bridges one only if it holds all that arrives meanwhile.")
}

// adviseSlowAccept: a burst has to fit into the queue while the acceptor works
// it off; a packet dropped in it stands for at most one client more. A minute of
// bursts and retransmissions is no burst, and no queue is to hold it.
func (j *judge) adviseSlowAccept() string {
	q := j.Now.AcceptQueue
	if q == nil {
		return j.adviseUnknown()
	}
	vain := "More threads or connections would not help: neither was used up."
	if j.threadsFull || j.undercounted() {
		vain = ""
	}
	to, holds := j.queueWanted()
	return phrase.Sentences(j.backlogChange(to), holds, vain)
}

// queueWanted is a longer accept queue, and what it is enough for.
func (j *judge) queueWanted() (to int, holds string) {
	q := j.Now.AcceptQueue
	dropped, burst := j.overflowed(), "the burst"
	if b := j.losses().Burst; b > 0 && b < dropped {
		dropped, burst = b, fmt.Sprintf("a burst like the largest, of which a second dropped %s,", phrase.Count(b, "packet"))
	}
	if clients, known := j.withoutRoom(); known && clients < dropped {
		dropped, burst = clients, fmt.Sprintf("the %s for which it had no place", j.orMore(clients))
	}
	to, holds = spare(q.Capacity()+int(dropped)), "The queue then holds "+burst+" while it is accepted; the clients in it wait instead of retrying after 1 s."
	if most := max(j.t.QueueMost, roundUp(2*q.Capacity())); to > most {
		to, holds = most, fmt.Sprintf("The %s are more than one burst, the same clients among them again and again: if that queue overflows too, look for what keeps %s from accepting.", phrase.Count(dropped, "dropped packet"), serverName(j.Now))
	}
	if step := atMost(q.Limit); to > step {
		to = step
		if step < q.Capacity()+int(dropped) {
			holds = fmt.Sprintf("A first step: the %s may be the same clients again and again.", phrase.Count(dropped, "dropped packet"))
		}
	}
	return to, holds
}

func (j *judge) adviseClamped() string {
	n, _ := acceptCount(j.Now)
	limit := j.Now.AcceptQueue.Limit
	somax, ok := j.Sysctl["somaxconn"]
	switch {
	case ok && somax >= n:
		return fmt.Sprintf("net.core.somaxconn is %d by now: restart the server, listen() takes it once. (Or acceptCount was changed after the start.) Raising the sysctl further changes nothing.", somax)
	case ok && somax != limit:
		return fmt.Sprintf("Set net.core.somaxconn to %d (now %d) in the server's network namespace, then restart the server: listen() takes it once. Raising acceptCount further changes nothing.", n, somax)
	}
	return fmt.Sprintf("Set net.core.somaxconn to %d in the server's network namespace (sysctl -w net.core.somaxconn=%[1]d; in Kubernetes the pod's securityContext.sysctls), then restart the server: listen() takes it once. Raising acceptCount further changes nothing.", n)
}

func (j *judge) adviseSynBacklog() string {
	s := "Find out whether it is a flood (many sources that never finish the handshake: ss -tan state syn-recv). "
	if c := j.losses().Clients; c != nil && c.Flood != nil && c.Flood.Certain {
		s = ""
	}
	if v, ok := j.Sysctl["tcp_syncookies"]; ok && v == 0 {
		return s + "Switch SYN cookies on: sysctl -w net.ipv4.tcp_syncookies=1; a full SYN queue then loses nobody, at the price of window scaling and SACK for clients without timestamps. maxConnections and threads have no part in it."
	}
	return s + "The SYN queue is as long as the listener's backlog. " + j.backlogChange(j.synQueueWanted()) + " Threads and maxConnections have no part in it."
}

func (j *judge) advisePorts() string {
	l, _ := limitNamed(j.limits, stageEphemeralPorts)
	s := "Reuse outgoing connections (a client with a keep-alive pool): each one, and its TIME_WAIT for a minute after, takes a port."
	if l.Max < widestRange {
		s += fmt.Sprintf(" Or widen the range: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" gives %d towards one destination instead of %d; keep the ports of local services out of it (ip_local_reserved_ports).", widestRange, l.Max)
	}
	return s + j.adviseTimeWait() + " Tomcat's limits have no part in it."
}

// adviseTimeWait: net.ipv4.tcp_tw_reuse is 2 by default since Linux 4.19, the loopback
// alone. 1 helps connections with timestamps, and only the end that connects.
func (j *judge) adviseTimeWait() string {
	d := j.Now.Process.Busiest
	if reuse, ok := j.Sysctl["tcp_tw_reuse"]; d == nil || !ok || reuse == 1 || 2*d.TimeWait < d.Ports {
		return ""
	}
	return " Or let connections take ports that have been in TIME_WAIT for a second: sysctl -w net.ipv4.tcp_tw_reuse=1 (if both ends use TCP timestamps)."
}

func (j *judge) adviseThrottled() string {
	s := "Raise the CPU limit (the container's, or CPUQuota= of the unit)"
	if t := j.throttling(); t.share() > 0 && t.withheld < .9 {
		more := 1 / (1 - t.withheld)
		if limit := j.Now.Process.CPULimit; limit != nil && *limit > 0 {
			s += phrase.Sprintf(" from %s to %s CPUs", phrase.Fraction(*limit), phrase.Decimal(math.Ceil(*limit*more*10)/10))
		} else {
			s += phrase.Sprintf(" to %s times what it is", phrase.Decimal(math.Ceil(more*10)/10))
		}
		s += ", as much as the process wanted"
	}
	return s + ", or remove it and keep the request. More threads would make it worse: the quota is used up sooner in each period."
}
