package findings

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// otherProcess is the one that holds connections of the port without listening there.
func otherProcess(l *model.Listener) *model.OtherProcess {
	if l == nil || l.Connections == nil {
		return nil
	}
	return l.Connections.Other
}

func otherProcessFinding(s *symptoms.Symptoms, add adder) {
	o := otherProcess(s.Now)
	if o == nil {
		return
	}
	if s.Now.Process != nil && s.Now.Process.Comm != o.Comm {
		add("other_process", model.SeverityInfo,
			phrase.Sprintf("%s more on this port %s to pid %v (%s), which does not listen there: its own outgoing connections from this port, or inherited ones; in none of the numbers here.",
				phrase.Count(o.Connections, "connection"), phrase.Verb(o.Connections, "belongs", "belong"), o.PID, model.Escape(o.Comm)),
			"Nothing for this server. A port that is listened on is better left out of those that clients get (net.ipv4.ip_local_reserved_ports): at the next start it may be taken.")
		return
	}
	add("other_process", model.SeverityInfo,
		phrase.Sprintf("%s more on this port %s to pid %v (%s), which does not listen there any more, as a server does that is shutting down: in none of the numbers here.",
			phrase.Count(o.Connections, "connection"), phrase.Verb(o.Connections, "belongs", "belong"), o.PID, model.Escape(o.Comm)),
		"Nothing, if it is meant to serve the rest of its requests. It takes none of this server's connections and threads.")
}
