package causes

import (
	"cmp"
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
			holds: func(s *symptoms.Symptoms) Certainty { return When(s.RefusedMany(), Surely) },
			refuted: []refutation[*symptoms.Symptoms]{{"the listener has the address that was asked, on any device", func(s *symptoms.Symptoms) bool {
				return symptoms.Covers(s.Now, s.Clients()) && !s.ByOtherDevice()
			}}},
		},
		Because: func(s *symptoms.Symptoms, _ model.Verdict) string { return " because " + elsewherePhrase(s) },
		Evidence: func(s *symptoms.Symptoms, _ model.Verdict) string {
			return words.Join(phrase.Sprintf("%s %s refused", phrase.Count(s.Refused(), "client"), phrase.Verb(s.Refused(), "was", "were")), elsewherePhrase(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string {
			if s.ByOtherDevice() {
				return "Have it listen on all devices (no BindToDevice= of its systemd socket, no SO_BINDTODEVICE), or have the clients come in by that one. No limit of Tomcat's refuses a connection."
			}
			if asked, wider := exposes(s); wider {
				return "Others are connected where it listens, as by a proxy of this machine: where it is bound to " + s.Now.ID.Address.Addr().String() + " on purpose, whoever asks " + asked + " is kept out as meant, a scanner of ports among them, and nothing is to be changed. If they are its clients, have them ask the address that it has, or come by that proxy. No limit of Tomcat's refuses a connection."
			}
			return "Have it listen on all addresses (server.address or the Connector's address: unset, or 0.0.0.0 and ::), or have the clients ask the address that it has. No limit of Tomcat's refuses a connection."
		},
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			if s.ByOtherDevice() {
				return []model.Step{
					advice.Command("See by which device these clients come in: those of this machine by the one that has the address which they ask", "ip -br address; ip route get CLIENT"),
					advice.Action("Have it listen on all devices (no BindToDevice= of its systemd socket, no SO_BINDTODEVICE), or have the clients come in by " + model.Escape(s.Now.ID.Device)),
				}, "Any of Tomcat's limits: none refuses a connection on Linux."
			}
			if _, wider := exposes(s); wider {
				return strangersSteps(s), "Any of Tomcat's limits: none refuses a connection on Linux."
			}
			step := advice.ListenStep(s, "Have it listen on the address that is asked, or on all; or have the clients ask where it listens", "")
			if c := s.Clients(); c != nil && c.RefusedAt.IsValid() {
				step.To, step.Limit = listenAt(s.Now.ID.Address.Addr(), c), reading.LimitAddress
			}
			return []model.Step{step}, "Any of Tomcat's limits: none refuses a connection on Linux."
		},
		Book: Runbook{
			Title:     "clients ask an address that is not listened on",
			Seen:      "Clients are refused at the port at another address than the one that is listened on: 127.0.0.1 against the interface's address, or IPv4 against IPv6; or by TCP itself, in front of a socket of one device (SO_BINDTODEVICE), by which they do not come in. Seen by their handshakes (CAP_NET_RAW).",
			Clients:   "Connection refused.",
			Check:     "`ss -ltn` against the address that the clients use, and what their name resolves to.",
			Change:    "`server.address` (the Connector's `address`), or the clients' address.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "clients were refused at an address that this listener does not cover, three or more and one of twenty that came, and, where others are connected and nobody new is let in, of several addresses, or ten of one; or by TCP itself, and it is bound to a device",
			Otherwise: "before_listener, where it covers the address",
		},
	}
}

// exposes is the address that the refused ask, and means that to listen there may let in whom the present one keeps out: others
// are connected, and it is reached from farther away than the one that is listened on.
func exposes(s *symptoms.Symptoms) (asked string, wider bool) {
	c, has := s.Clients(), s.Now.ID.Address.Addr()
	if c == nil || !c.RefusedAt.IsValid() || !s.OthersGetIn() {
		return "", false
	}
	at := c.RefusedAt.Addr().Unmap()
	wider = has.IsLoopback() && !at.IsLoopback() || has.IsPrivate() && !at.IsPrivate() && !at.IsLoopback()
	return c.RefusedAt.String(), wider
}

// strangersSteps ask whether those that are refused are meant to get in.
func strangersSteps(s *symptoms.Symptoms) []model.Step {
	asked := s.Clients().RefusedAt
	return []model.Step{
		advice.Command("See who asks "+asked.String()+", and whether they are meant to get in: a scanner of ports is not", phrase.Sprintf("tcpdump -nni any 'dst host %v and dst port %v'", asked.Addr().Unmap(), asked.Port())),
		advice.Action("If they are, have them ask where it listens, or come by the proxy that does. If it is bound to " + s.Now.ID.Address.Addr().String() + " so that nobody else reaches it, leave it so"),
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
	asked := ""
	if c := s.Clients(); c != nil && c.RefusedAt.IsValid() {
		asked = c.RefusedAt.String()
	}
	if s.ByOtherDevice() {
		what := phrase.Sprintf("it listens on device %s alone, and TCP itself refuses whoever comes in by another (OutRsts +%d)", model.Escape(s.Now.ID.Device), s.Delta["OutRsts"])
		if asked != "" {
			what += ": the latest asked " + asked
		}
		return what
	}
	return phrase.Sprintf("they asked %s, and it listens on %s alone", cmp.Or(asked, "another address"), s.Now.ID.Address)
}
