package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// openFilesUsedUp: accept() fails for want of a descriptor.
func openFilesUsedUp() cause {
	return cause{
		name: model.CauseOpenFiles,
		moment: rule[*evidence.Moment]{
			holds:   func(m *evidence.Moment) certainty { return when(m.OutOfFiles(), surely) },
			refuted: []refutation[*evidence.Moment]{{"the acceptor waits at the connection limit", (*evidence.Moment).AtLatch}},
		},
		rests: rests(evidence.StrengthFiles),
		around: rule[reading.Pair]{
			holds:   func(p reading.Pair) certainty { return when(p.Either(p.FilesFull), surely) },
			refuted: []refutation[reading.Pair]{{allTaken, func(p reading.Pair) bool { return p.Either(p.AtConnectionLimit) }}},
		},
		now: rule[*judge]{
			holds:   func(j *judge) certainty { return when(j.filesFull && reading.QueueWaits(j.Now), surely) },
			refuted: []refutation[*judge]{{allTaken, func(j *judge) bool { return j.connectionsFull }}},
		},
		near:    func(j *judge) bool { return j.stageHigh(reading.StageOpenFiles) },
		full:    func(j *judge) bool { return j.filesFull || j.lossCause() == model.CauseOpenFiles },
		depth:   70,
		because: func(j *judge, _ model.Verdict) string { return " because " + j.filesPhrase() },
		evidence: func(j *judge, v model.Verdict) string {
			return j.join(j.lossNumbers(model.CauseOpenFiles, v, j.filesFull), j.stageOr(model.CauseOpenFiles), j.connectionNumbers(), j.queueNumbers())
		},
		advice: func(j *judge, _ model.Verdict) string { return j.adviseFiles() },
		steps:  func(j *judge, _ model.Verdict) ([]model.Step, string) { return j.openFilesSteps() },
		book: Runbook{
			Title:     "accept() has no file descriptor left",
			Seen:      "The process has as many files open as its limit allows, with connections far below maxConnections. Tomcat's acceptor backs off after each failed `accept()`.",
			Check:     "`ls -l /proc/PID/fd | awk '{print $NF}' | sort | uniq -c | sort -n` shows a leak.",
			Change:    "`LimitNOFILE=` of the unit, `ulimit -n`, or the container's limit.",
			Vain:      "Any limit of Tomcat's.",
			Holds:     "open files at RLIMIT_NOFILE while connections wait",
			Otherwise: "max_connections, where all connections are taken",
		},
	}
}

const allTaken = "all connections are taken"

func (j *judge) openFilesSteps() (do []model.Step, not string) {
	not = "maxConnections or acceptCount: it is accept() itself that fails."
	used, most, ok := reading.OpenFiles(j.Now)
	if !ok {
		return []model.Step{action("Raise the open-files limit (LimitNOFILE= of the unit, the container's ulimits, or ulimit -n), and restart")}, not
	}
	n, _ := reading.Held(j.Now)
	need := 0
	if reading.ConnectionLimit(j.Now) == reading.LimitKnown {
		need = filesNeeded(j.Now, j.Now.Connector.MaxConnections.Value)
	}
	if 2*n < used || used-n > 1000 {
		do = append(do, command(phrase.Sprintf("See what the %d open files are that are no connections of this listener: a leak eats a new limit, too", used-n),
			phrase.Sprintf("ls -l /proc/%v/fd", j.Now.Process.PID)))
	}
	return append(do, raiseFilesStep(most, moreFiles(most, need))), not
}

func (j *judge) adviseFiles() string {
	used, most, ok := reading.OpenFiles(j.Now)
	if !ok {
		return "Raise the open-files limit (LimitNOFILE= in the unit, ulimit -n, or the container's ulimits), and look for a leak."
	}
	n, _ := reading.Held(j.Now)
	need := 0
	if reading.ConnectionLimit(j.Now) == reading.LimitKnown {
		need = filesNeeded(j.Now, j.Now.Connector.MaxConnections.Value)
	}
	others := ""
	if 2*n < used || used-n > 1000 {
		others = phrase.Sprintf("%d of the %d open files are no connections of this listener: see what they are (ls -l /proc/%v/fd) before a leak eats the new limit too.", used-n, used, j.Now.Process.PID)
	}
	return phrase.Sentences(raiseFiles(most, need), others,
		"Raising maxConnections or acceptCount would not help: it is accept() itself that fails.")
}
