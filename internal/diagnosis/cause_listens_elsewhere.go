package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// listensElsewhere: clients ask the port at an address that this listener does not have.
func listensElsewhere() cause {
	return cause{
		name: model.CauseListensElsewhere,
		now: rule[*judge]{
			holds:   func(j *judge) certainty { return when(j.refused() > 0, surely) },
			refuted: []refutation[*judge]{{"the listener has the address that was asked", func(j *judge) bool { return covers(j.Now, j.clients()) }}},
		},
		because: func(j *judge, _ model.Verdict) string { return " because " + j.elsewherePhrase() },
		evidence: func(j *judge, _ model.Verdict) string {
			return j.join(phrase.Sprintf("%s %s refused", phrase.Count(j.refused(), "client"), phrase.Verb(j.refused(), "was", "were")), j.elsewherePhrase())
		},
		advice: func(j *judge, _ model.Verdict) string {
			return "Have it listen on all addresses (server.address or the Connector's address: unset, or 0.0.0.0 and ::), or have the clients ask the address that it has. No limit of Tomcat's refuses a connection."
		},
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			s := model.Step{Text: "Have it listen on the address that is asked, or on all; or have the clients ask where it listens", Setting: "address", From: j.Now.ID.Address.Addr().String()}
			if j.Now.Connector != nil && j.Now.Connector.Framework == "spring-boot" {
				s.Setting = "server.address"
			}
			if c := j.clients(); c != nil && c.RefusedAt.IsValid() {
				s.To = c.RefusedAt.Addr().String()
			}
			return []model.Step{s}, "Any of Tomcat's limits: none refuses a connection on Linux."
		},
		book: Runbook{
			Title:     "clients ask an address that is not listened on",
			Seen:      "Clients are refused at the port at another address than the one that is listened on: 127.0.0.1 against the interface's address, or IPv4 against IPv6. Seen by their handshakes (CAP_NET_RAW).",
			Clients:   "Connection refused.",
			Check:     "`ss -ltn` against the address that the clients use, and what their name resolves to.",
			Change:    "`server.address` (the Connector's `address`), or the clients' address.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "clients were refused at an address that this listener does not cover",
			Otherwise: "before_listener, where it covers the address",
		},
	}
}

// elsewherePhrase has both addresses.
func (j *judge) elsewherePhrase() string {
	asked := "another address"
	if c := j.clients(); c != nil && c.RefusedAt.IsValid() {
		asked = c.RefusedAt.String()
	}
	return phrase.Sprintf("they asked %s, and it listens on %s alone", asked, j.Now.ID.Address)
}
