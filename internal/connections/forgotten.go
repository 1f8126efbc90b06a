package connections

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// forgotten finds connections that something between the clients and the server no longer knows, as a firewall whose idle
// timeout is shorter than the server's: the server ends them, its FIN is repeated, and nothing acknowledges it, while other
// connections of the same address are heard of. A client that is gone, but whose host is there, answers with a reset; a host
// that is gone has no other connection.
type forgotten struct {
	ended, heard frequent // by address
}

// silentFor is how long a FIN has been without an answer, at least, and another connection has been heard of, at most:
// some packets in a row are lost in any network.
const silentFor = 5 * time.Second

// end takes a connection that its process has ended. Only the FIN is not acknowledged (write_seq - snd_una is 1): packets
// of full size have other reasons not to arrive. The RTO is doubled with each repetition (tcp_retransmit_timer), so what
// has gone by is nearly as long.
func (f *forgotten) end(s *sockdiag.Socket) {
	if s.State == sockdiag.FinWait1 && s.SendQ == 1 && s.HasInfo && s.Info.Retransmits >= unacknowledgedAfter &&
		s.Info.RTO-s.Info.RTO>>s.Info.Retransmits >= silentFor {
		f.ended.add(s.Remote.Addr())
	}
}

// open takes a connection that is there.
func (f *forgotten) open(s *sockdiag.Socket) {
	if s.HasInfo && s.Info.LastAckRecv < silentFor {
		f.heard.add(s.Remote.Addr())
	}
}

// number is how many are known to be, at least.
func (f *forgotten) number() (n int) {
	for i, count := range f.ended.counts {
		if count > 0 && f.heard.has(f.ended.addresses[i]) {
			n += count
		}
	}
	return n
}
