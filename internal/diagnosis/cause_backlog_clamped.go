package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

func (j *judge) clampedSteps() (do []model.Step, not string) {
	n, _ := acceptCount(j.Now)
	not = "A larger acceptCount: net.core.somaxconn holds it short."
	restart := action("Restart the server: listen() takes the backlog once")
	if somax, ok := j.Sysctl["somaxconn"]; ok && somax >= n {
		return []model.Step{restart}, not
	}
	return []model.Step{j.somaxconnStep(n), restart}, not
}
