package findings

import (
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/droppoints"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// OfClients say what clients saw of it, each outcome counted separately.
func OfClients(s *symptoms.Symptoms) []model.Finding {
	var out []model.Finding
	if s.Losses().DroppedPackets > 0 {
		out = append(out, model.Finding{
			Code: "dropped_packets", Severity: model.SeverityCritical,
			Evidence: packetNumbers(s), Advice: packetMeaning(s),
		})
	}
	if n := s.Losses().AbandonedRequests; n > 0 {
		out = append(out, model.Finding{
			Code: "abandoned_requests", Severity: model.SeverityWarning,
			Evidence: phrase.Sprintf("Probably given up by their clients%s: %s, waiting or in service when the client closed; the connection then vanished while the namespace counted a reset (EstabResets). "+
				"An estimate: scans miss what comes and goes between two of them, and resets of other connections count, too.",
				words.InInterval(s), phrase.Count(n, "request")),
			Advice: "Such clients typically saw a read timeout. The server still works their requests off: a client timeout longer than the wait, or fewer requests let in, would save that work.",
		})
	}
	if n := s.Losses().QueueResets; n > 0 && s.Losses().DroppedPackets > 0 {
		out = append(out, model.Finding{
			Code: "queue_resets", Severity: model.SeverityCritical,
			Evidence: phrase.Sprintf("%s stood in the accept queue when the listener closed.", phrase.Count(n, "connection")),
			Advice:   "Their clients were reset, although they had done nothing but wait; most HTTP clients repeat only idempotent requests by themselves.",
		})
	}
	if n := s.Losses().Unattributed; n > 0 && !countsUnattributed(s) {
		out = append(out, model.Finding{
			Code: "unattributed_drops", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("%d more %s dropped in this network namespace%s that no watched listener's own counter accounts for.", n, phrase.Verb(n, "packet was", "packets were"), words.InInterval(s)),
			Advice:   "They belong to listeners that are not watched (--all shows them) or that closed meanwhile; they are not counted here.",
		})
	}
	if n, of := s.AsByAlert(); n > 0 {
		out = append(out, model.Finding{
			Code: "alerts_unknown", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("%d of %s had 7 bytes as their whole answer, the length of a TLS alert, and the server ended the connection. Whether it speaks TLS is not known.", n, phrase.Count(of, "client")),
			Advice:   "Where it does, these clients fail: they ask by http://, or have no version of TLS or no cipher in common with it. \"openssl s_client -connect HOST:PORT\" from a client's host tells. A server whose answers are that short looks the same.",
		})
	}
	if n, followed := s.NoneAnswered(); n > 0 {
		out = append(out, model.Finding{
			Code: "answers_unknown", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("%s connected in the last %s, and none has had an answer yet. Whether they get one is not known.", phrase.Count(n, "client"), phrase.Seconds(followed)),
			Advice:   "Look for longer than a request takes and than these clients wait (--interval 30s), or run the agent.",
		})
	}
	if n, oldest, followed := s.CameBefore(); n > 0 {
		out = append(out, model.Finding{
			Code: "clients_before_unknown", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("%s in service, the oldest for at least %s; clients have been followed for %s. Whether those that came before had an answer is not known.",
				phrase.Count(n, "request")+" "+phrase.Verb(n, "is", "are"), phrase.Seconds(oldest), phrase.Seconds(followed)),
			Advice: "Look for longer than these clients wait (--interval 10s), or run the agent.",
		})
	}
	if what := words.Strangers(s); what != "" {
		out = append(out, model.Finding{
			Code: "clients_kept_out", Severity: model.SeverityWarning,
			Evidence: phrase.Capital(what) + ". Whether they are clients of this server is not known: " + droppoints.Strangers(s) + ".",
			Advice:   "Where they come from is among the addresses that lose most, in the JSON. Scanners of ports are kept out as meant, and nothing is to be changed for them; clients are to ask where it listens, or to be let through.",
		})
	}
	if s.AddressMissing() {
		out = append(out, addressMissing(s))
	}
	if tried := s.NobodyTried(); tried > 0 && !s.AddressMissing() {
		out = append(out, model.Finding{
			Code: "nobody_tried", Severity: model.SeverityInfo,
			Evidence: phrase.Sprintf("No client's SYN has reached this network namespace for this port in the last %s.", phrase.Seconds(tried)),
			Advice:   "Who cannot connect meanwhile is stopped before: by the name that it resolves, by its route, by a firewall or a balancer, or, in front of a container, by the host's own rules.",
		})
	}
	return out
}

// addressMissing says what follows of an address that is not there.
func addressMissing(s *symptoms.Symptoms) model.Finding {
	m, level := s.Now.AddressMissing, model.SeverityInfo
	if s.CutOff() {
		level = model.SeverityWarning
	}
	parts := []string{phrase.Capital(words.AddressMissing(s)) + ": nothing that a client sends is delivered."}
	if n := s.Open(); n > 0 {
		parts = append(parts, phrase.Sprintf("%s %s still held whose clients it does not hear any more.", phrase.Count(n, "connection"), phrase.Verb(n, "is", "are")))
	} else if m.HadClients {
		parts = append(parts, "Clients were connected while it was there.")
	}
	if m.Standby {
		parts = append(parts, "It may be bound to an address that is not there (net.ipv4.ip_nonlocal_bind, or IP_FREEBIND), as on a standby until it takes the address over.")
	} else {
		parts = append(parts, "It was there when the listener was bound.")
	}
	return model.Finding{
		Code: "address_missing", Severity: level, Evidence: strings.Join(parts, " "),
		Advice: "Unless another machine is meant to have the address now, give it back to an interface, or have the server listen on all addresses or on one that is there, and restart.",
	}
}

// countsUnattributed reports whether the unattributed packets are among the
// dropped ones: a namespace with one listener has nobody else to drop them.
func countsUnattributed(s *symptoms.Symptoms) bool {
	var by uint64
	for _, d := range s.Losses().By {
		by += d.Packets
	}
	return s.Losses().DroppedPackets > by
}

// packetNumbers says how many packets of each kind were dropped, where that is known.
func packetNumbers(s *symptoms.Symptoms) string {
	n := packets(s)
	var parts []string
	for _, k := range []struct {
		kind      model.Packet
		one, many string
	}{
		{model.PacketSYN, "SYN", "SYNs"},
		{model.PacketACK, "final ACK or data behind it", "final ACKs or data behind them"},
		{model.PacketUnknown, "packet of unknown kind", "packets of unknown kind"},
	} {
		if n[k.kind] == 0 {
			continue
		}
		parts = append(parts, phrase.Sprintf("%d %s", n[k.kind], phrase.Verb(n[k.kind], k.one, k.many)))
	}
	text := "Dropped" + words.InInterval(s) + ": " + strings.Join(parts, " and ") + ". These are packets, retransmissions included"
	if clients, known := s.WithoutRoom(); known {
		text += ", of " + words.OrMore(s, clients) + " by their handshakes"
	} else {
		text += ": the clients behind them are at most as many, usually fewer"
	}
	for _, d := range s.Losses().By {
		if d.Estimated {
			return text + "; part of them is an estimate, for several listeners dropped at once."
		}
	}
	return text + "."
}

func packets(s *symptoms.Symptoms) map[model.Packet]uint64 {
	n := make(map[model.Packet]uint64)
	rest := s.Losses().DroppedPackets
	for _, d := range s.Losses().By {
		n[d.Packet] += d.Packets
		rest -= min(rest, d.Packets)
	}
	n[model.PacketUnknown] += rest // counted as this listener's, but not distinguished
	return n
}

// packetMeaning is what a client sees of each kind. A full queue never refuses.
func packetMeaning(s *symptoms.Symptoms) string {
	n := packets(s)
	var parts []string
	if n[model.PacketSYN]+n[model.PacketUnknown] > 0 {
		parts = append(parts, "A client whose SYN is dropped hears nothing and tries again after 1 s: it sees a second or more of delay, or a connect timeout, never a refusal.")
	}
	if n[model.PacketACK]+n[model.PacketUnknown] > 0 {
		after := "A client whose final ACK is dropped believes it is connected, sends its request and hears nothing: a read timeout, or a reset later."
		if s.Sysctl["tcp_abort_on_overflow"] == 1 {
			after = "A client whose final ACK is dropped believes it is connected and is reset (tcp_abort_on_overflow=1)."
		}
		parts = append(parts, after)
	}
	return strings.Join(parts, " ")
}
