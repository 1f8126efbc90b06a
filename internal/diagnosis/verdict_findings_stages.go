package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// stageFindings are facts about the stages other than the cause.
func (j *judge) stageFindings(v model.Verdict) []model.Finding {
	if !j.Now.Listening() {
		return nil
	}
	var out []model.Finding
	add := func(code string, s model.Severity, evidence, advice string) {
		out = append(out, model.Finding{Code: code, Severity: s, Evidence: evidence, Advice: advice})
	}
	if j.clamped() {
		add(string(model.CauseBacklogClamped), model.SeverityWarning, j.join(j.clampedNumbers()), j.adviseClamped())
	}
	j.acceptCountChanged(add)
	if v.Cause != model.CauseOpenFiles {
		j.openFilesFinding(add)
	}
	j.forecast(v, add)
	j.peakFinding(add)
	j.connectionFindings(add)
	j.peerFinding(v, add)
	j.standingQueue(v, add)
	j.limitBesideThreads(v, add)
	j.standingRequests(v, add)
	j.notObservable(add)
	j.processFindings(v, add)
	j.threadsFinding(add)
	j.possibleWait(add)
	j.insideFinding(add)
	j.fileFinding(add)
	j.carriersFinding(add)
	j.gateFinding(add)
	j.otherProcessFinding(add)
	j.deadlockFinding(add)
	j.notes(add)
	return out
}

type adder func(code string, s model.Severity, evidence, advice string)

// acceptCountChanged: less configured than in force can only be a change since
// the listener was opened.
func (j *judge) acceptCountChanged(add adder) {
	n, ok := reading.AcceptCount(j.Now)
	q := j.Now.AcceptQueue
	if ok && q != nil && n > q.Limit && !j.clamped() {
		add("accept_count_changed", model.SeverityInfo,
			phrase.Sprintf("Configured is acceptCount %d%s, in force is %d (Send-Q), and no usual net.core.somaxconn is that low.", n, sourceOf(j.Now.Connector.AcceptCount), q.Limit),
			"Look for code that sets acceptCount (a connector customizer), or for a change of the configuration after the start.")
	}
	if ok && q != nil && n < q.Limit {
		add("accept_count_changed", model.SeverityInfo,
			phrase.Sprintf("Configured is acceptCount %d%s, but the listener was opened with a backlog of %d.", n, sourceOf(j.Now.Connector.AcceptCount), q.Limit),
			"The setting was changed after the start, or is not the one this process was started with: the new value counts after a restart.")
	}
}

func (j *judge) openFilesFinding(add adder) {
	if !j.filesFirst() {
		return
	}
	used, most, _ := reading.OpenFiles(j.Now)
	n, _ := reading.Held(j.Now)
	conns := j.Now.Connector.MaxConnections.Value
	to, instead := filesNeeded(j.Now, conns), ""
	if fewer := (most - (used - n)) * 9 / 10; fewer > 0 {
		instead = phrase.Sprintf(", or lower %s to %v, so that clients wait in the queue instead of accept() failing", maxConnectionsSetting().name(j.Now), fewer)
	}
	add("open_files_below_max_connections", model.SeverityWarning,
		phrase.Sprintf("The process may open %d files, %d are open and %d of these are no connections of this listener: the files run out at about %d connections, before maxConnections (%d).",
			most, used, used-n, max(0, most-(used-n)), conns),
		phrase.Sprintf("Raise the open-files limit to %v (%s) and restart%s.", to, filesLimit(to), instead))
}

// forecast warns of what hits all of a sudden: a process out of files or ports
// fails, while clients of the other stages only begin to wait. Threads come and
// go too fast to be forecast.
func (j *judge) forecast(v model.Verdict, add adder) {
	for _, l := range j.limits {
		c := model.Cause(l.Name)
		if c != model.CauseOpenFiles && c != model.CauseEphemeralPorts || c == v.Cause || l.Ratio < .5 || !j.fills(l.Name) {
			continue
		}
		add("forecast_"+l.Name, model.SeverityInfo, j.join(j.stagePhrase(c)), j.advice(c, v))
	}
}

