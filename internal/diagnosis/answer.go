package diagnosis

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// answer is the verdict in the four parts that a person reads first.
func (j *judge) answer(v model.Verdict) model.Answer {
	do, not := j.steps(v)
	why := j.why(v)
	if v.Status == model.StatusSaturated && reading.WaitingRequests(j.s.Now) > 0 { // who waits has been said
		why = strings.Replace(why, strings.TrimPrefix(words.Threads(j.s), words.BusyThreads(j.s)), "", 1)
	}
	return model.Answer{What: j.what(v), Why: why, Do: do[:min(len(do), model.MaxSteps)], Not: not}
}

// Effects adds to the steps of an answer what each would do, as predict says of those
// that change a limit: "" where it does not know. The verdict given is not changed.
func Effects(v model.Verdict, predict func(i int, s model.Step) string) model.Verdict {
	do := make([]model.Step, len(v.Answer.Do))
	for i, s := range v.Answer.Do {
		if do[i] = s; s.Limit != "" {
			do[i].Effect = predict(i, s)
		}
	}
	if len(do) > 0 {
		v.Answer.Do = do
	}
	return v
}

// what happens to clients.
func (j *judge) what(v model.Verdict) string {
	switch v.Status {
	case model.StatusDown:
		return phrase.Sentences(j.queueResetsPhrase(), phrase.Sprintf("Clients that connect to port %v are refused.", j.s.Now.Port))
	case model.StatusLosing:
		if who := j.localClients(v); who != "" {
			return who + "."
		}
		lost := j.s.Losses()
		return whatIsLost(&lost, j.s.ResetInQueue(), j.s.Interval)
	case model.StatusSaturated, model.StatusWarning:
		if j.s.OnlyElsewhere() {
			return phrase.Sprintf("Nobody can connect to port %v in this network namespace.", j.s.Now.Port)
		}
		if j.s.Unheard() > 0 && j.onlyStands(v) && j.whoWaits() == "" {
			return phrase.Sprintf("What at least %s sent came to this host, and not to the server.", phrase.Count(j.s.Unheard(), "client"))
		}
		if n, _ := j.s.TLSEnded(); n > 0 && j.onlyStands(v) && j.whoWaits() == "" {
			return phrase.Sprintf("The TLS handshake of at least %s failed.", phrase.Count(n, "client"))
		}
		if j.s.LeftInside() && j.onlyStands(v) && j.whoWaits() == "" {
			return phrase.Sprintf("At least %s left before the end of their answers.", phrase.Count(reading.Left(j.s.Now), "client"))
		}
		if j.s.OnlyStrangers() && j.onlyStands(v) && !j.standsOtherwise() && j.whoWaits() == "" {
			return phrase.Capital(j.strangers()) + "."
		}
		if j.s.SomeUnanswered() && j.onlyStands(v) && !j.standsOtherwise() && j.whoWaits() == "" {
			return phrase.Capital(j.unansweredPhrase()) + "."
		}
		if j.s.Forgotten() && j.onlyStands(v) && j.whoWaits() == "" {
			return "Requests on connections that were idle may be lost on their way: they do not reach this host."
		}
		if j.s.CutOff() && j.onlyStands(v) {
			state, _ := j.okState()
			return state + "."
		}
		if v.Cause == model.CauseLossyNetwork && j.whoWaits() == "" {
			return phrase.Capital(words.Struggled(j.s)) + "."
		}
		if v.Cause == model.CauseServerResets && j.s.Now.Losses != nil && j.whoWaits() == "" { // their clients do lose something
			how := "connections were reset"
			if j.s.OnlyAlerted() {
				how = "TLS handshakes failed"
			} else if j.s.ClosesUnanswered() {
				how = "connections were ended without an answer"
			}
			return strings.TrimSuffix(j.notLost(), ".") + "; " + how + "."
		}
		return cmp.Or(j.waits(v.Status), "Nobody is seen to be turned away.")
	}
	if !j.s.Now.Listening() {
		return j.summaryOK()
	}
	state, _ := j.okState()
	return state + "."
}

func (j *judge) queueResetsPhrase() string {
	n := j.s.ResetInQueue()
	if n == 0 {
		return ""
	}
	return phrase.Sprintf("%s that waited in the accept queue %s reset.", phrase.Count(n, "client"), phrase.Verb(n, "was", "were"))
}

// waits says who does, and that nothing is lost.
func (j *judge) waits(s model.Status) string {
	who, lost := j.whoWaits(), j.notLost()
	if rest, ok := strings.CutPrefix(lost, "No packet"); ok && who == "" && s == model.StatusWarning {
		return "Nothing is lost yet: no packet" + rest
	}
	return phrase.Sentences(who, lost)
}

