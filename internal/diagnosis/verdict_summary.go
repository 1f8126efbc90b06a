package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// summary says in one sentence what happens, why, and with which numbers.
func (st sentence) summary(v model.Verdict) string {
	switch v.Status {
	case model.StatusDown:
		return st.summaryDown(v.Cause)
	case model.StatusLosing:
		return phrase.Capital(st.lossPhrase()) + st.reason(v) + "."
	case model.StatusSaturated:
		return st.summarySaturated(v)
	case model.StatusWarning:
		return st.summaryWarning(v)
	}
	return st.summaryOK()
}

func (st sentence) summaryDown(c model.Cause) string {
	if c == model.CauseListenerClosed {
		n := st.resetInQueue()
		return phrase.Sprintf("The listener on port %v closed with %s in its accept queue, which %s reset; new clients are refused.",
			st.Now.Port, phrase.Count(n, "connection"), phrase.Verb(n, "was", "were"))
	}
	return phrase.Sprintf("Nothing listens on port %v: clients are refused.", st.Now.Port)
}

// lossPhrase: packets are packets, never clients.
func (st sentence) lossPhrase() string {
	dropped, reset := st.losses().DroppedPackets, st.resetInQueue()
	s := ""
	if dropped > 0 {
		s = phrase.Sprintf("%s %s dropped%s", phrase.Count(dropped, "packet"), phrase.Verb(dropped, "was", "were"), st.inInterval())
	}
	if reset > 0 && s != "" {
		return s + phrase.Sprintf(", and %s %s reset in the queue of a listener that closed; the packets", phrase.Count(reset, "connection"), phrase.Verb(reset, "was", "were"))
	}
	if reset > 0 {
		who := "the listener"
		if st.Closed != nil && st.Closed.Part {
			who = "one of the sockets that share the address (SO_REUSEPORT)"
		}
		return phrase.Sprintf("%s closed%s with %s in its accept queue, which %s reset", who, st.inInterval(), phrase.Count(reset, "connection"), phrase.Verb(reset, "was", "were"))
	}
	return s
}

func (st sentence) summarySaturated(v model.Verdict) string {
	switch {
	case v.Cause == model.CauseMaxThreads || v.Cause == model.CauseExecutorQueue:
		return st.summaryThreads(v)
	case v.Cause == model.CauseDownstream || v.Cause == model.CauseConnectionPool:
		return st.summaryWaits()
	case st.halted() || st.starved() != model.CauseNone:
		return phrase.Capital(st.starvedPhrase()) + st.reason(v) + st.lostYet("; ") + "."
	case queued(st.Now) == 0: // only the threads are full, and the CPU is why
		return phrase.Capital(st.threadsPhrase()) + st.reason(v) + st.lostYet("; ") + "."
	}
	return phrase.Capital(st.queuePhrase()) + st.reason(v) + st.lostYet("; ") + "."
}

// lostYet says that no packet was dropped, if losses were looked for. A client
// that gave up has lost something all the same.
func (st sentence) lostYet(sep string) string {
	switch {
	case st.Now.Losses == nil:
		return ""
	case st.losses().AbandonedRequests > 0:
		return sep + "no packet was dropped, but " + st.abandonedPhrase()
	}
	return sep + "nothing is lost yet"
}

// abandonedPhrase: they are seen at scans, which miss some.
func (st sentence) abandonedPhrase() string {
	n := st.losses().AbandonedRequests
	return phrase.Sprintf("at least %s %s given up by the client%s", phrase.Count(n, "request"), phrase.Verb(n, "was", "were"), st.inInterval())
}

func (st sentence) summaryThreads(v model.Verdict) string {
	outside := "the accept queue is empty"
	if queued(st.Now) > 0 {
		outside = st.queuePhrase()
	}
	outside += st.lostYet(" and ")
	if v.Cause != model.CauseExecutorQueue {
		return phrase.Capital(st.threadsPhrase()) + "; " + outside + "."
	}
	most, _ := maxThreads(st.Now)
	threads := allThreads(most) + " busy"
	if waitingRequests(st.Now) > 0 {
		threads = st.threadsPhrase()
	}
	return phrase.Capital(threads) + ": " + st.executorPhrase() + "."
}

// executorPhrase: only a queue without a place left rejects.
func (st sentence) executorPhrase() string {
	n, _ := boundedQueue(st.Now)
	rejects := serverName(st.Now) + " rejects what comes on top"
	if n == 0 {
		return "the executor's queue has no place at all, " + rejects
	}
	if waiting := executorWaiting(st.Now); waiting < n {
		return phrase.Sprintf("the executor's queue was full a moment ago (%d of %d now), %s", waiting, n, rejects)
	}
	return phrase.Sprintf("the executor's queue is full (%d of %[1]d), %s", n, rejects)
}

