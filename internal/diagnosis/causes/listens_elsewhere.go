package causes

import (
	"net/netip"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// listensElsewhere: clients ask the port at an address that this listener does not have.
func listensElsewhere() Cause {
	return Cause{
		Name: model.CauseListensElsewhere,
		Now: rule[*symptoms.Symptoms]{
			holds:   func(s *symptoms.Symptoms) Certainty { return When(s.Refused() > 0, Surely) },
			refuted: []refutation[*symptoms.Symptoms]{{"the listener has the address that was asked", func(s *symptoms.Symptoms) bool { return symptoms.Covers(s.Now, s.Clients()) }}},
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + elsewherePhrase(s) },
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(phrase.Sprintf("%s %s refused", phrase.Count(s.Refused(), "client"), phrase.Verb(s.Refused(), "was", "were")), elsewherePhrase(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return "Have it listen on all addresses (server.address or the Connector's address: unset, or 0.0.0.0 and ::), or have the clients ask the address that it has. No limit of Tomcat's refuses a connection."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			step := advice.ListenStep(s, "Have it listen on the address that is asked, or on all; or have the clients ask where it listens", "")
			if c := s.Clients(); c != nil && c.RefusedAt.IsValid() {
				step.To, step.Limit = listenAt(s.Now.ID.Address.Addr(), c), reading.LimitAddress
			}
			return []model.Step{step}, "Any of Tomcat's limits: none refuses a connection on Linux."
		},
		Book: Runbook{
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

// listenAt is the address to listen on: the one that is asked, or all where others are let in at the present one.
func listenAt(has netip.Addr, c *model.Clients) string {
	asked := c.RefusedAt.Addr().Unmap()
	switch {
	case c.LetIn == 0 && !has.IsUnspecified():
		return asked.String()
	case has.Is4() && asked.Is4():
		return "0.0.0.0"
	}
	return "::"
}

// elsewherePhrase has both addresses.
func elsewherePhrase(s *symptoms.Symptoms) string {
	asked := "another address"
	if c := s.Clients(); c != nil && c.RefusedAt.IsValid() {
		asked = c.RefusedAt.String()
	}
	return phrase.Sprintf("they asked %s, and it listens on %s alone", asked, s.Now.ID.Address)
}
