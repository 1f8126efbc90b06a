package diagnosis

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// summary says in one sentence what happens, why, and with which numbers.
func (j *judge) summary(v model.Verdict) string {
	switch v.Status {
	case model.StatusWarning:
		if j.s.OnlyElsewhere() {
			return phrase.Sprintf("Nothing listens on port %v in this network namespace; %s.", j.s.Now.Port, words.ElsewhereFact(j.s))
		}
		return j.summaryWarning(v)
	case model.StatusDown:
		return j.summaryDown(v.Cause)
	case model.StatusLosing:
		why := phrase.Capital(j.whyFailed(v)) // who failed stands in front of it, see AddClients
		if who := j.localClients(v); who != "" {
			why = who + j.reason(v)
		}
		if !j.lost() {
			return why + "."
		}
		if _, back := j.s.NoWayBack(); v.Cause == model.CauseBeforeListener && back == "" {
			return why + "; before that " + j.lossPhrase() + " by the listener."
		}
		return phrase.Capital(j.lossPhrase()) + j.reason(v) + "."
	case model.StatusSaturated:
		return j.summarySaturated(v)
	}
	return j.summaryOK()
}

// lost: packets or clients were, at the listener.
func (j *judge) lost() bool { return j.s.Losses().DroppedPackets > 0 || j.s.ResetInQueue() > 0 }

// localClients are those that the cause accounts for, "" for none.
func (j *judge) localClients(v model.Verdict) string {
	if j.lost() && v.Cause != model.CauseBeforeListener {
		return ""
	}
	return words.LocalClients(j.s)
}

// whyFailed is why clients fail though no packet was dropped.
func (j *judge) whyFailed(v model.Verdict) string {
	reason := j.reason(v)
	because, _ := strings.CutPrefix(reason, " because ")
	switch {
	case because != "":
		return because
	case v.Cause == model.CauseDownstream || v.Cause == model.CauseConnectionPool:
		return words.WaitOf(j.s)
	case v.Cause == model.CauseExecutorQueue:
		return j.executorPhrase()
	case v.Cause == model.CauseEphemeralPorts:
		return causes.Ports(j.s)
	}
	return words.Threads(j.s)
}

func (j *judge) summaryDown(c model.Cause) string {
	if c == model.CauseListenerClosed {
		n := j.s.ResetInQueue()
		return phrase.Sprintf("The listener on port %v closed with %s in its accept queue, which %s reset; new clients are refused.",
			j.s.Now.Port, phrase.Count(n, "connection"), phrase.Verb(n, "was", "were"))
	}
	if fact := words.DrainingFact(j.s); fact != "" {
		return phrase.Sprintf("The listener on port %v is closed, and %s: new clients are refused.", j.s.Now.Port, fact)
	}
	if j.s.OnlyElsewhere() {
		return phrase.Sprintf("Nothing listens on port %v in this network namespace, and clients are refused; %s.", j.s.Now.Port, words.ElsewhereFact(j.s))
	}
	return phrase.Sprintf("Nothing listens on port %v: clients are refused.", j.s.Now.Port)
}

// lossPhrase: packets are packets, never clients.
func (j *judge) lossPhrase() string {
	dropped, reset := j.s.Losses().DroppedPackets, j.s.ResetInQueue()
	s := ""
	if dropped > 0 {
		s = phrase.Sprintf("%s %s dropped%s", phrase.Count(dropped, "packet"), phrase.Verb(dropped, "was", "were"), words.InInterval(j.s))
	}
	if reset > 0 && s != "" {
		return s + phrase.Sprintf(", and %s %s reset in the queue of a listener that closed; the packets", phrase.Count(reset, "connection"), phrase.Verb(reset, "was", "were"))
	}
	if reset > 0 {
		who := "the listener"
		if j.s.Closed != nil && j.s.Closed.Part {
			who = "one of the sockets that share the address (SO_REUSEPORT)"
		}
		return phrase.Sprintf("%s closed%s with %s in its accept queue, which %s reset", who, words.InInterval(j.s), phrase.Count(reset, "connection"), phrase.Verb(reset, "was", "were"))
	}
	return s
}

