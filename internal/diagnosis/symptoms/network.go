package symptoms

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Repeated is how many segments of open connections the network namespace has sent again in the interval
// (RetransSegs without SYNs and SYN-ACKs, TCPSynRetrans), and how many others it has sent (OutSegs, which has no
// repeated ones); 0 of 0 where they are not known, or few.
func (s *Symptoms) Repeated() (again, others uint64) {
	all := s.Delta["RetransSegs"]
	again = all - min(all, s.Delta["TCPSynRetrans"])
	if again < repeatedLeast || !s.Now.Listening() {
		return 0, 0
	}
	return again, s.Delta["OutSegs"]
}

// RepeatedShare is their share of all; 0 where that is not known.
func (s *Symptoms) RepeatedShare() float64 {
	again, others := s.Repeated()
	if again == 0 {
		return 0
	}
	return float64(again) / float64(again+others)
}

// RepeatsMany means that they are more than a network loses that works, whoever is behind it.
func (s *Symptoms) RepeatsMany() bool { return s.RepeatedShare() >= repeatedMany }

const (
	// repeatedLeast is of how many segments that is said.
	repeatedLeast = 10
	// repeatedMany is above the 2.8 % that the web servers of a large site were measured to need on average, for clients all over
	// the Internet (Dukkipati et al., Proportional Rate Reduction for TCP, 2011).
	repeatedMany = .03
)

// Struggled is how many clients needed a packet again to connect, or have not managed to so far, while the server answered
// them: they were let in late, or gave up, or still try after a SYN-ACK; and of how many whom it answered. 0 where the
// listener may have dropped their packets.
func (s *Symptoms) Struggled() (n, of uint64) {
	c := s.Clients()
	if c == nil || !s.Now.Listening() || s.DroppedLately() || s.WasFull() {
		return 0, 0
	}
	o := &c.Outcomes
	n = o[model.ClientDelayed] + c.GaveUpUnreached + s.stalledClients() + uint64(max(0, c.Stalling+c.Unreached))
	return n, n + o[model.ClientConnected] + o[model.ClientReset]
}

// StruggledMany means that they are a twentieth at least.
func (s *Symptoms) StruggledMany() bool {
	n, of := s.Struggled()
	return n >= leftLeast && struggledPart*n >= of
}

// Lossy means that packets are lost between clients and this network namespace: many clients struggle to connect, or a
// quarter of the connections have had much sent again, in both snapshots, and so does all that is sent on open connections.
func (s *Symptoms) Lossy() bool {
	return s.RepeatsMany() && s.StruggledMany() ||
		s.RepeatedShare() >= 2*repeatedMany && s.Both(func(l *model.Listener) bool { return reading.Repeating(l) > 0 }) && !s.Unacknowledged()
}

// FailByLoss means that clients fail by that, or that some have left which were sent a SYN-ACK and are not known to have
// got in, while segments of open connections are lost as well.
func (s *Symptoms) FailByLoss() bool {
	n, _ := s.Struggled()
	return s.TurnsAway() && (s.Lossy() || n > 0 && s.stalledClients() > 0 && s.RepeatsMany())
}

// struggledPart: one of as many clients is more than a network loses.
const struggledPart = 20
