package diagnosis

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// backlogClamped: the accept queue is shorter than its owner configured it. It is what a
// verdict says instead of slow_accept, see named.
func backlogClamped() cause {
	return cause{
		name: model.CauseBacklogClamped,
		because: func(j *judge, _ model.Verdict) string {
			n, _ := reading.AcceptCount(j.Now)
			return phrase.Sprintf(" because the backlog in force is %d, not the acceptCount of %d that is configured", j.Now.AcceptQueue.Limit, n)
		},
		evidence: func(j *judge, _ model.Verdict) string { return j.join(j.clampedNumbers(), j.queueNumbers()) },
		advice:   func(j *judge, _ model.Verdict) string { return j.adviseClamped() },
		steps:    func(j *judge, _ model.Verdict) ([]model.Step, string) { return j.clampedSteps() },
		book: Runbook{
			Title:     "the accept queue is shorter than configured",
			Seen:      "acceptCount is configured higher than the backlog in force (Send-Q).",
			Change:    "Raise `net.core.somaxconn` in the server's network namespace (Kubernetes: `securityContext.sysctls`), then restart the server.",
			Vain:      "A larger acceptCount.",
			Holds:     "slow_accept holds, and Send-Q is net.core.somaxconn or a usual value of it, below the configured acceptCount",
			Otherwise: "slow_accept; accept_count_changed, where no usual somaxconn is that low",
		},
	}
}

func (j *judge) clampedSteps() (do []model.Step, not string) {
	n, _ := reading.AcceptCount(j.Now)
	not = "A larger acceptCount: net.core.somaxconn holds it short."
	restart := action("Restart the server: listen() takes the backlog once")
	if somax, ok := j.Sysctl["somaxconn"]; ok && somax >= n {
		return []model.Step{restart}, not
	}
	return []model.Step{j.somaxconnStep(n), restart}, not
}

func (j *judge) adviseClamped() string {
	n, _ := reading.AcceptCount(j.Now)
	limit := j.Now.AcceptQueue.Limit
	somax, ok := j.Sysctl["somaxconn"]
	switch {
	case ok && somax >= n:
		return fmt.Sprintf("net.core.somaxconn is %d by now: restart the server, listen() takes it once. (Or acceptCount was changed after the start.) Raising the sysctl further changes nothing.", somax)
	case ok && somax != limit:
		return fmt.Sprintf("Set net.core.somaxconn to %d (now %d) in the server's network namespace, then restart the server: listen() takes it once. Raising acceptCount further changes nothing.", n, somax)
	}
	return fmt.Sprintf("Set net.core.somaxconn to %d in the server's network namespace (sysctl -w net.core.somaxconn=%[1]d; in Kubernetes the pod's securityContext.sysctls), then restart the server: listen() takes it once. Raising acceptCount further changes nothing.", n)
}
