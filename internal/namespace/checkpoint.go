package namespace

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
)

// checkpoint reads the namespace's counters first, then its listeners, with the
// drops since the last time attributed. The turn holds off the samples: the
// counters must not be read, and attributed, out of order.
func (s *sampler) checkpoint(now time.Time) error {
	counters := s.counters
	clear(counters)
	var c netstat.ListenCounters
	torn, err := s.readDrops(&c, func(c *netstat.ListenCounters) error {
		if err := s.kernel.Counters(counters); err != nil {
			return err
		}
		*c = netstat.ListenCounters{
			ListenDrops: counters["ListenDrops"], ListenOverflows: counters["ListenOverflows"],
			ReqQFullDrop: counters["TCPReqQFullDrop"], ReqQFullDoCookies: counters["TCPReqQFullDoCookies"],
			SyncookiesRecv: counters["SyncookiesRecv"],
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeDump()
	s.watches.miss(now, s.facts.migrates()) // before the checkpoint: it belongs there
	s.books.Tick(now, counts(c, torn), s.dump.sockets)
	s.books.Checkpoint(now, counters)
	return nil
}
