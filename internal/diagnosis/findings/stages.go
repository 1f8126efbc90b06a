package findings

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// OfStages are facts about the stages other than the cause.
func OfStages(s *symptoms.Symptoms, v model.Verdict, advice func(model.Cause) string) []model.Finding {
	if !s.Now.Listening() {
		return nil
	}
	var out []model.Finding
	add := func(code string, level model.Severity, evidence, advice string) {
		out = append(out, model.Finding{Code: code, Severity: level, Evidence: evidence, Advice: advice})
	}
	if s.Clamped() {
		add(string(model.CauseBacklogClamped), model.SeverityWarning, words.Join(words.ClampedNumbers(s)), causes.AdviseClamped(s))
	}
	acceptCountChanged(s, add)
	if v.Cause != model.CauseOpenFiles {
		openFilesFinding(s, add)
	}
	forecast(s, v, advice, add)
	peakFinding(s, add)
	connectionFindings(s, add)
	peerFinding(s, v, add)
	lastingQueue(s, v, add)
	limitBesideThreads(s, v, add)
	lastingRequests(s, v, add)
	blockedPoller(s, add)
	unacknowledged(s, add)
	segmentsRepeated(s, v, add)
	leftInside(s, add)
	unheard(s, add)
	tlsEnded(s, add)
	forgotten(s, add)
	notObservable(s, add)
	processFindings(s, v, add)
	threadsFinding(s, add)
	possibleWait(s, add)
	silentPeer(s, add)
	insideFinding(s, add)
	callFinding(s, add)
	carriersFinding(s, add)
	gateFinding(s, add)
	otherProcessFinding(s, add)
	deadlockFinding(s, add)
	notes(s, add)
	return out
}

type adder func(code string, s model.Severity, evidence, advice string)

// acceptCountChanged: less configured than in force can only be a change since
// the listener was opened.
func acceptCountChanged(s *symptoms.Symptoms, add adder) {
	n, ok := reading.AcceptCount(s.Now)
	q := s.Now.AcceptQueue
	if ok && q != nil && n > q.Limit && !s.Clamped() {
		add("accept_count_changed", model.SeverityInfo,
			phrase.Sprintf("Configured is acceptCount %d%s, in force is %d (Send-Q), and no usual net.core.somaxconn is that low.", n, words.SourceOf(s.Now.Connector.AcceptCount), q.Limit),
			"Look for code that sets acceptCount (a connector customizer), or for a change of the configuration after the start.")
	}
	if ok && q != nil && n < q.Limit {
		add("accept_count_changed", model.SeverityInfo,
			phrase.Sprintf("Configured is acceptCount %d%s, but the listener was opened with a backlog of %d.", n, words.SourceOf(s.Now.Connector.AcceptCount), q.Limit),
			"The setting was changed after the start, or is not the one this process was started with: the new value counts after a restart.")
	}
}

func openFilesFinding(s *symptoms.Symptoms, add adder) {
	if !s.FilesFirst() {
		return
	}
	used, most, _ := reading.OpenFiles(s.Now)
	n, _ := reading.SlotsInUse(s.Now)
	conns := s.Now.Connector.MaxConnections.Value
	to, instead := advice.FilesNeeded(s.Now, conns), ""
	if fewer := (most - (used - n)) * 9 / 10; fewer > 0 {
		instead = phrase.Sprintf(", or lower %s to %v, so that clients wait in the queue instead of accept() failing", advice.MaxConnectionsSetting().Name(s.Now), fewer)
	}
	add("open_files_below_max_connections", model.SeverityWarning,
		phrase.Sprintf("The process may open %d files, %d are open and %d of these are no connections of this listener: the files run out at about %d connections, before maxConnections (%d).",
			most, used, used-n, max(0, most-(used-n)), conns),
		phrase.Sprintf("Raise the open-files limit to %v (%s) and restart%s.", to, advice.FilesLimit(to), instead))
}

// forecast warns of what hits all of a sudden: a process out of files or ports
// fails, while clients of the other stages only begin to wait. Threads come and
// go too fast to be forecast.
func forecast(s *symptoms.Symptoms, v model.Verdict, advice func(model.Cause) string, add adder) {
	for _, l := range s.Limits {
		c := model.Cause(l.Name)
		if c != model.CauseOpenFiles && c != model.CauseEphemeralPorts || c == v.Cause || l.Ratio < .5 || !s.Fills(l.Name) {
			continue
		}
		add("forecast_"+l.Name, model.SeverityInfo, words.Join(words.Stage(s, c)), advice(c))
	}
}

