package diagnosis

import "github.com/tcpdiag/tcpdiag/internal/model"

// What clients may have seen of a loss, the values of Losses.WorstCase.
const (
	SeenConnectTimeout = "connect_timeout"
	SeenReadTimeout    = "read_timeout"
	SeenReset          = "reset"
	// SeenRefused is never a consequence of a full queue on Linux. It belongs
	// to a port on which nothing listens.
	SeenRefused = "refused"
)

// WorstCase lists what clients may have seen of these losses, the likeliest
// first: a dropped packet may also have cost no more than the second until the
// retry. It does not know of ports without a listener (see SeenRefused).
//
//   - a dropped SYN is retried in silence, even with tcp_abort_on_overflow=1:
//     connect timeout;
//   - after a dropped final ACK the client believes it is connected: read
//     timeout; with tcp_abort_on_overflow=1 it is reset;
//   - an ACK with a SYN cookie is indistinguishable from the two, but leaves no
//     request socket behind that could answer: read timeout;
//   - connections in the queue of a listener that closes are reset;
//   - an abandoned request is a client whose patience ended: read timeout.
func WorstCase(losses *model.Losses, delta model.Counters, sysctl map[string]int) []string {
	if losses == nil {
		return nil
	}
	var connect, read, reset bool
	by, rest := losses.By, losses.DroppedPackets
	for _, d := range by {
		rest -= min(rest, d.Packets)
	}
	if rest > 0 {
		by = append(by[:len(by):len(by)], model.Drops{DropKey: model.DropKey{Packet: model.PacketUnknown}, Packets: rest})
	}
	for _, d := range by {
		if d.Packets == 0 {
			continue
		}
		connect = connect || d.Packet != model.PacketACK
		if d.Packet == model.PacketSYN || d.Cause == model.CauseSynBacklog {
			continue
		}
		if sysctl["tcp_abort_on_overflow"] == 1 {
			reset = true
			// Cookie ACKs are not reset: no request socket is left to do it.
			read = read || d.Packet == model.PacketUnknown && delta["SyncookiesRecv"] > 0
		} else {
			read = true
		}
	}
	read = read || losses.AbandonedRequests > 0
	reset = reset || losses.QueueResets > 0
	var out []string
	for _, w := range []struct {
		seen bool
		what string
	}{{connect, SeenConnectTimeout}, {read, SeenReadTimeout}, {reset, SeenReset}} {
		if w.seen {
			out = append(out, w.what)
		}
	}
	return out
}
