package diagnosis

import (
	"fmt"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// ephemeralPortsUsedUp: outgoing connections to one destination take nearly all local ports.
func ephemeralPortsUsedUp() cause {
	return cause{
		name:    model.CauseEphemeralPorts,
		near:    func(j *judge) bool { return j.stageHigh(reading.StageEphemeralPorts) },
		full:    func(j *judge) bool { return j.portsFull },
		depth:   80,
		because: (*judge).becauseUnknown,
		evidence: func(j *judge, v model.Verdict) string {
			return j.join(j.lossNumbers(model.CauseEphemeralPorts, v, true), j.stageOr(model.CauseEphemeralPorts), j.connectionNumbers(), j.queueNumbers())
		},
		advice: func(j *judge, _ model.Verdict) string { return j.advisePorts() },
		steps: func(j *judge, _ model.Verdict) ([]model.Step, string) {
			return j.portSteps(), "Any of Tomcat's limits: they have no part in it."
		},
		book: Runbook{
			Title:     "local ports towards one destination are used up",
			Seen:      "Outgoing connections to one destination use nearly all local ports. Where all of them are in TIME_WAIT no process owns them: they are the network namespace's, and which process used them is only known if it was seen with connections there before.",
			Clients:   "Errors of the application: \"Cannot assign requested address\".",
			Change:    "Reuse outgoing connections (a client with a keep-alive pool); widen `net.ipv4.ip_local_port_range`; `net.ipv4.tcp_tw_reuse=1`. Other destinations are not affected: a local port can be in use towards each of them.",
			Vain:      "Any of Tomcat's limits.",
			Holds:     "four fifths of ip_local_port_range are in use towards one address",
			Otherwise: "nothing",
		},
	}
}

// widestRange are the ports that ip_local_port_range can have at most, of those that no
// privilege is needed for.
const widestRange = 65535 - 1024 + 1

func (j *judge) portSteps() []model.Step {
	do := []model.Step{action("Reuse outgoing connections: a client with a keep-alive pool. Each one, and its TIME_WAIT for a minute after, takes a port")}
	if j.adviseTimeWait() != "" {
		do = append(do, model.Step{
			Text: "Let connections take ports that have been in TIME_WAIT for a second, if both ends use TCP timestamps", Command: "sysctl -w net.ipv4.tcp_tw_reuse=1",
			Setting: "net.ipv4.tcp_tw_reuse", From: phrase.Sprintf("%v", j.Sysctl["tcp_tw_reuse"]), To: "1",
		})
	}
	if l, ok := reading.LimitNamed(j.limits, reading.StageEphemeralPorts); ok && l.Max < widestRange {
		do = append(do, model.Step{
			Text: "Widen the range; keep the ports of local services out of it (ip_local_reserved_ports)", Command: `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`,
			Setting: "net.ipv4.ip_local_port_range", From: phrase.Sprintf("%v-%v", j.Sysctl["ip_local_port_range_min"], j.Sysctl["ip_local_port_range_max"]), To: "1024-65535",
		})
	}
	return do
}

func (j *judge) advisePorts() string {
	l, _ := reading.LimitNamed(j.limits, reading.StageEphemeralPorts)
	s := "Reuse outgoing connections (a client with a keep-alive pool): each one, and its TIME_WAIT for a minute after, takes a port."
	if l.Max < widestRange {
		s += fmt.Sprintf(" Or widen the range: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" gives %d towards one destination instead of %d; keep the ports of local services out of it (ip_local_reserved_ports).", widestRange, l.Max)
	}
	return s + j.adviseTimeWait() + " Tomcat's limits have no part in it."
}

// adviseTimeWait: net.ipv4.tcp_tw_reuse is 2 by default since Linux 4.19, the loopback
// alone. 1 helps connections with timestamps, and only the end that connects.
func (j *judge) adviseTimeWait() string {
	d := j.Now.Process.Busiest
	if reuse, ok := j.Sysctl["tcp_tw_reuse"]; d == nil || !ok || reuse == 1 || 2*d.TimeWait < d.Ports {
		return ""
	}
	return " Or let connections take ports that have been in TIME_WAIT for a second: sysctl -w net.ipv4.tcp_tw_reuse=1 (if both ends use TCP timestamps)."
}
