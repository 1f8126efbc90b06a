package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

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
	if l, ok := limitNamed(j.limits, stageEphemeralPorts); ok && l.Max < widestRange {
		do = append(do, model.Step{
			Text: "Widen the range; keep the ports of local services out of it (ip_local_reserved_ports)", Command: `sysctl -w net.ipv4.ip_local_port_range="1024 65535"`,
			Setting: "net.ipv4.ip_local_port_range", From: phrase.Sprintf("%v-%v", j.Sysctl["ip_local_port_range_min"], j.Sysctl["ip_local_port_range_max"]), To: "1024-65535",
		})
	}
	return do
}
