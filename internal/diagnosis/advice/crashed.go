package advice

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// CrashedSteps are what to do about a process whose core dump is being written.
func CrashedSteps(s *symptoms.Symptoms) []model.Step {
	return []model.Step{
		Command("See what it crashed of: hs_err_pid*.log of a JVM in its working directory, and the kernel's log", "dmesg | tail"),
		Command("Start it again when its core dump is written, or end that now", phrase.Sprintf("kill -KILL %v", s.Now.Process.PID)),
		Action("To be gone at once next time: no core dump (LimitCORE=0, ulimit -c 0), or a smaller one in the configuration of what takes it (sysctl kernel.core_pattern)"),
	}
}
