package causes

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// openFilesUsedUp: accept() fails for want of a descriptor.
func openFilesUsedUp() Cause {
	return Cause{
		Name: model.CauseOpenFiles,
		moment: rule[*evidence.Moment]{
			holds: func(m *evidence.Moment) Certainty { return When(m.OutOfFiles(), Surely) },
			refuted: []refutation[*evidence.Moment]{
				{"the acceptor waits at the connection limit", (*evidence.Moment).AtLatch},
				{"all connections are taken, and some descriptors are left", (*evidence.Moment).NotAsked},
			},
		},
		rests: rests(evidence.StrengthFiles),
		around: rule[reading.Pair]{
			holds:   func(p reading.Pair) Certainty { return When(p.Either(p.FilesFull), Surely) },
			refuted: []refutation[reading.Pair]{{allTaken, func(p reading.Pair) bool { return p.Either(p.AtConnectionLimit) }}},
		},
		Now: rule[*symptoms.Symptoms]{
			holds:   func(s *symptoms.Symptoms) Certainty { return When(s.OutOfFiles && reading.QueueWaits(s.Now), Surely) },
			refuted: []refutation[*symptoms.Symptoms]{{allTaken, func(s *symptoms.Symptoms) bool { return s.ConnectionsFull }}},
		},
		Near:    func(s *symptoms.Symptoms) bool { return s.StageHigh(reading.StageOpenFiles) },
		Full:    func(s *symptoms.Symptoms, lost model.Cause) bool { return s.OutOfFiles || lost == model.CauseOpenFiles },
		Depth:   70,
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + words.Files(s) },
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.Join(words.LossNumbers(s, model.CauseOpenFiles, v, s.OutOfFiles), words.StageOr(s, model.CauseOpenFiles), words.ConnectionNumbers(s), words.QueueNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return adviseFiles(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return openFilesSteps(s) },
		Book: Runbook{
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

func openFilesSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	not = "maxConnections or acceptCount: it is accept() itself that fails."
	used, most, ok := reading.OpenFiles(s.Now)
	if !ok {
		return []model.Step{advice.Action("Raise the open-files limit (LimitNOFILE= of the unit, the container's ulimits, or ulimit -n), and restart")}, not
	}
	n, _ := reading.SlotsInUse(s.Now)
	need := 0
	if reading.ConnectionLimit(s.Now) == reading.LimitKnown {
		need = advice.FilesNeeded(s.Now, s.Now.Connector.MaxConnections.Value)
	}
	if 2*n < used || used-n > 1000 {
		do = append(do, advice.Command(phrase.Sprintf("See what the %d open files are that are no connections of this listener: a leak eats a new limit, too", used-n),
			phrase.Sprintf("ls -l /proc/%v/fd", s.Now.Process.PID)))
	}
	raise := advice.RaiseFilesStep(most, advice.MoreFiles(most, need))
	raise.Limit = reading.StageOpenFiles
	return append(do, raise), not
}

func adviseFiles(s *symptoms.Symptoms) string {
	used, most, ok := reading.OpenFiles(s.Now)
	if !ok {
		return "Raise the open-files limit (LimitNOFILE= in the unit, ulimit -n, or the container's ulimits), and look for a leak."
	}
	n, _ := reading.SlotsInUse(s.Now)
	need := 0
	if reading.ConnectionLimit(s.Now) == reading.LimitKnown {
		need = advice.FilesNeeded(s.Now, s.Now.Connector.MaxConnections.Value)
	}
	others := ""
	if 2*n < used || used-n > 1000 {
		others = phrase.Sprintf("%d of the %d open files are no connections of this listener: see what they are (ls -l /proc/%v/fd) before a leak eats the new limit too.", used-n, used, s.Now.Process.PID)
	}
	return phrase.Sentences(advice.RaiseFiles(most, need), others,
		"Raising maxConnections or acceptCount would not help: it is accept() itself that fails.")
}
