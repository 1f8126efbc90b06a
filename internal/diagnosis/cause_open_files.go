package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func (j *judge) openFilesSteps() (do []model.Step, not string) {
	not = "maxConnections or acceptCount: it is accept() itself that fails."
	used, most, ok := openFiles(j.Now)
	if !ok {
		return []model.Step{action("Raise the open-files limit (LimitNOFILE= of the unit, the container's ulimits, or ulimit -n), and restart")}, not
	}
	n, _ := held(j.Now)
	need := 0
	if connectionLimit(j.Now) == limitKnown {
		need = filesNeeded(j.Now, j.Now.Connector.MaxConnections.Value)
	}
	if 2*n < used || used-n > 1000 {
		do = append(do, command(phrase.Sprintf("See what the %d open files are that are no connections of this listener: a leak eats a new limit, too", used-n),
			phrase.Sprintf("ls -l /proc/%v/fd", j.Now.Process.PID)))
	}
	return append(do, raiseFilesStep(most, moreFiles(most, need))), not
}