func (j *judge) summarySaturated(v model.Verdict) string {
	switch {
	case v.Cause == model.CauseMaxThreads || v.Cause == model.CauseExecutorQueue:
		return j.summaryThreads(v)
	case v.Cause == model.CauseDownstream || v.Cause == model.CauseConnectionPool:
		return j.summaryWaits()
	case v.Cause == model.CauseNotReading && reading.WaitingRequests(j.s.Now) > 0:
		return phrase.Capital(words.Waiting(j.s)) + j.reason(v) + j.lostYet("; ") + "."
	case j.s.Halted() || j.s.InLongSafepoint() && !j.s.TakenUp() || j.starved() != model.CauseNone:
		return phrase.Capital(words.Starved(j.s)) + j.reason(v) + j.lostYet("; ") + "."
	case reading.Queued(j.s.Now) == 0: // only the threads are full, and the CPU is why
		return phrase.Capital(words.Threads(j.s)) + j.reason(v) + j.lostYet("; ") + "."
	}
	return phrase.Capital(words.Queue(j.s)) + j.reason(v) + j.lostYet("; ") + "."
}

// lostYet says that no packet was dropped, if losses were looked for. A client
// that gave up has lost something all the same.
func (j *judge) lostYet(sep string) string {
	switch {
	case j.s.Now.Losses == nil:
		return ""
	case j.s.Losses().AbandonedRequests > 0:
		return sep + "no packet was dropped, but " + j.abandonedPhrase()
	}
	return sep + "nothing is lost yet"
}

// abandonedPhrase: they are seen at scans, which miss some.
func (j *judge) abandonedPhrase() string {
	n := j.s.Losses().AbandonedRequests
	return phrase.Sprintf("at least %s %s given up by the client%s", phrase.Count(n, "request"), phrase.Verb(n, "was", "were"), words.InInterval(j.s))
}

func (j *judge) summaryThreads(v model.Verdict) string {
	outside := "the accept queue is empty"
	if reading.Queued(j.s.Now) > 0 {
		outside = words.Queue(j.s)
	}
	outside += j.lostYet(" and ")
	if v.Cause != model.CauseExecutorQueue {
		return phrase.Capital(words.Threads(j.s)) + "; " + outside + "."
	}
	most, _ := reading.MaxThreads(j.s.Now)
	threads := words.AllThreads(most) + " busy"
	if reading.WaitingRequests(j.s.Now) > 0 {
		threads = words.Threads(j.s)
	}
	return phrase.Capital(threads) + ": " + j.executorPhrase() + "."
}

// executorPhrase: only a queue without a place left rejects.
func (j *judge) executorPhrase() string {
	n, _ := reading.BoundedQueue(j.s.Now)
	rejects := reading.ServerName(j.s.Now) + " rejects what comes on top"
	if n == 0 {
		return "the executor's queue has no place at all, " + rejects
	}
	if waiting := reading.ExecutorWaiting(j.s.Now); waiting < n {
		return phrase.Sprintf("the executor's queue was full a moment ago (%d of %d now), %s", waiting, n, rejects)
	}
	return phrase.Sprintf("the executor's queue is full (%d of %[1]d), %s", n, rejects)
}

func (j *judge) summaryWarning(v model.Verdict) string {
	if j.onlyStands(v) {
		return j.summaryOK()
	}
	switch v.Cause {
	case model.CauseServerResets:
		return phrase.Capital(causes.ResetPhrase(j.s)) + "."
	case model.CauseLossyNetwork:
		return phrase.Capital(words.Lossy(j.s)) + "."
	case model.CauseNotReading:
		return "No request can be served" + j.reason(v) + "."
	case model.CauseJVMPause:
		if j.s.StandsMostly() {
			return "Nothing is lost; " + words.Pause(j.s) + "."
		}
		if j.high() == model.CauseJVMPause {
			return phrase.Capital(words.Pause(j.s)) + "; whether clients wait for an answer cannot be seen (" + words.WhyHidden(j.s.Now.Connector) + ")."
		}
	case model.CauseEphemeralPorts:
		return phrase.Capital(causes.Ports(j.s)) + "."
	case model.CauseOpenFiles, model.CauseMaxThreads:
		return phrase.Capital(words.Stage(j.s, v.Cause)) + "."
	case model.CauseExecutorQueue:
		return j.summaryThreads(v)
	case model.CauseMaxConnections, model.CauseKeepAliveIdle:
		if c := j.high(); c == model.CauseMaxConnections || c == model.CauseKeepAliveIdle {
			return phrase.Capital(words.Stage(j.s, model.CauseMaxConnections)) + "."
		}
	}
	q := j.s.Now.AcceptQueue
	return phrase.Sprintf("The accept queue holds %d of %d connections (%s)%s.", min(q.Length, q.Capacity()), q.Capacity(), phrase.Percent(q.Ratio()), j.reason(v))
}

// summaryOK gives the three numbers that show why there is nothing to do.
func (j *judge) summaryOK() string {
	if !j.s.Now.Listening() {
		return phrase.Sprintf("Nothing listens on port %v; nobody said that something should.", j.s.Now.Port)
	}
	state, numbers := j.okState()
	if numbers == "" {
		return state + "."
	}
	if strings.HasPrefix(numbers, "; ") {
		return state + numbers + "."
	}
	return state + ": " + numbers + "."
}