// peakFinding reports a queue that was nearly full between the snapshots.
func (j *judge) peakFinding(add adder) {
	q := j.Now.AcceptQueue
	if q == nil || q.Peak == nil || q.Length >= *q.Peak || float64(*q.Peak) < j.T.High*float64(q.Capacity()) {
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
func (j *judge) connectionFindings(add adder) {
	c := j.Now.Connections
	if c == nil {
		return
	}
	if r := c.Reset; r != nil && *r > 0 {
		add("reset_connections", model.SeverityWarning,
			phrase.Sprintf("%s of the process %s no socket any more, as after a client's reset, which %s notices when it next reads or writes. So %d of %d connection slots seem to be taken without a connection. Other connections of the process, outgoing ones too, would leave the same trace.",
				phrase.Count(*r, "descriptor"), phrase.Verb(*r, "has", "have"), reading.ServerName(j.Now), *r, c.Held()),
			"If clients give up while they are served, their slot is free again when the handler ends: shorten the handler, or let it write early. "+heldAccordingToTomcat(j.Now)+" reports how many are held.")
	}
	if j.undercounted() && !c.Partial {
		add("connections_undercounted", model.SeverityInfo,
			phrase.Sprintf("Connections wait although only %d of %d are seen; slots held by connections that the client has reset could not be counted, so that maxConnections may be reached after all.", c.Accepted, j.Now.Connector.MaxConnections.Value),
			"Run as root or as the process's user and group, so that /proc/PID/fd can be read.")
	}
	if c.Partial {
		add("connections_partial", model.SeverityInfo,
			"The walk of the socket table was cut short every time: the connections counted are too few.",
			"Look again when fewer connections open and close, or use a longer --scan-interval.")
	}
	j.unclassified(add)
}

// heldAccordingToTomcat is where Tomcat's own count of its connections is found.
func heldAccordingToTomcat(l *model.Listener) string {
	if l.Connector != nil && l.Connector.Framework == "spring-boot" {
		return "Actuator's tomcat.connections.current"
	}
	return "JMX's connectionCount of Catalina:type=ThreadPool"
}

func (j *judge) unclassified(add adder) {
	n := reading.Phase(j.Now, model.Unclassified)
	c := j.Now.Connector
	switch {
	case n == 0:
	case c != nil && (c.TLS || c.HTTP2):
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("Whether %s %s idle or in service cannot be seen from outside: %s.", phrase.Count(n, "connection"), phrase.Verb(n, "is", "are"), whyHidden(c)), "")
	case reading.MostlyOutlived(j.Now):
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("%s %s quiet for longer than keepAliveTimeout lets one wait for its next request: WebSockets, or others that the application keeps open.", phrase.Count(j.Now.Connections.Outlived, "connection"), phrase.Verb(j.Now.Connections.Outlived, "has been", "have been")),
			"They hold a connection slot each and no thread. keepAliveTimeout and connectionTimeout do not end them.")
	default:
		add("unclassified", model.SeverityInfo,
			phrase.Sprintf("%s %s sent something and got no answer, but there are not as many threads: half-sent requests, WebSockets or asynchronous handlers.", phrase.Count(n, "connection"), phrase.Verb(n, "has", "have")),
			"They hold a connection slot each and no thread. If it is clients that never finish their request, connectionTimeout decides how long they may.")
	}
}

// notObservable says what "ok" leaves open on such a connector, and how to know.
func (j *judge) notObservable(add adder) {
	if !reading.NotObservable(j.Now) {
		return
	}
	c := j.Now.Connector
	advice := "Ask the server by JMX: currentThreadsBusy of Catalina:type=ThreadPool."
	if c.Framework == "spring-boot" {
		advice = "Let tcpdiag ask Actuator: server.tomcat.mbeanregistry.enabled=true exposes tomcat.threads.busy, and --actuator names the address where it is not found."
	}
	add("not_observable", model.SeverityInfo,
		"How many threads are busy, and whether requests wait for one, cannot be seen from outside: "+whyHidden(c)+".", advice)
}

// processFindings: a CPU or a stop in addition to another cause.
func (j *judge) processFindings(v model.Verdict, add adder) {
	if j.Either(reading.Stopped) && v.Cause != model.CauseJVMPause {
		add("process_stopped", model.SeverityWarning, phrase.Capital(j.pausePhrase())+".", j.advisePause())
	}
	if v.Status >= model.StatusSaturated && v.Cause != model.CauseCPUThrottled && j.Throttling().Share() >= j.T.ThrottledShare {
		add(string(model.CauseCPUThrottled), model.SeverityWarning, phrase.Capital(j.cpuPhrase(model.CauseCPUThrottled))+".", j.adviseThrottled())
	}
	if v.Status >= model.StatusSaturated && j.cpuShortBeside(v.Cause) {
		add(string(model.CauseCPUSaturated), model.SeverityWarning, phrase.Capital(j.cpuPhrase(model.CauseCPUSaturated))+".", adviseCPU)
	}
}

// threadsFinding: at the cgroup's pids.max clone(2) fails with EAGAIN, which a JVM
// reports as "unable to create native thread", and pids.events counts. Other
// processes of the cgroup count too, so the process's own threads are a lower bound.
func (j *judge) threadsFinding(add adder) {
	p := j.Now.Process
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
	case j.noMoreThreads():
		add("pids_limit", model.SeverityWarning,
			phrase.Sprintf("The process has %d threads, and its cgroup may have %d threads and processes in all (pids.max): it can hardly start another, whatever maxThreads is.", *p.Threads, *p.PIDsLimit),
			advice)
	}
}

// notes pass on what reading the configuration found: ignored values and such.
func (j *judge) notes(add adder) {
	c := j.Now.Connector
	if c == nil {
		return
	}
	note := func(s *model.Setting[int], name setting, code string) {
		if s != nil && s.Note != "" {
			add(code, model.SeverityInfo,
				phrase.Sprintf("%s is %d%s: %s", name.name(j.Now), s.Value, sourceOf(s), s.Note), "")
		}
	}
	note(c.MaxConnections, maxConnectionsSetting(), "max_connections_note")
	note(c.AcceptCount, acceptCountSetting(), "accept_count_note")
	note(c.MaxThreads, maxThreadsSetting(), "max_threads_note")
}
