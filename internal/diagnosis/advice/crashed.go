package advice

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Continue is the command that lets a stopped process, or its stopped worker processes, go on.
func Continue(p *model.Process) string {
	switch {
	case p.Stopped || p.StoppedChildren == 0:
		return phrase.Sprintf("kill -CONT %v", p.PID)
	case p.StoppedChildren == 1:
		return phrase.Sprintf("kill -CONT %v", p.StoppedChild)
	}
	return phrase.Sprintf("pkill -CONT -P %v", p.PID)
}

// CrashedSteps are what to do about a process whose core dump is being written.
func CrashedSteps(s *symptoms.Symptoms) []model.Step {
	return []model.Step{
		Command("See what it crashed of: hs_err_pid*.log of a JVM in its working directory, and the kernel's log", "dmesg | tail"),
		Command("Start it again when its core dump is written, or end that now", phrase.Sprintf("kill -KILL %v", s.Now.Process.PID)),
		Action("To be gone at once next time: no core dump (LimitCORE=0, ulimit -c 0), or a smaller one in the configuration of what takes it (sysctl kernel.core_pattern)"),
	}
}