// okState is why nothing has to be done, and the numbers that show it.
func (j *judge) okState() (state, numbers string) {
	s := "Nothing is lost and nothing is held up"
	switch {
	case j.s.AddressMissing():
		return phrase.Sprintf("Clients cannot reach it at %v", j.s.Now.ID.Address.Addr()), phrase.Sentences("no interface and no local route of this network namespace has that address;", j.okNumbers())
	case j.s.NobodyTried() > 0 && j.s.NobodyIn() && !j.s.SomeUnanswered():
		s = "Nobody is connected, and no client has tried to connect" + words.Within(j.s.NobodyTried())
	case j.seenOnce() && j.s.Now.Losses == nil && !j.s.RequestsStand():
		s = "Some wait, and one reading does not show whether that lasts"
	case j.s.WorkerStands():
		s = "Nothing is lost; " + words.StoppedWorkers(j.s)
	case j.s.SilentPeer() != nil && reading.WaitingRequests(j.s.Now) == 0:
		s = phrase.Capital(words.SilentPeer(j.s))
	case j.s.LeftInside():
		s = phrase.Capital(words.LeftInside(j.s))
	case j.s.Losses().AbandonedRequests > 0:
		s = "No packet was dropped, but " + j.abandonedPhrase()
	case j.s.OnlyStrangers():
		s = "No packet was dropped; " + j.strangers()
	case j.s.OnlyUnanswered():
		s = "No packet was dropped; " + j.unansweredPhrase()
	case j.s.Unacknowledged():
		s = phrase.Capital(words.Unacknowledged(j.s))
	case j.s.Unheard() > 0:
		s = phrase.Capital(words.Unheard(j.s))
	case j.s.TLSFails():
		s = phrase.Capital(words.TLSEnded(j.s))
	case j.s.Forgotten():
		s = phrase.Capital(words.Forgotten(j.s))
	case j.s.RequestsStand():
		s = words.UnreadFor(j.s)
	case j.seenOnce():
		s = "Nothing is lost so far; some wait, and one reading does not show whether that lasts"
	case j.s.PausedMost() && reading.InHand(j.s.Now) > 0:
		s = "Nothing is lost; " + words.Pause(j.s)
	case j.s.Both(j.s.QueueStands):
		s = "Nothing is lost; " + words.Queue(j.s)
		if j.s.NothingAccepted() > 0 {
			s += ", and " + words.NothingAccepted(j.s)
		}
		if reading.ConnectionLimit(j.s.Now) == reading.LimitUnknown && !j.s.HoldsNobody() {
			s += ", and why is unknown while maxConnections is not known"
		}
	case allTaken(j.s.Now):
		s = "Nothing is lost, but all connections are taken, and the next client waits"
	case j.s.Now.Losses == nil:
		s = "Nothing is held up at this moment"
	case reading.WaitingRequests(j.s.Now) > 0:
		s = "Nothing is lost"
		if _, known := reading.MaxThreads(j.s.Now); reading.NotObservable(j.s.Now) || !known && !reading.VirtualThreads(j.s.Now) {
			s += "; at least " + words.Waiting(j.s)
		}
	case j.noneAnswered() != "":
		s = j.noneAnswered()
	case j.onlyFollowed() != "":
		s = j.onlyFollowed()
	case reading.NotObservable(j.s.Now):
		s = "Nothing is lost; whether requests wait for a thread cannot be seen"
	case reading.Phase(j.s.Now, model.Unclassified) > 0, reading.IsTomcat(j.s.Now) && !poolKnown(j.s.Now) && reading.Phase(j.s.Now, model.InService) > 0:
		s = "Nothing is lost and nothing is seen to wait"
	case !reading.IsTomcat(j.s.Now) && !poolKnown(j.s.Now) && reading.Phase(j.s.Now, model.InService) > 0:
		s = "Nothing is lost; whether requests wait inside " + reading.ServerName(j.s.Now) + " is unknown, as its limits are not known"
	}
	return s, j.okNumbers()
}

// strangers are those that do not get in, with those that left without an answer.
func (j *judge) strangers() string {
	if j.s.SomeUnanswered() {
		return words.Strangers(j.s) + "; " + j.unansweredPhrase()
	}
	return words.Strangers(j.s)
}

func (j *judge) unansweredPhrase() string {
	n, ended := j.s.Unanswered()
	return j.atLeast() + phrase.Sprintf("%d of %s left without an answer", n, phrase.Count(ended, "client"))
}