// peakFinding reports a queue that was nearly full between the snapshots.
func peakFinding(s *symptoms.Symptoms, add adder) {
	q := s.Now.AcceptQueue
	if q == nil || q.Peak == nil || q.Length >= *q.Peak || float64(*q.Peak) < s.T.High*float64(q.Capacity()) {
		return
	}
	ago := ""
	if q.PeakAge > 0 {
		ago = " " + phrase.Seconds(q.PeakAge) + " ago"
	}
	add("accept_queue_peak", model.SeverityInfo,
		phrase.Sprintf("The accept queue held %d of %d connections%s, and holds %d now.", *q.Peak, q.Capacity(), ago, q.Length),
		"A burst, or a moment in which nothing was accepted: it fell between two snapshots, and only the samples show it.")
}

// connectionFindings say what is unknown about the connections.
func connectionFindings(s *symptoms.Symptoms, add adder) {
	c := s.Now.Connections
	if c == nil {
		return
	}
	if r := c.Reset; r != nil && *r > 0 {
		add("reset_connections", model.SeverityWarning,
			phrase.Sprintf("%s of the process %s no socket any more, as after a client's reset, which %s notices when it next reads or writes. So %d of %d connection slots seem to be taken without a connection. Other connections of the process, outgoing ones too, would leave the same trace.",
				phrase.Count(*r, "descriptor"), phrase.Verb(*r, "has", "have"), reading.ServerName(s.Now), *r, c.SlotsInUse()),
			"If clients give up while they are served, their slot is free again when the handler ends: shorten the handler, or let it write early. "+countOfTomcat(s.Now)+" reports how many are held.")
	}
	if s.Undercounted() && !c.Partial {
		add("connections_undercounted", model.SeverityInfo,
			phrase.Sprintf("Connections wait although only %d of %d are seen; slots held by connections that the client has reset could not be counted, so that maxConnections may be reached after all.", c.Accepted, s.Now.Connector.MaxConnections.Value),
			"Run as root or as the process's user and group, so that /proc/PID/fd can be read.")
	}
	if c.Partial {
		add("connections_partial", model.SeverityInfo,
			"The walk of the socket table was cut short every time: the connections counted are too few.",
			"Look again when fewer connections open and close, or use a longer --scan-interval.")
	}
	unclassified(s, add)
}

// countOfTomcat is where Tomcat's own count of its connections is found.
func countOfTomcat(l *model.Listener) string {
	if l.Connector != nil && l.Connector.Framework == "spring-boot" {
		return "Actuator's tomcat.connections.current"
	}
	return "JMX's connectionCount of Catalina:type=ThreadPool"
}

func unclassified(s *symptoms.Symptoms, add adder) {
	n := reading.Phase(s.Now, model.Unclassified)
	c := s.Now.Connector
	switch {
	case n == 0:
	case c != nil && (c.TLS || c.HTTP2):
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("Whether %s %s idle or in service cannot be seen from outside: %s.", phrase.Count(n, "connection"), phrase.Verb(n, "is", "are"), words.WhyHidden(c)), "")
	case reading.MostlyOutlived(s.Now):
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("%s %s quiet for longer than keepAliveTimeout lets one wait for its next request: WebSockets, or others that the application keeps open.", phrase.Count(s.Now.Connections.Outlived, "connection"), phrase.Verb(s.Now.Connections.Outlived, "has been", "have been")),
			"They hold a connection slot each and no thread. keepAliveTimeout and connectionTimeout do not end them.")
	default:
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("%s %s sent something and got no answer, but there are not as many threads: half-sent requests, WebSockets or asynchronous handlers.", phrase.Count(n, "connection"), phrase.Verb(n, "has", "have")),
			"They hold a connection slot each and no thread. If it is clients that never finish their request, connectionTimeout decides how long they may.")
	}
}

