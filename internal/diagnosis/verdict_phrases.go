package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) pausePhrase() string {
	switch {
	case reading.Stopped(j.Now) && j.Now.Process.Frozen:
		return "the process is frozen with its cgroup"
	case reading.Stopped(j.Now):
		return "the process is stopped (state T)"
	case j.Either(reading.Stopped):
		return "the process was stopped (state T)"
	}
	switch d := j.Pause(); {
	case !j.StoodStill():
		return "the JVM stood still"
	case j.Now.Process.InSafepoint != nil && *j.Now.Process.InSafepoint >= d/2:
		return phrase.Sprintf("the JVM stands still, for %s by now (a safepoint)", phrase.Seconds(d)) + j.heapPhrase()
	case d > j.Between():
		return phrase.Sprintf("the JVM stood still for %s (safepoints)", phrase.Seconds(d)) + j.heapPhrase()
	default:
		return phrase.Sprintf("the JVM stood still for %s of the last %s (safepoints, %s of the time)", phrase.Seconds(d), phrase.Seconds(j.Between()), phrase.Percent(d.Seconds()/j.Between().Seconds())) + j.heapPhrase()
	}
}

// heapPhrase says that the heap is too small for what stays in it.
func (j *judge) heapPhrase() string {
	p := j.Now.Process
	if p == nil || p.OldUsed == nil || p.OldMax == nil || *p.OldMax <= 0 {
		return ""
	}
	full := float64(*p.OldUsed) / float64(*p.OldMax)
	if full < heapFull {
		return ""
	}
	return phrase.Sprintf("; the heap's old generation is %s full (%d of %d MiB)", phrase.Percent(full), *p.OldUsed>>20, *p.OldMax>>20)
}

// heapFull is how full the old generation is when collections find no more room in it.
const heapFull = 0.85

func (j *judge) cpuPhrase(c model.Cause) string {
	if c == model.CauseCPUThrottled {
		if t := j.Throttling(); t.Share() >= j.T.ThrottledShare {
			return t.String()
		}
		return "the CPU limit throttled the process"
	}
	if n := j.Share(reading.RunDelay); n >= j.T.RunDelay {
		return phrase.Sprintf("on average %s of the process's threads waited for a CPU", phrase.Decimal(n))
	}
	return "the process's threads waited for a CPU"
}

func (j *judge) inInterval() string { return within(j.Interval) }

func within(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d == time.Second:
		return " in the last second"
	}
	return " in the last " + phrase.Seconds(d)
}

// queuePhrase says what waits outside.
func (j *judge) queuePhrase() string {
	q := j.Now.AcceptQueue
	if q == nil {
		return "connections wait in the accept queue"
	}
	if q.Full() {
		return phrase.Sprintf("the accept queue is full (%d of %d)", q.Length, q.Capacity())
	}
	return phrase.Sprintf("%s %s in the accept queue (capacity %d)", phrase.Count(q.Length, "connection"), phrase.Verb(q.Length, "waits", "wait"), q.Capacity())
}

// threadsPhrase says what waits inside. Where the phases are not known it
// claims no more than the thread names and the unread bytes show.
func (j *judge) threadsPhrase() string {
	most, _ := reading.MaxThreads(j.Now)
	waiting := reading.WaitingRequests(j.Now)
	requests := atLeast(j.Now) + phrase.Count(waiting, "request") + " " + phrase.Verb(waiting, "waits", "wait") + " inside " + reading.ServerName(j.Now) + " for one"
	if waiting == 0 && reading.AcceptsWithWorkers(j.Now) {
		requests = "none is left to accept (NIO2 has no other thread for that)"
	}
	busy, seen := reading.BusyThreads(j.Now)
	switch {
	case !seen || float64(busy) < j.T.ThreadsBusy*float64(most):
		return phrase.Sprintf("the pool is at its maximum of %s and %s", phrase.Count(most, "thread"), requests)
	case busy < most:
		return phrase.Sprintf("%d of %d threads are busy and %s", busy, most, requests)
	}
	return allThreads(most) + " busy and " + requests
}

