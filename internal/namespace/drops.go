package namespace

import (
	"errors"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/hostproc/netstat"
	"github.com/tcpdiag/tcpdiag/internal/losses"
)

// splitDrops reads the namespace's counters, then every listener's, and
// attributes what the namespace dropped since the last time. In that order: a
// drop between the two reads is then seen by the socket first and carried.
func (s *sampler) splitDrops(now time.Time) error {
	var c netstat.ListenCounters
	torn, err := s.readDrops(&c, s.readListenCounters, s.readAll)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeDump()
	s.books.Tick(now, counts(c, torn), s.dump.sockets)
	return nil
}

// wholeTries bounds how often the counters are read again, where a dump is not expensive.
const wholeTries = 3

// readDrops reads the namespace's counters by read, which fills in c, and then
// every listener's, again if something was dropped meanwhile: a drop that the
// sockets have and the namespace has not looks like a final ACK.
func (s *sampler) readDrops(c *netstat.ListenCounters, counters func(*netstat.ListenCounters) error, sockets reading) (torn bool, err error) {
	s.fast.owed = false
	for range wholeTries {
		if err := errors.Join(counters(c), s.dumpAll(sockets)); err != nil {
			return false, err
		}
		var after netstat.ListenCounters
		if err := s.kernel.ListenCounters(&after); err != nil {
			return false, err
		}
		if after.ListenDrops == c.ListenDrops {
			return false, nil
		}
		if s.dump.cost >= expensive {
			break
		}
	}
	return true, nil
}

func (s *sampler) readListenCounters(c *netstat.ListenCounters) error {
	return s.kernel.ListenCounters(c)
}

func counts(c netstat.ListenCounters, torn bool) losses.NamespaceCounts {
	return losses.NamespaceCounts{
		ListenDrops: c.ListenDrops, ListenOverflows: c.ListenOverflows,
		ReqQFullDrop: c.ReqQFullDrop, ReqQFullDoCookies: c.ReqQFullDoCookies,
		SyncookiesRecv: c.SyncookiesRecv, Torn: torn,
	}
}