// atLeast qualifies the unanswered where it is not known who had an answer.
func (j *judge) atLeast() string {
	if c := j.s.Clients(); c == nil || c.Answers.Known {
		return ""
	}
	return "at least "
}

// allTaken: the next client waits in the accept queue.
func allTaken(l *model.Listener) bool {
	n, seen := reading.SlotsInUse(l)
	return seen && reading.ConnectionLimit(l) == reading.LimitKnown && l.Connector.MaxConnections.Value > 0 && n >= l.Connector.MaxConnections.Value
}

// noneAnswered says that nobody has had an answer, where that is known of some.
func (j *judge) noneAnswered() string {
	n, followed := j.s.NoneAnswered()
	if n == 0 || followed < time.Second {
		return ""
	}
	return phrase.Sprintf("Nothing is lost so far; none of %s of the last %s has had an answer yet", phrase.Count(n, "client"), phrase.Seconds(followed))
}

// onlyFollowed says of whom it is known that nothing is lost, where that is not everybody.
func (j *judge) onlyFollowed() string {
	n, oldest, followed := j.s.CameBefore()
	if n == 0 {
		return ""
	}
	return phrase.Sprintf("Nothing is lost of what came%s; %s for at least %s", words.Within(followed), inService(n), phrase.Seconds(oldest))
}

func inService(n int) string {
	if n == 1 {
		return "a request has been in service"
	}
	return phrase.Sprintf("the oldest of %d requests has been in service", n)
}

// okNumbers are the numbers of a listener without trouble; what and why both say them.
func (j *judge) okNumbers() string {
	if j.numbers == "" {
		j.numbers = j.countNumbers()
	}
	return j.numbers
}

func (j *judge) countNumbers() string {
	var parts []string
	if most, ok := reading.MaxThreads(j.s.Now); ok && !j.s.Now.Connector.MaxThreads.Uncertain {
		if busy, seen := reading.BusyThreads(j.s.Now); seen {
			parts = append(parts, phrase.Sprintf("%d of %d threads busy", busy, most))
		}
	}
	if n, ok := reading.SlotsInUse(j.s.Now); ok {
		s := phrase.Count(n, "connection")
		if reading.ConnectionLimit(j.s.Now) == reading.LimitKnown && !reading.UncertainLimit(j.s.Now) {
			s = phrase.Sprintf("%d of %d connections", n, j.s.Now.Connector.MaxConnections.Value)
		}
		if idle := reading.Phase(j.s.Now, model.Idle); idle > 0 {
			s += phrase.Sprintf(" (%d idle)", idle)
		}
		parts = append(parts, s)
	}
	if q := j.s.Now.AcceptQueue; q != nil {
		parts = append(parts, phrase.Sprintf("%d of %d in the accept queue", min(q.Length, q.Capacity()), q.Capacity())+words.Probes(q))
	}
	s := strings.Join(parts, ", ")
	if j.s.Clamped() {
		n, _ := reading.AcceptCount(j.s.Now)
		s += phrase.Sprintf("; but of acceptCount %d only %d is in force", n, j.s.Now.AcceptQueue.Limit)
	}
	return s
}

// poolKnown: how many threads there are for requests is known, and nothing unread may say otherwise. Where
// it is not they may be virtual, and a request that was read may wait for a carrier thread.
func poolKnown(l *model.Listener) bool {
	_, known := reading.MaxThreads(l)
	return known && !l.Connector.MaxThreads.Uncertain
}

// summaryWaits says what the threads wait for.
func (j *judge) summaryWaits() string {
	most, _ := reading.MaxThreads(j.s.Now)
	outside := "the accept queue is empty"
	if reading.Queued(j.s.Now) > 0 {
		outside = words.Queue(j.s)
	}
	if j.s.Waits.Virtual {
		return phrase.Sprintf("%s %s in service on virtual threads: ", phrase.Count(j.s.Waits.Busy, "request"), phrase.Verb(j.s.Waits.Busy, "is", "are")) +
			words.Wait(j.s) + "; " + outside + j.lostYet(" and ") + "."
	}
	busy := phrase.Sprintf("%d of %d threads are busy", j.s.Waits.Busy, most)
	if j.s.Waits.Busy == most {
		busy = phrase.Capital(words.AllThreads(most)) + " busy"
	}
	n := reading.WaitingRequests(j.s.Now)
	requests := words.AtLeast(j.s.Now) + phrase.Count(n, "request") + " " + phrase.Verb(n, "waits", "wait") + " for a thread"
	return busy + ": " + words.Wait(j.s) + "; " + requests + ", " + outside + j.lostYet(" and ") + "."
}
