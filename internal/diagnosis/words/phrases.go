// Package words says in sentences what the symptoms are: facts with their numbers, that
// causes, findings and the summary share.
package words

import (
	"strings"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Pause says for how long the process did not run.
func Pause(s *symptoms.Symptoms) string {
	switch {
	case reading.Stopped(s.Now) && s.Now.Process.Dumping:
		return "the process has crashed, and its core dump is being written"
	case reading.Stopped(s.Now) && s.Now.Process.Frozen:
		return "the process is frozen with its cgroup"
	case reading.Stopped(s.Now) && !s.Now.Process.Stopped:
		return StoppedWorkers(s)
	case reading.Stopped(s.Now):
		return "the process is stopped (state T)"
	case s.Either(reading.Stopped):
		return "the process was stopped (state T)"
	}
	if Memory(s) != "" {
		return stoodFor(s) + Memory(s)
	}
	if s.Paused() && s.PausedOtherwise() {
		return stoodFor(s) + ", for the greater part not for collections"
	}
	return stoodFor(s) + Heap(s)
}

// StoppedWorkers says how many worker processes do not run, and never that all do not where there may be more.
func StoppedWorkers(s *symptoms.Symptoms) string {
	n, of := reading.StoppedWorkers(s.Now)
	name, first, more := reading.ServerName(s.Now), s.Now.Process.StoppedChild, reading.MoreWorkers(s.Now)
	all := phrase.Sprintf("the %d worker processes", of)
	if more {
		all = phrase.Sprintf("at least %d worker %s", of, phrase.Verb(of, "process", "processes"))
	}
	switch {
	case of == 1 && !more:
		return phrase.Sprintf("the worker process of %s, %v, is stopped (state T)", name, first)
	case n == of && !more:
		return phrase.Sprintf("all %d worker processes of %s are stopped (state T), the first is %v", n, name, first)
	case n == 1:
		return phrase.Sprintf("one of %s of %s, %v, is stopped (state T)", all, name, first)
	}
	return phrase.Sprintf("%d of %s of %s are stopped (state T), the first is %v", n, all, name, first)
}

func stoodFor(s *symptoms.Symptoms) string {
	switch d := s.Pause(); {
	case !s.Paused():
		return "the JVM stood still"
	case s.Now.Process.InSafepoint != nil && *s.Now.Process.InSafepoint >= d/2:
		return phrase.Sprintf("the JVM has stood still for %s (a safepoint)", phrase.Seconds(d))
	case d > s.Between():
		return phrase.Sprintf("the JVM stood still for %s (safepoints)", phrase.Seconds(d))
	default:
		return phrase.Sprintf("the JVM stood still for %s of the last %s (safepoints, %s of the time)", phrase.Seconds(d), phrase.Seconds(s.Between()), phrase.Percent(d.Seconds()/s.Between().Seconds()))
	}
}

// Heap says that the heap is too small for what stays in it.
func Heap(s *symptoms.Symptoms) string {
	full, ok := reading.HeapFull(s.Now)
	if !ok {
		return ""
	}
	p := s.Now.Process
	return phrase.Sprintf("; the heap's old generation is %s full (%d of %d MiB)", phrase.Percent(full), *p.OldUsed>>20, *p.OldMax>>20)
}

// Memory says that the process has nearly all the memory that there is for it.
func Memory(s *symptoms.Symptoms) string {
	used, limit, ok := reading.MemoryFull(s.Now)
	if !ok {
		return ""
	}
	return phrase.Sprintf("; the process has %d of the %d MiB of memory that its cgroup may use", used>>20, limit>>20)
}

// CPU says how much of the CPU the process lacked.
func CPU(s *symptoms.Symptoms, c model.Cause) string {
	if c == model.CauseCPUThrottled {
		if t := s.Throttling(); t.Fraction() >= s.T.ThrottledFraction {
			return t.String()
		}
		return "the CPU limit throttled the process"
	}
	if n := s.Fraction(reading.RunDelay); n >= s.T.RunDelay {
		return phrase.Sprintf("on average %s of the process's threads waited for a CPU", phrase.Decimal(n))
	}
	return "the process's threads waited for a CPU"
}

// LocalClients says how many clients of the same network namespace fail, as their sockets show it; "" for none.
func LocalClients(s *symptoms.Symptoms) string {
	trying, refused := s.LocalTrying(), s.LocalRefused()
	switch {
	case refused == 0 && trying == 0:
		return ""
	case refused == 0:
		return phrase.Sprintf("%s %s still trying to connect", phrase.Count(trying, "local client"), phrase.Verb(trying, "is", "are"))
	}
	who := phrase.Capital(RefusedAtLeast(s)) + phrase.Count(refused, "local client") + " were refused" + InInterval(s)
	if trying > 0 {
		who += phrase.Sprintf(", %d %s still trying", trying, phrase.Verb(trying, "is", "are"))
	}
	return who
}

// Strangers says how many clients did not get in, and where they asked, beside those that do; "" for none.
func Strangers(s *symptoms.Symptoms) string {
	refused, lost, reset := s.Strangers()
	var parts []string
	if refused > 0 {
		what := phrase.Sprintf("%s %s refused", phrase.Count(refused, "client"), phrase.Verb(refused, "was", "were"))
		if c := s.Clients(); c != nil && c.RefusedAt.IsValid() {
			what += ", the latest at " + c.RefusedAt.String()
		}
		parts = append(parts, what)
	}
	if lost > 0 {
		parts = append(parts, phrase.Sprintf("the SYNs of %s had no answer", phrase.Count(lost, "client")))
	}
	if reset > 0 {
		parts = append(parts, phrase.Sprintf("%s reset %s after %s had connected", reading.ServerName(s.Now), phrase.Count(reset, "client"), phrase.Verb(reset, "it", "they")))
	}
	if len(parts) == 0 {
		return ""
	}
	beside := "nobody has been let in yet"
	if reset > 0 {
		beside = "nobody else was let in meanwhile"
	} else if s.OthersGetIn() {
		beside = "others have been let in before"
	}
	if n := s.LetInLately(); n > reset {
		n -= reset // who were let in, too
		beside = phrase.Sprintf("%s %s let in", phrase.Count(n, "other"), phrase.Verb(n, "was", "were"))
	} else if n := s.Open(); n > 0 {
		beside = phrase.Sprintf("%s %s held", phrase.Count(n, "connection"), phrase.Verb(n, "is", "are"))
	}
	return strings.Join(parts, "; ") + "; " + beside
}

// RefusedAtLeast qualifies the number of the refused, where the kernel has not reported all.
func RefusedAtLeast(s *symptoms.Symptoms) string {
	if s.LocalRefused() > 0 && s.Delta[model.RefusedMissed] > 0 {
		return "at least "
	}
	return ""
}

// InInterval is the time of what was lost, as the end of a clause.
func InInterval(s *symptoms.Symptoms) string { return Within(s.Interval) }

// Within is a time, as the end of a clause: " in the last 5 s".
func Within(d time.Duration) string {
	switch {
	case d <= 0:
		return ""
	case d == time.Second:
		return " in the last second"
	}
	return " in the last " + phrase.Seconds(d)
}

// Queue says what waits outside.
func Queue(s *symptoms.Symptoms) string {
	q := s.Now.AcceptQueue
	if q == nil {
		return "connections wait in the accept queue"
	}
	if q.Full() {
		return phrase.Sprintf("the accept queue is full (%d of %[1]d)", q.Capacity())
	}
	return phrase.Sprintf("%s %s in the accept queue (capacity %d)", phrase.Count(q.Length, "connection"), phrase.Verb(q.Length, "waits", "wait"), q.Capacity())
}

// NothingAccepted is for how long nobody has been taken out of the accept queue.
func NothingAccepted(s *symptoms.Symptoms) string {
	return "nothing has been accepted for at least " + phrase.Seconds(s.NothingAccepted())
}

// Threads says what waits inside. Where the phases are not known it
// claims no more than the thread names and the unread bytes show.
func Threads(s *symptoms.Symptoms) string {
	most, _ := reading.MaxThreads(s.Now)
	waiting := reading.WaitingRequests(s.Now)
	if waiting == 0 && reading.AcceptsWithWorkers(s.Now) {
		return BusyThreads(s) + " and none is left to accept (NIO2 has no other thread for that)"
	}
	thread := "one"
	if busy, _ := reading.BusyThreads(s.Now); most == 1 && busy == 1 { // the only one
		thread = "it"
	}
	return BusyThreads(s) + " and " + AtLeast(s.Now) + phrase.Count(waiting, "request") + " " + phrase.Verb(waiting, "waits", "wait") +
		" inside " + reading.ServerName(s.Now) + " for " + thread + GivenUp(s.Now)
}

// BusyThreads is the same without the requests that wait.
func BusyThreads(s *symptoms.Symptoms) string {
	most, _ := reading.MaxThreads(s.Now)
	busy, seen := reading.BusyThreads(s.Now)
	switch {
	case most == 1 && busy == 1:
	case !seen || float64(busy) < s.T.ThreadsBusy*float64(most):
		return "the pool is at its maximum of " + phrase.Count(most, "thread")
	case busy < most:
		return phrase.Sprintf("%d of %d threads are busy", busy, most)
	}
	return AllThreads(most) + " busy"
}

// Stage says how far a stage is used, and when it will be full.
func Stage(s *symptoms.Symptoms, c model.Cause) string {
	l, _ := reading.LimitNamed(s.Limits, string(c))
	used := map[model.Cause]string{
		model.CauseOpenFiles:      "open files are in use",
		model.CauseEphemeralPorts: "local ports are in use",
		model.CauseMaxThreads:     "threads are busy",
		model.CauseMaxConnections: "connections are taken",
	}[c]
	text := phrase.Sprintf("%d of %d %s (%s)", l.Used, l.Max, used, phrase.Percent(l.Ratio))
	if c == model.CauseMaxThreads && reading.Hidden(s.Now) {
		text += "; whether requests wait for one cannot be seen (" + WhyHidden(s.Now.Connector) + ")"
	}
	if c == model.CauseEphemeralPorts && s.Now.Process.Busiest.Address.IsValid() {
		text = phrase.Sprintf("%d of %d local ports are in use towards %s (%s)", l.Used, l.Max, s.Now.Process.Busiest.Address, phrase.Percent(l.Ratio)) + TimeWait(s)
	}
	if l.FullIn != nil {
		in := "about " + phrase.Seconds(*l.FullIn)
		if *l.FullIn < time.Second {
			in = "less than a second"
		}
		text += "; at this rate the limit is reached in " + in
	}
	return text + stageAside(s, c)
}

// Unacknowledged says how many clients nothing comes back from.
func Unacknowledged(s *symptoms.Symptoms) string {
	n := reading.Unacknowledged(s.Now)
	return phrase.Sprintf("%d of %s %s no sign of their clients: what was sent is repeated, and nothing acknowledges it", n, phrase.Count(s.Now.Connections.Accepted, "connection"), phrase.Verb(n, "has", "have"))
}

// LeftInside says how many clients did not wait for their answers.
func LeftInside(s *symptoms.Symptoms) string {
	return phrase.Sprintf("%s closed their connections while the server still had their requests, the first %s ago", phrase.Count(reading.Left(s.Now), "client"), phrase.Seconds(s.Now.Connections.LeftFor))
}

// Lossy says that packets are lost on their way, of whom, and how many.
func Lossy(s *symptoms.Symptoms) string {
	return "packets are lost between clients and this server: " + Struggled(s) + "; " + Repeated(s)
}

// Struggled says how many clients needed packets again, to connect or afterwards.
func Struggled(s *symptoms.Symptoms) string {
	n, of := s.Struggled()
	if k := reading.Repeating(s.Now); k > 0 && !s.StruggledMany() {
		return phrase.Sprintf("on %d of %s segments were sent again", k, phrase.Count(s.Now.Connections.Accepted, "connection"))
	}
	return phrase.Sprintf("%d of %s connected only with repeated packets, or not yet", n, phrase.Count(of, "client"))
}

// Repeated says how many segments were sent again.
func Repeated(s *symptoms.Symptoms) string {
	again, others := s.Repeated()
	return phrase.Sprintf("%s of the segments on open connections were sent again (%d beside %d)", phrase.Percent(s.RepeatedShare()), again, others)
}

// Unheard says of how many clients something in front of their sockets takes what they send.
func Unheard(s *symptoms.Symptoms) string {
	return phrase.Sprintf("what %s sent on open connections was dropped or rejected in front of their sockets", phrase.Count(s.Unheard(), "client"))
}

// Forgotten says how many connections are no longer known in between, it seems.
func Forgotten(s *symptoms.Symptoms) string {
	return phrase.Sprintf("something in between seems to have forgotten %s: nothing acknowledges their end, others of their addresses answer", phrase.Count(reading.Forgotten(s.Now), "connection"))
}

// TimeWait says how many of the ports are in TIME_WAIT, where they are most of
// them, and what is not known of these.
func TimeWait(s *symptoms.Symptoms) string {
	d := s.Now.Process.Busiest
	n := d.TimeWait - d.Reusable
	switch {
	case d.Unowned:
		return ", all in TIME_WAIT, so that which process used them cannot be seen; a connection there for which none is left fails with EADDRNOTAVAIL"
	case 2*n < d.Taken():
		return ""
	}
	return phrase.Sprintf(", %d of them in TIME_WAIT", n)
}

// WhyHidden is why requests cannot be seen on the connections.
func WhyHidden(c *model.Connector) string {
	if c.TLS {
		return "the connections are encrypted"
	}
	return "HTTP/2 carries many requests on one connection"
}

func stageAside(s *symptoms.Symptoms, c model.Cause) string {
	switch c {
	case model.CauseMaxThreads:
		if n := reading.WaitingRequests(s.Now); n > 0 {
			return phrase.Sprintf("; %s %s for one", phrase.Count(n, "request"), phrase.Verb(n, "waits", "wait"))
		}
	case model.CauseMaxConnections:
		if reading.QueueWaits(s.Now) {
			return "; " + Queue(s)
		}
	case model.CauseOpenFiles:
		if conn, ok := reading.LimitNamed(s.Limits, reading.StageMaxConnections); ok && s.FilesFirst() {
			return phrase.Sprintf("; they run out before maxConnections (%d of %d)", conn.Used, conn.Max)
		}
	}
	return ""
}

// AtLeast qualifies a number: of hidden connections the encrypted or multiplexed requests that were
// read off the socket wait invisibly.
func AtLeast(l *model.Listener) string {
	if reading.Hidden(l) {
		return "at least "
	}
	return ""
}

// Waiting says how many requests nobody has read.
func Waiting(s *symptoms.Symptoms) string {
	n := reading.WaitingRequests(s.Now)
	return phrase.Count(n, "request") + " " + phrase.Verb(n, "waits", "wait") + " to be read"
}

// GivenUp says of how many requests that wait the clients are there no more, where these are most of them.
func GivenUp(l *model.Listener) string {
	n := reading.GivenUp(l)
	switch n {
	case 0:
		return ""
	case reading.WaitingRequests(l):
		return " (all their clients have given up)"
	}
	return phrase.Sprintf(" (the clients of %d have given up)", n)
}

// UnreadFor says that requests wait to be read, and whether anything is known to be lost.
func UnreadFor(s *symptoms.Symptoms) string {
	wait := "at least " + Waiting(s) + ", the first for over " + phrase.Seconds(s.Now.Connections.Unread) + "; why is unknown"
	if s.Now.Losses == nil {
		return phrase.Capital(wait)
	}
	return "Nothing is lost; " + wait
}

// Starved says who waits for a process that does not run, or hardly does.
func Starved(s *symptoms.Symptoms) string {
	if reading.Queued(s.Now) > 0 {
		return Queue(s)
	}
	n := reading.WaitingRequests(s.Now)
	if s.Halted() || n == 0 {
		n = reading.InHand(s.Now)
		return phrase.Count(n, "request") + " " + phrase.Verb(n, "waits", "wait") + " for an answer"
	}
	return Waiting(s)
}

// OrMore is for what withoutRoom says where handshakes are followed for no longer than
// the interval: clients that came before, and still try, are not among them.
func OrMore(s *symptoms.Symptoms, clients uint64) string {
	text := phrase.Count(clients, "client")
	if s.Losses().Clients.Observed < s.Interval {
		text += " or more"
	}
	return text
}

// AllThreads says that n of n are taken: "the only thread is", "all 200 threads are".
func AllThreads(n int) string {
	if n == 1 {
		return "the only thread is"
	}
	return "all " + phrase.Count(n, "thread") + " are"
}

// AddressMissing says that no packet comes to the listener's address.
func AddressMissing(s *symptoms.Symptoms) string {
	return phrase.Sprintf("no interface and no local route of this network namespace has %v, the address that it listens on", s.Now.ID.Address.Addr())
}

// ResetInAnswer says how many clients were reset before they had their answer.
func ResetInAnswer(s *symptoms.Symptoms) string {
	n := s.ResetInAnswer()
	text := phrase.Sprintf("%s reset %s before %s acknowledged all that it had sent, and sends nothing of it again", reading.ServerName(s.Now), phrase.Count(n, "client"), phrase.Verb(n, "it had", "they had"))
	if d := s.Delta["TCPAbortOnData"]; d > 0 {
		text += phrase.Sprintf("; %s %s aborted (TCPAbortOnData: SO_LINGER 0, or data that came after the close)", phrase.Count(d, "connection"), phrase.Verb(d, "was", "were"))
	}
	return text
}

// Alerted says how many clients' TLS handshakes have failed.
func Alerted(s *symptoms.Symptoms) string {
	return phrase.Sprintf("%s answered %s with 7 bytes, the length of a TLS alert, and ended the connection: the TLS handshake of these clients fails", reading.ServerName(s.Now), someOf(s.Alerted()))
}

// TLSEnded says how many clients ended their TLS handshake themselves.
func TLSEnded(s *symptoms.Symptoms) string {
	n, of := s.TLSEnded()
	if s.OnPlainPort() {
		return phrase.Sprintf("%s asked for TLS on a port without it, and ended the connection when %s answered", someOf(n, of), reading.ServerName(s.Now))
	}
	return phrase.Sprintf("%s ended the TLS handshake when they had the server's answer, as clients do that do not trust its certificate", someOf(n, of))
}

func someOf(n, of uint64) string {
	if of > n {
		return phrase.Number(n) + " of " + phrase.Count(of, "client")
	}
	return phrase.Count(n, "client")
}

// DrainingFact says who has closed its listener and still has its connections.
func DrainingFact(s *symptoms.Symptoms) string {
	o := s.Now.Draining
	if o == nil {
		return ""
	}
	return phrase.Sprintf("%s %v still has %s that came through it, as in a graceful shutdown", o.Comm, o.PID, phrase.Count(o.Connections, "connection"))
}

// ElsewhereFact says who listens on the port in another network namespace.
func ElsewhereFact(s *symptoms.Symptoms) string {
	if s.Now.Elsewhere == nil {
		return ""
	}
	fact := phrase.Sprintf("%s listens on %v in another network namespace", s.Now.Elsewhere.Who(), s.Now.Port)
	if n := s.Now.Elsewhere.Others; n > 0 {
		fact += phrase.Sprintf(", and somebody in %d more", n)
	}
	return fact
}

// UnreadPhrase says how many requests nobody reads.
func UnreadPhrase(s *symptoms.Symptoms) string {
	if s.Now.Connections == nil || s.Now.Connections.Unread == 0 {
		return ""
	}
	return Waiting(s) + ", the first for at least " + phrase.Seconds(s.Now.Connections.Unread)
}