// notObservable says what "ok" leaves open on such a connector, and how to know.
func notObservable(s *symptoms.Symptoms, add adder) {
	if !reading.NotObservable(s.Now) {
		return
	}
	c := s.Now.Connector
	advice := "Ask the server by JMX: currentThreadsBusy of Catalina:type=ThreadPool."
	if c.Framework == "spring-boot" {
		advice = "Let tcpdiag ask Actuator: server.tomcat.mbeanregistry.enabled=true exposes tomcat.threads.busy, and --actuator names the address where it is not found."
	}
	add("not_observable", model.SeverityInfo,
		"How many threads are busy, and whether requests wait for one, cannot be seen from outside: "+words.WhyHidden(c)+".", advice)
}

// processFindings: a CPU, a pause or a stop in addition to another cause.
func processFindings(s *symptoms.Symptoms, v model.Verdict, add adder) {
	if s.Either(reading.Stopped) && !reading.StillAccepts(s.Now) && v.Cause != model.CauseJVMPause {
		add("process_stopped", model.SeverityWarning, phrase.Capital(words.Pause(s))+".", advice.Pause(s))
	}
	if s.Now.Process != nil && reading.WorkerStopped(s.Now) {
		what := "what it has accepted"
		if reading.StillAccepts(s.Now) {
			what = "what clients have asked of these"
		}
		add("process_stopped", model.SeverityWarning, phrase.Capital(words.StoppedWorkers(s))+": "+what+" is not answered.", advice.Pause(s))
	}
	pauses := v.Status >= model.StatusWarning && s.Paused() || s.PausedMost() && reading.InHand(s.Now) > 0
	if pauses && v.Cause != model.CauseJVMPause && !s.Either(reading.Stopped) {
		add(string(model.CauseJVMPause), model.SeverityWarning, phrase.Capital(words.Pause(s))+".", advice.Pause(s))
	}
	if v.Status >= model.StatusSaturated && v.Cause != model.CauseCPUThrottled && s.Throttling().Fraction() >= s.T.ThrottledFraction {
		add(string(model.CauseCPUThrottled), model.SeverityWarning, phrase.Capital(words.CPU(s, model.CauseCPUThrottled))+".", causes.AdviseThrottled(s))
	}
	if v.Status >= model.StatusSaturated && s.CPUShortBeside(v.Cause) {
		add(string(model.CauseCPUSaturated), model.SeverityWarning, phrase.Capital(words.CPU(s, model.CauseCPUSaturated))+".", causes.AdviseCPU)
	}
}

// threadsFinding: at the cgroup's pids.max clone(2) fails with EAGAIN, which a JVM
// reports as "unable to create native thread", and pids.events counts. Other
// processes of the cgroup count too, so the process's own threads are a lower bound.
func threadsFinding(s *symptoms.Symptoms, add adder) {
	p := s.Now.Process
	if p == nil {
		return
	}
	if n, most := p.UserThreads, p.UserThreadsLimit; n != nil && most != nil && *most-*n <= max(2, *most/20) {
		add("user_threads_limit", model.SeverityWarning,
			phrase.Sprintf("The processes of the process's user have %d threads, and it may not start another beyond %d (RLIMIT_NPROC, \"Max processes\"): it can hardly start another, whatever maxThreads is.", *n, *most),
			"Raise the limit (ulimit -u, LimitNPROC= of the unit, limits.conf), or give the server a user of its own; then restart. A thread that could not be started may be missing until then.")
	}
	const advice = "Raise the limit (--pids-limit of the container, podPidsLimit of the kubelet, TasksMax= of the unit), or lower the number of threads."
	switch n := p.PIDsRefused; {
	case n != nil && *n > 0:
		add("pids_limit", model.SeverityWarning,
			phrase.Sprintf("A new thread or process was refused in the process's cgroup %s since the process is watched (pids.events): the limit of threads and processes (pids.max) was reached.", phrase.Count(*n, "time")),
			advice+" A thread that could not be started may be missing until a restart.")
	case s.NoMoreThreads():
		add("pids_limit", model.SeverityWarning,
			phrase.Sprintf("The process has %d threads, and its cgroup may have %d threads and processes in all (pids.max): it can hardly start another, whatever maxThreads is.", *p.Threads, *p.PIDsLimit),
			advice)
	}
}

