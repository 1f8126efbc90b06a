package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// stageFindings are facts about the stages other than the cause.
func (fd finder) stageFindings(v model.Verdict) []model.Finding {
	if !fd.Now.Listening() {
		return nil
	}
	var out []model.Finding
	add := func(code string, s model.Severity, evidence, advice string) {
		out = append(out, model.Finding{Code: code, Severity: s, Evidence: evidence, Advice: advice})
	}
	if fd.clamped() {
		add(string(model.CauseBacklogClamped), model.SeverityWarning, fd.join(fd.clampedNumbers()), fd.adviseClamped())
	}
	fd.acceptCountChanged(add)
	if v.Cause != model.CauseOpenFiles {
		fd.openFilesFinding(add)
	}
	fd.forecast(v, add)
	fd.peakFinding(add)
	fd.connectionFindings(add)
	fd.peerFinding(v, add)
	fd.standingQueue(v, add)
	fd.limitBesideThreads(v, add)
	fd.standingRequests(v, add)
	fd.notObservable(add)
	fd.processFindings(v, add)
	fd.threadsFinding(add)
	fd.possibleWait(add)
	fd.insideFinding(add)
	fd.deadlockFinding(add)
	fd.notes(add)
	return out
}

type adder func(code string, s model.Severity, evidence, advice string)

// acceptCountChanged: less configured than in force can only be a change since
// the listener was opened.
func (fd finder) acceptCountChanged(add adder) {
	n, ok := acceptCount(fd.Now)
	q := fd.Now.AcceptQueue
	if ok && q != nil && n > q.Limit && !fd.clamped() {
		add("accept_count_changed", model.SeverityInfo,
			phrase.Sprintf("Configured is acceptCount %d%s, in force is %d (Send-Q), and no usual net.core.somaxconn is that low.", n, sourceOf(fd.Now.Connector.AcceptCount), q.Limit),
			"Look for code that sets acceptCount (a connector customizer), or for a change of the configuration after the start.")
	}
	if ok && q != nil && n < q.Limit {
		add("accept_count_changed", model.SeverityInfo,
			phrase.Sprintf("Configured is acceptCount %d%s, but the listener was opened with a backlog of %d.", n, sourceOf(fd.Now.Connector.AcceptCount), q.Limit),
			"The setting was changed after the start, or is not the one this process was started with: the new value counts after a restart.")
	}
}

func (fd finder) openFilesFinding(add adder) {
	if !fd.filesFirst() {
		return
	}
	used, most, _ := openFiles(fd.Now)
	n, _ := held(fd.Now)
	conns := fd.Now.Connector.MaxConnections.Value
	to, instead := filesNeeded(fd.Now, conns), ""
	if fewer := (most - (used - n)) * 9 / 10; fewer > 0 {
		instead = phrase.Sprintf(", or lower %s to %v, so that clients wait in the queue instead of accept() failing", maxConnectionsSetting().name(fd.Now), fewer)
	}
	add("open_files_below_max_connections", model.SeverityWarning,
		phrase.Sprintf("The process may open %d files, %d are open and %d of these are no connections of this listener: the files run out at about %d connections, before maxConnections (%d).",
			most, used, used-n, max(0, most-(used-n)), conns),
		phrase.Sprintf("Raise the open-files limit to %v (%s) and restart%s.", to, filesLimit(to), instead))
}

// forecast warns of what hits all of a sudden: a process out of files or ports
// fails, while clients of the other stages only begin to wait. Threads come and
// go too fast to be forecast.
func (fd finder) forecast(v model.Verdict, add adder) {
	for _, l := range fd.limits {
		c := model.Cause(l.Name)
		if c != model.CauseOpenFiles && c != model.CauseEphemeralPorts || c == v.Cause || l.Ratio < .5 || !fd.fills(l.Name) {
			continue
		}
		add("forecast_"+l.Name, model.SeverityInfo, fd.join(fd.stagePhrase(c)), fd.advice(c, v))
	}
}

