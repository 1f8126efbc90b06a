package promexport

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// dropLabels are the labels of one series of dropped packets.
type dropLabels struct {
	key           backlog.DropKey
	cause, packet *dto.LabelPair
}

// foreseenDrops are the series that exist at 0 from the first scrape.
func foreseenDrops() []dropLabels {
	var out []dropLabels
	for _, cause := range backlog.DropCauses() {
		for _, packet := range packetsOf(cause) {
			out = append(out, dropLabels{
				key:    backlog.DropKey{Cause: cause, Packet: packet},
				cause:  label("cause", string(cause)),
				packet: label("packet", string(packet)),
			})
		}
	}
	return out
}

// packetsOf are the packets a cause can drop. A full SYN queue drops SYNs; what
// fills the accept queue drops SYNs (tcp_conn_request) and final ACKs
// (tcp_v4_syn_recv_sock), which the counters cannot always tell apart.
func packetsOf(cause backlog.Cause) []backlog.Packet {
	if cause == backlog.CauseSynBacklog {
		return []backlog.Packet{backlog.PacketSYN}
	}
	return []backlog.Packet{backlog.PacketSYN, backlog.PacketACK, backlog.PacketUnknown}
}