// notes pass on what reading the configuration found: ignored values and such.
func notes(s *symptoms.Symptoms, add adder) {
	c := s.Now.Connector
	if c == nil {
		return
	}
	note := func(in *model.Setting[int], name advice.Setting, code string) {
		if in != nil && in.Note != "" {
			add(code, model.SeverityInfo,
				phrase.Sprintf("%s is %d%s: %s", name.Name(s.Now), in.Value, words.SourceOf(in), in.Note), "")
		}
	}
	note(c.MaxConnections, advice.MaxConnectionsSetting(), "max_connections_note")
	note(c.AcceptCount, advice.AcceptCountSetting(), "accept_count_note")
	note(c.MaxThreads, advice.MaxThreadsSetting(), "max_threads_note")
}

// peerFinding names the one address that most connections come from, where the
// connections are what is used up: a reverse proxy's pool, or a single client, is
// then the one to size.
func peerFinding(s *symptoms.Symptoms, v model.Verdict, add adder) {
	peer := topPeer(s.Now)
	if peer == nil || v.Cause != model.CauseMaxConnections && v.Cause != model.CauseKeepAliveIdle {
		return
	}
	accepted := s.Now.Connections.Accepted
	text := phrase.Sprintf("%d of the %d connections come from %s (%s)", peer.Connections, accepted, peer.Address,
		phrase.Percent(float64(peer.Connections)/float64(accepted)))
	if peer.Connections == accepted {
		text = phrase.Sprintf("All %d connections come from %s", accepted, peer.Address)
	}
	add("one_peer", model.SeverityInfo, text+": one client, or a proxy in front of them.",
		"If it is a reverse proxy or load balancer, look at the connections it keeps open to this server (nginx: keepalive and its workers, HAProxy: maxconn and pool-max-conn): this server's limit has to be above their sum.")
}

// topPeer leaves out handfuls, of which one address is bound to have the most.
func topPeer(l *model.Listener) *model.PeerCount {
	if l.Connections == nil || l.Connections.Partial || l.Connections.Accepted < 8 {
		return nil
	}
	return l.Connections.TopPeer
}

// otherProcess is the one that holds connections of the port without listening there.
func otherProcess(l *model.Listener) *model.OtherProcess {
	if l == nil || l.Connections == nil {
		return nil
	}
	return l.Connections.Other
}

func otherProcessFinding(s *symptoms.Symptoms, add adder) {
	o := otherProcess(s.Now)
	if o == nil {
		return
	}
	if s.Now.Process != nil && s.Now.Process.Comm != o.Comm {
		add("other_process", model.SeverityInfo,
			phrase.Sprintf("%s more on this port %s to pid %v (%s), which does not listen there: its own outgoing connections from this port, or inherited ones; in none of the numbers here.",
				phrase.Count(o.Connections, "connection"), phrase.Verb(o.Connections, "belongs", "belong"), o.PID, o.Comm),
			"Nothing for this server. A port that is listened on is better left out of those that clients get (net.ipv4.ip_local_reserved_ports): at the next start it may be taken.")
		return
	}
	add("other_process", model.SeverityInfo,
		phrase.Sprintf("%s more on this port %s to pid %v (%s), which does not listen there any more, as a server does that is shutting down: in none of the numbers here.",
			phrase.Count(o.Connections, "connection"), phrase.Verb(o.Connections, "belongs", "belong"), o.PID, o.Comm),
		"Nothing, if it is meant to serve the rest of its requests. It takes none of this server's connections and threads.")
}

// possibleWait says what may be the cause, and what is missing to know it.
func possibleWait(s *symptoms.Symptoms, add adder) {
	w := &s.Waits
	if w.Cause != model.CauseNone || w.Possible == model.CauseNone {
		return
	}
	missing := "whether they are so also while nobody is served, as long polls and subscriptions are, has not been seen"
	if against := words.AgainstPool(s); against != "" {
		missing = against
	}
	if d := reading.DownstreamOf(s.Now); d.ByUser {
		missing = "whether they are this process's cannot be seen, only that they are its user's"
	}
	add("possible_"+string(w.Possible), model.SeverityInfo,
		words.Join(words.WaitNumbers(s), words.PeerNumbers(s), missing),
		phrase.Sprintf("Look at %s before raising threads: if they wait for it, more of them only wait, too. The agent learns what is in flight at rest; as root, or as the process's user, tcpdiag sees which threads wait there; --thread-dump asks the JVM.", words.WaitPeer(s)))
}
