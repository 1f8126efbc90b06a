package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// possibleWait says what may be the cause, and what is missing to know it.
func (j *judge) possibleWait(add adder) {
	w := &j.waits
	if w.cause != model.CauseNone || w.possible == model.CauseNone {
		return
	}
	missing := "whether they are so also while nobody is served, as long polls and subscriptions are, has not been seen"
	if d := reading.DownstreamOf(j.Now); d.ByUser {
		missing = "whether they are this process's cannot be seen, only that they are its user's"
	}
	add("possible_"+string(w.possible), model.SeverityInfo,
		j.join(j.waitNumbers(), j.peerNumbers(), missing),
		phrase.Sprintf("Look at %s before raising threads: if they wait for it, more of them only wait, too. The agent learns what is in flight at rest; as root, or as the process's user, tcpdiag sees which threads wait there; --thread-dump asks the JVM.", peerName(w.peer)))
}