// whoWaits are those in front of a stage.
func (j *judge) whoWaits() string {
	var parts []string
	if n := reading.ClientsQueued(j.s.Now); n > 0 {
		wait := phrase.Sprintf("%s %s to be let in", phrase.Count(n, "client"), phrase.Verb(n, "waits", "wait"))
		if reading.WaitsLong(j.s.Now) {
			wait += ", the first for " + phrase.Seconds(*reading.OldestWait(j.s.Now))
		}
		parts = append(parts, wait)
	}
	if n := reading.WaitingRequests(j.s.Now); n > 0 {
		parts = append(parts, words.AtLeast(j.s.Now)+phrase.Sprintf("%s %s", phrase.Count(n, "request"), phrase.Verb(n, "waits and no thread has begun to read it", "wait and no thread has begun to read them"))+words.GivenUp(j.s.Now))
	}
	if len(parts) == 0 && (j.s.Halted() || j.s.InLongSafepoint() || j.s.WorkerStands() && reading.StillAccepts(j.s.Now) && reading.InHand(j.s.Now) > 0) {
		parts = append(parts, phrase.Sprintf("%s %s for an answer", phrase.Count(reading.InHand(j.s.Now), "request"), phrase.Verb(reading.InHand(j.s.Now), "waits", "wait")))
	}
	if len(parts) == 0 {
		return ""
	}
	return phrase.Capital(strings.Join(parts, "; ")) + "."
}

// notLost says that nobody was turned away, if losses were looked for. A client that
// gave up has lost something all the same.
func (j *judge) notLost() string {
	switch {
	case j.s.Now.Losses == nil:
		return ""
	case j.s.Losses().AbandonedRequests > 0:
		return phrase.Capital(j.abandonedPhrase()) + "."
	}
	return "No packet was dropped" + words.InInterval(j.s) + "."
}

// why is the chain from what clients meet to its root.
func (j *judge) why(v model.Verdict) string {
	switch {
	case v.Status == model.StatusOK && j.s.Now.Listening():
		_, numbers := j.okState()
		return phrase.Capital(numbers) + "."
	case j.s.OnlyElsewhere():
		return phrase.Sprintf("Nothing listens on it here; %s.", words.ElsewhereFact(j.s))
	case j.onlyStands(v):
		return j.whyStands()
	case v.Status == model.StatusWarning && v.Cause == model.CauseLossyNetwork:
		return phrase.Sprintf("Packets are lost between clients and this server; %s, where below 1 %% is usual.", words.Repeated(j.s))
	case v.Status <= model.StatusWarning:
		return notLostSaid(v.Summary)
	case v.Status == model.StatusDown || v.Cause == model.CauseListenerClosed:
		return j.whyClosed(v.Cause)
	}
	switch v.Cause {
	case model.CauseDownstream, model.CauseConnectionPool:
		return j.whyWaits()
	case model.CauseExecutorQueue:
		return phrase.Sentences(phrase.Capital(words.Threads(j.s))+".", phrase.Capital(j.executorPhrase())+".")
	case model.CauseMaxThreads:
		return phrase.Capital(words.Threads(j.s)) + "." + j.whyInside()
	case model.CauseNone:
		if j.s.RefusedEarlier() {
			return "They came before it listened."
		}
		if j.s.FailsUnseen() {
			return "Not known: " + strings.TrimPrefix(j.okNumbers(), "; ") + "."
		}
		if j.s.FullBefore() {
			return "The accept queue was full" + j.because(v) + "."
		}
		return phrase.Capital(words.Queue(j.s)+j.because(v)) + "."
	}
	because := j.because(v)
	switch v.Cause {
	case model.CauseNotReading:
		because = words.UnreadPhrase(j.s) + because
	case model.CauseSynBacklog:
		because = "they were dropped" + because
	}
	return phrase.Capital(strings.TrimPrefix(because, " because ")) + "." + j.whyInside()
}

