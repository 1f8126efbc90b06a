package downstream

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// Flight says whether a request is in flight on an outgoing connection.
type Flight uint8

// The answers.
const (
	Unknown    Flight = iota
	Idle              // answered, or nothing was ever asked
	InFlight          // sent and not answered
	Connecting        // SYN_SENT
)

// tick is the longest jiffy (CONFIG_HZ=100). An acknowledgement that came within
// one of the data says nothing: it may have come with them.
const tick = 10 * time.Millisecond

// FlightOf judges a connection by its queues and ages; before is what the reading
// before said of it.
//
// The ages tie in the main case: a driver's BEGIN is answered and the query sent
// in the same jiffy. Then the query's own acknowledgement decides, where it came
// alone (a delayed ACK, so after 40 ms): tcpi_last_ack_recv is younger than
// tcpi_last_data_recv. A response carries the acknowledgement of its request, so
// that on an idle connection the two are equal.
func FlightOf(s *sockdiag.Socket, before Flight) Flight {
	switch {
	case s.State == sockdiag.SynSent:
		return Connecting
	case s.State != sockdiag.Established || s.RecvQ > 0: // closed by the peer, or a response is there
		return Idle
	case s.SendQ > 0:
		return InFlight
	case !s.HasInfo:
		return Unknown
	}
	i := &s.Info
	switch {
	case i.HasDataSegs() && i.DataSegsOut == 0:
		return Idle
	case i.HasDataSegs() && i.DataSegsIn == 0, i.LastDataSent < i.LastDataRecv:
		return InFlight
	case i.LastDataSent > i.LastDataRecv:
		return Idle
	case i.LastAckRecv+tick < i.LastDataRecv:
		return InFlight
	case before == InFlight || before == Idle:
		return before
	}
	return Unknown
}
