package causes

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/advice"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/symptoms"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// ephemeralPortsUsedUp: outgoing connections to one destination take nearly all local ports, or those of clients on this
// machine to the listener do.
func ephemeralPortsUsedUp() Cause {
	return Cause{
		Name: model.CauseEphemeralPorts,
		Near: func(s *symptoms.Symptoms) bool {
			return s.StageHigh(reading.StageEphemeralPorts) || s.ClientPortsHigh()
		},
		Full:    func(s *symptoms.Symptoms, _ model.Cause) bool { return s.PortsFull },
		Depth:   80,
		Because: becauseUnknown,
		Evidence: func(s *symptoms.Symptoms, v model.Verdict) string {
			return words.Join(words.LossNumbers(s, model.CauseEphemeralPorts, v, true), portsOr(s), words.ConnectionNumbers(s), words.QueueNumbers(s))
		},
		Advice: func(s *symptoms.Symptoms, _ model.Verdict) string { return advisePorts(s) },
		Steps: func(s *symptoms.Symptoms, _ model.Verdict) ([]model.Step, string) {
			return portSteps(s), "Any of Tomcat's limits: they have no part in it."
		},
		Book: Runbook{
			Title:     "local ports towards one destination are used up",
			Seen:      "Outgoing connections to one destination use nearly all local ports. Where all of them are in TIME_WAIT no process owns them: they are the network namespace's, and which process used them is only known if it was seen with connections there before. Or connections from one loopback address to the listener do: a proxy on this machine then has no port for another, and no packet shows that.",
			Clients:   "Errors of the application, or of the proxy beside the server: \"Cannot assign requested address\"; of the proxy a status of 502.",
			Change:    "Reuse outgoing connections (a client with a keep-alive pool); widen `net.ipv4.ip_local_port_range`; `net.ipv4.tcp_tw_reuse=1`. Other destinations are not affected: a local port can be in use towards each of them.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "four fifths of ip_local_port_range are in use towards one address, or from one loopback address to the listener",
			Otherwise: "nothing",
		},
	}
}

// byClients: it is the clients' ports that are used up, and not the process's.
func byClients(s *symptoms.Symptoms) bool {
	return s.ClientPortsHigh() && !s.StageHigh(reading.StageEphemeralPorts)
}

// Ports says which ports are in use towards what.
func Ports(s *symptoms.Symptoms) string {
	if !byClients(s) {
		return words.Stage(s, model.CauseEphemeralPorts)
	}
	used, most, from, _ := reading.ClientPorts(s.Now, s.Sysctl)
	return phrase.Sprintf("connections from %s to port %v have %d of the %d local ports: when none is left, who connects from there (a proxy on this machine) cannot assign one", from, s.Now.Port, min(used, most), most)
}

func portsOr(s *symptoms.Symptoms) string {
	if byClients(s) {
		return Ports(s)
	}
	return words.StageOr(s, model.CauseEphemeralPorts)
}

// clientPortSteps are what helps clients on this machine.
func clientPortSteps(s *symptoms.Symptoms, most int) (do []model.Step) {
	if most < reading.WidestPortRange {
		do = append(do, widerRange(s))
	}
	return append(do,
		advice.Action("Have the proxy connect to several addresses (127.0.0.1 and 127.0.0.2 in its upstream), or by a Unix socket: each address has all ports for itself"),
		advice.Action("Where they are idle, let the proxy keep fewer of them, or end them sooner"))
}

func widerRange(s *symptoms.Symptoms) model.Step {
	return model.Step{
		Text: "Widen the range; keep the ports of local services out of it (ip_local_reserved_ports)", Command: `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`,
		Setting: "net.ipv4.ip_local_port_range", From: phrase.Sprintf("%v-%v", s.Sysctl["ip_local_port_range_min"], s.Sysctl["ip_local_port_range_max"]), To: "1024-65535",
	}
}

func portSteps(s *symptoms.Symptoms) []model.Step {
	if _, most, _, _ := reading.ClientPorts(s.Now, s.Sysctl); byClients(s) {
		return clientPortSteps(s, most)
	}
	do := []model.Step{advice.Action("Reuse outgoing connections: a client with a keep-alive pool. Each one, and its TIME_WAIT for a minute after, takes a port")}
	if adviseTimeWait(s) != "" {
		do = append(do, model.Step{
			Text: "Let connections take ports that have been in TIME_WAIT for a second, if both ends use TCP timestamps", Command: "sysctl -w net.ipv4.tcp_tw_reuse=1",
			Setting: "net.ipv4.tcp_tw_reuse", From: phrase.Sprintf("%v", s.Sysctl["tcp_tw_reuse"]), To: "1", Limit: reading.LimitReuse,
		})
	}
	if l, ok := reading.LimitNamed(s.Limits, reading.StageEphemeralPorts); ok && l.Max < reading.WidestPortRange {
		wider := widerRange(s)
		wider.Limit = reading.LimitPorts
		do = append(do, wider)
	}
	return do
}

func advisePorts(s *symptoms.Symptoms) string {
	if byClients(s) {
		return "Widen net.ipv4.ip_local_port_range, or have the proxy on this machine connect to several addresses (127.0.0.1 and 127.0.0.2) or by a Unix socket: towards each address a local port can be used once. Tomcat's limits have no part in it."
	}
	l, _ := reading.LimitNamed(s.Limits, reading.StageEphemeralPorts)
	text := "Reuse outgoing connections (a client with a keep-alive pool): each one, and its TIME_WAIT for a minute after, takes a port."
	if l.Max < reading.WidestPortRange {
		text += fmt.Sprintf(" Or widen the range: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" gives %d towards one destination instead of %d; keep the ports of local services out of it (ip_local_reserved_ports).", reading.WidestPortRange, l.Max)
	}
	return text + adviseTimeWait(s) + " Tomcat's limits have no part in it."
}

// adviseTimeWait: net.ipv4.tcp_tw_reuse is 2 by default since Linux 4.19, the loopback
// alone. 1 helps connections with timestamps, and only the end that connects.
func adviseTimeWait(s *symptoms.Symptoms) string {
	d := s.Now.Process.Busiest
	if reuse, ok := s.Sysctl["tcp_tw_reuse"]; d == nil || !ok || reuse == 1 || 2*d.TimeWait < d.Ports {
		return ""
	}
	return " Or let connections take ports that have been in TIME_WAIT for a second: sysctl -w net.ipv4.tcp_tw_reuse=1 (if both ends use TCP timestamps)."
}