func (st sentence) summaryWarning(v model.Verdict) string {
	if st.onlyStands(v) {
		return st.summaryOK()
	}
	switch v.Cause {
	case model.CauseOpenFiles, model.CauseEphemeralPorts, model.CauseMaxThreads:
		return phrase.Capital(st.stagePhrase(v.Cause)) + "."
	case model.CauseExecutorQueue:
		return st.summaryThreads(v)
	case model.CauseMaxConnections, model.CauseKeepAliveIdle:
		if st.high() == model.CauseMaxConnections {
			return phrase.Capital(st.stagePhrase(model.CauseMaxConnections)) + "."
		}
	}
	q := st.Now.AcceptQueue
	return phrase.Sprintf("The accept queue holds %d of %d connections (%s)%s.", q.Length, q.Capacity(), phrase.Percent(q.Ratio()), st.reason(v))
}

// summaryOK gives the three numbers that show why there is nothing to do.
func (st sentence) summaryOK() string {
	if !st.Now.Listening() {
		return phrase.Sprintf("Nothing listens on port %v; nobody said that something should.", st.Now.Port)
	}
	s := "Nothing is lost and nothing is held up"
	switch {
	case st.seenOnce() && st.Now.Losses == nil && !st.requestsStand():
		s = "What waits is seen for the first time"
	case st.losses().AbandonedRequests > 0:
		s = "No packet was dropped, but " + st.abandonedPhrase()
	case st.requestsStand():
		s = st.standingPhrase()
	case st.seenOnce():
		s = "Nothing is lost so far, and what waits is seen for the first time"
	case st.both(st.queueStands):
		s = "Nothing is lost; " + st.queuePhrase()
		if connectionLimit(st.Now) == limitUnknown {
			s += ", and why is unknown while maxConnections is not known"
		}
	case st.Now.Losses == nil:
		s = "Nothing is held up at this moment"
	case waitingRequests(st.Now) > 0:
		s = "Nothing is lost"
		if _, known := maxThreads(st.Now); notObservable(st.Now) || !known && !virtualThreads(st.Now) {
			s += "; at least " + st.waitingPhrase()
		}
	case notObservable(st.Now):
		s = "Nothing is lost; whether requests wait for a thread cannot be seen"
	case phase(st.Now, model.Unclassified) > 0, isTomcat(st.Now) && !poolKnown(st.Now) && phase(st.Now, model.InService) > 0:
		s = "Nothing is lost and nothing is seen to wait"
	case !isTomcat(st.Now) && phase(st.Now, model.InService) > 0:
		s = "Nothing is lost; whether requests wait inside " + serverName(st.Now) + " is unknown, as its limits are not known"
	}
	sep := ": "
	add := func(text string) { s += sep + text; sep = ", " }
	if most, ok := maxThreads(st.Now); ok {
		if busy, seen := busyThreads(st.Now); seen {
			add(phrase.Sprintf("%d of %d threads busy", busy, most))
		}
	}
	if n, ok := held(st.Now); ok {
		switch connectionLimit(st.Now) {
		case limitKnown:
			add(phrase.Sprintf("%d of %d connections", n, st.Now.Connector.MaxConnections.Value))
		default:
			add(phrase.Count(n, "connection"))
		}
		if idle := phase(st.Now, model.Idle); idle > 0 {
			s += phrase.Sprintf(" (%d idle)", idle)
		}
	}
	if q := st.Now.AcceptQueue; q != nil {
		add(phrase.Sprintf("%d of %d in the accept queue", q.Length, q.Capacity()))
	}
	if st.clamped() {
		n, _ := acceptCount(st.Now)
		s += phrase.Sprintf("; but of acceptCount %d only %d is in force", n, st.Now.AcceptQueue.Limit)
	}
	return s + "."
}

// poolKnown: how many threads there are for requests is known. Where it is not they may
// be virtual, and a request that was read may wait for a carrier thread.
func poolKnown(l *model.Listener) bool {
	_, known := maxThreads(l)
	return known
}

// summaryWaits says what the threads wait for.
func (st sentence) summaryWaits() string {
	most, _ := maxThreads(st.Now)
	outside := "the accept queue is empty"
	if queued(st.Now) > 0 {
		outside = st.queuePhrase()
	}
	if st.waits.virtual {
		return phrase.Sprintf("%s %s in service on virtual threads: ", phrase.Count(st.waits.busy, "request"), phrase.Verb(st.waits.busy, "is", "are")) +
			st.waitPhrase() + "; " + outside + st.lostYet(" and ") + "."
	}
	busy := phrase.Sprintf("%d of %d threads are busy", st.waits.busy, most)
	if st.waits.busy == most {
		busy = phrase.Capital(allThreads(most)) + " busy"
	}
	n := waitingRequests(st.Now)
	requests := atLeast(st.Now) + phrase.Count(n, "request") + " " + phrase.Verb(n, "waits", "wait") + " for a thread"
	return busy + ": " + st.waitPhrase() + "; " + requests + ", " + outside + st.lostYet(" and ") + "."
}