// peakFinding reports a queue that was nearly full between the snapshots.
func (fd finder) peakFinding(add adder) {
	q := fd.Now.AcceptQueue
	if q == nil || q.Peak == nil || q.Length >= *q.Peak || float64(*q.Peak) < fd.t.High*float64(q.Capacity()) {
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
func (fd finder) connectionFindings(add adder) {
	c := fd.Now.Connections
	if c == nil {
		return
	}
	if r := c.Reset; r != nil && *r > 0 {
		add("reset_connections", model.SeverityWarning,
			phrase.Sprintf("%s of the process %s no socket any more, as after a client's reset, which %s notices when it next reads or writes. So %d of %d connection slots seem to be taken without a connection. Other connections of the process, outgoing ones too, would leave the same trace.",
				phrase.Count(*r, "descriptor"), phrase.Verb(*r, "has", "have"), serverName(fd.Now), *r, c.Held()),
			"If clients give up while they are served, their slot is free again when the handler ends: shorten the handler, or let it write early. "+heldAccordingToTomcat(fd.Now)+" reports how many are held.")
	}
	if fd.undercounted() && !c.Partial {
		add("connections_undercounted", model.SeverityInfo,
			phrase.Sprintf("Connections wait although only %d of %d are seen; slots held by connections that the client has reset could not be counted, so that maxConnections may be reached after all.", c.Accepted, fd.Now.Connector.MaxConnections.Value),
			"Run as root or as the process's user and group, so that /proc/PID/fd can be read.")
	}
	if c.Partial {
		add("connections_partial", model.SeverityInfo,
			"The walk of the socket table was cut short every time: the connections counted are too few.",
			"Look again when fewer connections open and close, or use a longer --scan-interval.")
	}
	fd.unclassified(add)
}

// heldAccordingToTomcat is where Tomcat's own count of its connections is found.
func heldAccordingToTomcat(l *model.Listener) string {
	if l.Connector != nil && l.Connector.Framework == "spring-boot" {
		return "Actuator's tomcat.connections.current"
	}
	return "JMX's connectionCount of Catalina:type=ThreadPool"
}

func (fd finder) unclassified(add adder) {
	n := phase(fd.Now, model.Unclassified)
	c := fd.Now.Connector
	switch {
	case n == 0:
	case c != nil && (c.TLS || c.HTTP2):
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("Whether %s %s idle or in service cannot be seen from outside: %s.", phrase.Count(n, "connection"), phrase.Verb(n, "is", "are"), whyHidden(c)), "")
	case mostlyOutlived(fd.Now):
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("%s %s quiet for longer than keepAliveTimeout lets one wait for its next request: WebSockets, or others that the application keeps open.", phrase.Count(fd.Now.Connections.Outlived, "connection"), phrase.Verb(fd.Now.Connections.Outlived, "has been", "have been")),
			"They hold a connection slot each and no thread. keepAliveTimeout and connectionTimeout do not end them.")
	default:
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("%s %s sent something and got no answer, but there are not as many threads: half-sent requests, WebSockets or asynchronous handlers.", phrase.Count(n, "connection"), phrase.Verb(n, "has", "have")),
			"They hold a connection slot each and no thread. If it is clients that never finish their request, connectionTimeout decides how long they may.")
	}
}

// notObservable says what "ok" leaves open on such a connector, and how to know.
func (fd finder) notObservable(add adder) {
	if !notObservable(fd.Now) {
		return
	}
	c := fd.Now.Connector
	advice := "Ask the server by JMX: currentThreadsBusy of Catalina:type=ThreadPool."
	if c.Framework == "spring-boot" {
		advice = "Let tcpdiag ask Actuator: server.tomcat.mbeanregistry.enabled=true exposes tomcat.threads.busy, and --actuator names the address where it is not found."
	}
	add("not_observable", model.SeverityInfo,
		"How many threads are busy, and whether requests wait for one, cannot be seen from outside: "+whyHidden(c)+".", advice)
}

// processFindings: a CPU or a stop in addition to another cause.
func (fd finder) processFindings(v model.Verdict, add adder) {
	if fd.either(stopped) && v.Cause != model.CauseJVMPause {
		add("process_stopped", model.SeverityWarning, phrase.Capital(fd.pausePhrase())+".", fd.advisePause())
	}
	if v.Status >= model.StatusSaturated && v.Cause != model.CauseCPUThrottled && fd.throttling().share() >= fd.t.ThrottledShare {
		add(string(model.CauseCPUThrottled), model.SeverityWarning, phrase.Capital(fd.cpuPhrase(model.CauseCPUThrottled))+".", fd.adviseThrottled())
	}
	if v.Status >= model.StatusSaturated && fd.cpuShortBeside(v.Cause) {
		add(string(model.CauseCPUSaturated), model.SeverityWarning, phrase.Capital(fd.cpuPhrase(model.CauseCPUSaturated))+".", adviseCPU)
	}
}

// threadsFinding: at the cgroup's pids.max clone(2) fails with EAGAIN, which a JVM
// reports as "unable to create native thread", and pids.events counts. Other
// processes of the cgroup count too, so the process's own threads are a lower bound.
func (fd finder) threadsFinding(add adder) {
	p := fd.Now.Process
	if p == nil {
		return
	}
	const advice = "Raise the limit (--pids-limit of the container, podPidsLimit of the kubelet, TasksMax= of the unit), or lower the number of threads."
	switch n := p.PIDsRefused; {
	case n != nil && *n > 0:
		add("pids_limit", model.SeverityWarning,
			phrase.Sprintf("A new thread or process was refused in the process's cgroup %s since the process is watched (pids.events): the limit of threads and processes (pids.max) was reached.", phrase.Count(*n, "time")),
			advice+" A thread that could not be started may be missing until a restart.")
	case fd.noMoreThreads():
		add("pids_limit", model.SeverityWarning,
			phrase.Sprintf("The process has %d threads, and its cgroup may have %d threads and processes in all (pids.max): it can hardly start another, whatever maxThreads is.", *p.Threads, *p.PIDsLimit),
			advice)
	}
}

// notes pass on what reading the configuration found: ignored values and such.
func (fd finder) notes(add adder) {
	c := fd.Now.Connector
	if c == nil {
		return
	}
	note := func(s *model.Setting[int], name setting, code string) {
		if s != nil && s.Note != "" {
			add(code, model.SeverityInfo,
				phrase.Sprintf("%s is %d%s: %s", name.name(fd.Now), s.Value, sourceOf(s), s.Note), "")
		}
	}
	note(c.MaxConnections, maxConnectionsSetting(), "max_connections_note")
	note(c.AcceptCount, acceptCountSetting(), "accept_count_note")
	note(c.MaxThreads, maxThreadsSetting(), "max_threads_note")
}
