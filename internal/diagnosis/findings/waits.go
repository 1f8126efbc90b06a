package findings

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// possibleWait says what may be the cause, and what is missing to know it.
func possibleWait(s *symptoms.Symptoms, add adder) {
	w := &s.Waits
	if w.Cause != model.CauseNone || w.Possible == model.CauseNone {
		return
	}
	missing := "whether they are so also while nobody is served, as long polls and subscriptions are, has not been seen"
	if d := reading.DownstreamOf(s.Now); d.ByUser {
		missing = "whether they are this process's cannot be seen, only that they are its user's"
	}
	add("possible_"+string(w.Possible), model.SeverityInfo,
		words.Join(words.WaitNumbers(s), words.PeerNumbers(s), missing),
		phrase.Sprintf("Look at %s before raising threads: if they wait for it, more of them only wait, too. The agent learns what is in flight at rest; as root, or as the process's user, tcpdiag sees which threads wait there; --thread-dump asks the JVM.", words.PeerName(w.Peer)))
}