// whyStands is what is known of clients that no limit holds up. Who they are has been said before it.
func (j *judge) whyStands() string {
	state, numbers := j.okState()
	numbers = strings.TrimPrefix(numbers, "; ")
	switch {
	case j.s.CutOff():
		return phrase.Capital(numbers) + "."
	case j.s.OnlyStrangers() && !j.standsOtherwise():
		return phrase.Capital(droppoints.Strangers(j.s)) + ": " + numbers + "."
	case j.s.SomeUnanswered() && !j.standsOtherwise() && j.whoWaits() == "":
		return "No packet was dropped: " + numbers + "."
	case j.s.SilentPeer() != nil && reading.WaitingRequests(j.s.Now) == 0 || j.s.LeftInside() || j.s.Unacknowledged() || j.s.Forgotten() || j.s.Unheard() > 0 || j.s.TLSFails() || j.s.WorkerStands() || j.whoWaits() == "" && j.s.Losses().AbandonedRequests == 0:
		return notLostSaid(state) + ": " + numbers + "."
	}
	why := "Not known"
	if j.s.Both(j.s.QueueStands) && reading.ConnectionLimit(j.s.Now) == reading.LimitUnknown && !j.s.HoldsNobody() {
		why += " while maxConnections is not known"
	}
	why += ": " + numbers
	if j.s.NothingAccepted() > 0 {
		why += "; " + words.NothingAccepted(j.s)
	}
	if j.s.RequestsStand() {
		why += "; the first request has waited for over " + phrase.Seconds(j.s.Now.Connections.Unread)
	}
	return why + "."
}

// standsOtherwise: there is more to warn of than clients that are kept out, and it is said first.
func (j *judge) standsOtherwise() bool {
	return j.s.SilentPeer() != nil || j.s.LeftInside() || j.s.Unacknowledged() || j.s.Forgotten() || j.s.Unheard() > 0 || j.s.TLSFails() || j.s.WorkerStands() ||
		j.s.CutOff() || j.s.LongUnanswered() || j.s.Losses().AbandonedRequests > 0
}

// notLostSaid leaves out of a summary that nothing is lost, where that has been said.
func notLostSaid(summary string) string {
	for _, said := range []string{"Nothing is lost so far; ", "Nothing is lost; "} {
		if rest, ok := strings.CutPrefix(summary, said); ok {
			return phrase.Capital(rest)
		}
	}
	return summary
}

func (j *judge) whyClosed(c model.Cause) string {
	switch {
	case c == model.CauseListenerClosed && j.s.Closed != nil && j.s.Closed.Part:
		return "One of the sockets that share the address (SO_REUSEPORT) was closed, and the kernel resets whoever waits in its queue."
	case c == model.CauseListenerClosed && j.s.Now.Listening():
		return "The listener was closed and opened again, as in a restart: the kernel resets whoever waits in its queue."
	case c == model.CauseListenerClosed && j.s.Now.Draining != nil:
		return phrase.Sprintf("The listener was closed, and %s: the kernel resets whoever waits in its queue.", words.DrainingFact(j.s))
	case c == model.CauseListenerClosed:
		return "The listener was closed, as in a stop or a crash: the kernel resets whoever waits in its queue."
	}
	if fact := words.DrainingFact(j.s); fact != "" {
		return phrase.Sprintf("The listener on port %v is closed, and %s.", j.s.Now.Port, fact)
	}
	last := j.s.Now.Last
	if last == nil {
		return phrase.Sprintf("Nothing listens on port %v.", j.s.Now.Port)
	}
	who := "a listener"
	if last.PID != 0 {
		who = last.Comm + " " + strconv.Itoa(last.PID)
	}
	if last.Pod != nil {
		who += " of " + last.Pod.String()
	}
	return phrase.Sprintf("Nothing has listened on port %v since %s. Before, %s did, on %s.",
		j.s.Now.Port, last.Seen.UTC().Format("15:04:05 MST"), who, last.Address)
}

// whyInside continues with what the used up threads wait for in the process itself.
func (j *judge) whyInside() string {
	if n := j.s.InCalls(); n > 0 {
		return phrase.Sprintf(" %d of the threads %s.", n, words.BlockedIn(reading.DownstreamOf(j.s.Now).Workers, n))
	}
	if n, sends := j.s.ForClients(); n > 0 {
		return phrase.Sprintf(" %d of the threads %s.", n, words.ForClients(n, sends))
	}
	n := j.s.Inside()
	if n == 0 {
		return ""
	}
	return phrase.Sprintf(" %d of the threads %s for %s.", n, phrase.Verb(n, "waits", "wait"), words.Inside(j.s.Now))
}

func (j *judge) whyWaits() string {
	if j.s.Waits.Virtual {
		return phrase.Sprintf("%s %s in service on virtual threads: %s.", phrase.Count(j.s.Waits.Busy, "request"), phrase.Verb(j.s.Waits.Busy, "is", "are"), words.Wait(j.s))
	}
	most, _ := reading.MaxThreads(j.s.Now)
	busy := phrase.Sprintf("%d of %d threads are busy", j.s.Waits.Busy, most)
	if j.s.Waits.Busy == most {
		busy = phrase.Capital(words.AllThreads(most)) + " busy"
	}
	return busy + ": " + words.Wait(j.s) + "."
}