// stagePhrase says how far a stage is used, and when it will be full.
func (j *judge) stagePhrase(c model.Cause) string {
	l, _ := reading.LimitNamed(j.limits, string(c))
	used := map[model.Cause]string{
		model.CauseOpenFiles:      "open files are in use",
		model.CauseEphemeralPorts: "local ports are in use",
		model.CauseMaxThreads:     "threads are busy",
		model.CauseMaxConnections: "connections are taken",
	}[c]
	s := phrase.Sprintf("%d of %d %s (%s)", l.Used, l.Max, used, phrase.Percent(l.Ratio))
	if c == model.CauseMaxThreads && reading.Hidden(j.Now) {
		s += "; whether requests wait for one cannot be seen (" + whyHidden(j.Now.Connector) + ")"
	}
	if c == model.CauseEphemeralPorts && j.Now.Process.Busiest.Address.IsValid() {
		s = phrase.Sprintf("%d of %d local ports are in use towards %s (%s)", l.Used, l.Max, j.Now.Process.Busiest.Address, phrase.Percent(l.Ratio)) + j.timeWaitPhrase()
	}
	if l.FullIn != nil {
		in := "about " + phrase.Seconds(*l.FullIn)
		if *l.FullIn < time.Second {
			in = "less than a second"
		}
		s += "; at this rate the limit is reached in " + in
	}
	return s + j.stageAside(c)
}

// timeWaitPhrase says how many of the ports are in TIME_WAIT, where they are most of
// them, and what is not known of these.
func (j *judge) timeWaitPhrase() string {
	d := j.Now.Process.Busiest
	n := d.TimeWait - d.Reusable
	switch {
	case d.Unowned:
		return ", all in TIME_WAIT, so that which process used them cannot be seen; a connection there for which none is left fails with EADDRNOTAVAIL"
	case 2*n < d.Taken():
		return ""
	}
	return phrase.Sprintf(", %d of them in TIME_WAIT", n)
}

func whyHidden(c *model.Connector) string {
	if c.TLS {
		return "the connections are encrypted"
	}
	return "HTTP/2 carries many requests on one connection"
}

func (j *judge) stageAside(c model.Cause) string {
	switch c {
	case model.CauseMaxThreads:
		if n := reading.WaitingRequests(j.Now); n > 0 {
			return phrase.Sprintf("; %s %s for one", phrase.Count(n, "request"), phrase.Verb(n, "waits", "wait"))
		}
	case model.CauseMaxConnections:
		if reading.QueueWaits(j.Now) {
			return "; " + j.queuePhrase()
		}
	case model.CauseOpenFiles:
		if conn, ok := reading.LimitNamed(j.limits, reading.StageMaxConnections); ok && j.filesFirst() {
			return phrase.Sprintf("; they run out before maxConnections (%d of %d)", conn.Used, conn.Max)
		}
	}
	return ""
}

// atLeast: of hidden connections the encrypted or multiplexed requests that were
// read off the socket wait invisibly.
func atLeast(l *model.Listener) string {
	if reading.Hidden(l) {
		return "at least "
	}
	return ""
}

func (j *judge) waitingPhrase() string {
	n := reading.WaitingRequests(j.Now)
	return phrase.Count(n, "request") + " " + phrase.Verb(n, "waits", "wait") + " to be read"
}

// standingPhrase says that they wait, and whether anything is known to be lost.
func (j *judge) standingPhrase() string {
	wait := "at least " + j.waitingPhrase() + ", the first for " + phrase.Seconds(j.Now.Connections.Unread) + " and longer"
	if j.Now.Losses == nil {
		return phrase.Capital(wait)
	}
	return "Nothing is lost so far; " + wait
}

// starvedPhrase says who waits for a process that does not run, or hardly does.
func (j *judge) starvedPhrase() string {
	if reading.Queued(j.Now) > 0 {
		return j.queuePhrase()
	}
	n := reading.WaitingRequests(j.Now)
	if j.halted() || n == 0 {
		n = reading.InHand(j.Now)
		return phrase.Count(n, "request") + " " + phrase.Verb(n, "waits", "wait") + " for an answer"
	}
	return j.waitingPhrase()
}
