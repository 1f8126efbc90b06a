package causes

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// backlogClamped: the accept queue is shorter than its owner configured it. It is what a
// verdict says instead of slow_accept, see named.
func backlogClamped() Cause {
	return Cause{
		Name: model.CauseBacklogClamped,
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string {
			n, _ := reading.AcceptCount(s.Now)
			return phrase.Sprintf(" because the backlog in force is %d, not the acceptCount of %d that is configured", s.Now.AcceptQueue.Limit, n)
		},
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(words.ClampedNumbers(s), words.QueueNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return AdviseClamped(s) },
		Steps:  func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) { return clampedSteps(s) },
		Book: Runbook{
			Title:     "the accept queue is shorter than configured",
			Seen:      "acceptCount is configured higher than the backlog in force (Send-Q).",
			Change:    "Raise `net.core.somaxconn` in the server's network namespace (Kubernetes: `securityContext.sysctls`), then restart the server.",
			Vain:      "A larger acceptCount.",
			Holds:     "slow_accept holds, and Send-Q is net.core.somaxconn or a usual value of it, below the configured acceptCount",
			Otherwise: "slow_accept; accept_count_changed, where no usual somaxconn is that low",
		},
	}
}

func clampedSteps(s *symptoms.Symptoms) (do []model.Step, not string) {
	n, _ := reading.AcceptCount(s.Now)
	not = "A larger acceptCount: net.core.somaxconn holds it short."
	restart := advice.Action("Restart the server: listen() takes the backlog once")
	if somax, ok := s.Sysctl["somaxconn"]; ok && somax >= n {
		return []model.Step{restart}, not
	}
	return []model.Step{advice.SomaxconnStep(s, n), restart}, not
}

// AdviseClamped says how what was configured of acceptCount comes into force.
func AdviseClamped(s *symptoms.Symptoms) string {
	n, _ := reading.AcceptCount(s.Now)
	limit := s.Now.AcceptQueue.Limit
	somax, ok := s.Sysctl["somaxconn"]
	switch {
	case ok && somax >= n:
		return fmt.Sprintf("net.core.somaxconn is %d by now: restart the server, listen() takes it once. (Or acceptCount was changed after the start.) Raising the sysctl further changes nothing.", somax)
	case ok && somax != limit:
		return fmt.Sprintf("Set net.core.somaxconn to %d (now %d) in the server's network namespace, then restart the server: listen() takes it once. Raising acceptCount further changes nothing.", n, somax)
	}
	return fmt.Sprintf("Set net.core.somaxconn to %d in the server's network namespace (sysctl -w net.core.somaxconn=%[1]d; in Kubernetes the pod's securityContext.sysctls), then restart the server: listen() takes it once. Raising acceptCount further changes nothing.", n)
}
