package observer

import "github.com/tcpdiag/tcpdiag/internal/watchlist"

// sources says what could be read lately, for source_up.
func (s *Observer) sources(r *watchlist.List) map[string]bool {
	answers, failed := len(r.Silent) == 0, s.facts.Unread()
	up := map[string]bool{"sock_diag": answers && len(failed) == 0, "netstat": answers, "sysctl": true, "sockstat": true}
	for _, n := range r.Namespaces {
		if !n.Open() {
			continue
		}
		_, ok := n.Sysctl()
		up["sysctl"] = up["sysctl"] && ok
		up["sockstat"] = up["sockstat"] && n.Sockstat() != nil
		up["sock_diag"] = up["sock_diag"] && n.Answers()
	}
	for i := range r.Watched {
		list := s.facts.Connections(r.Watched[i].ID)
		if last, ok := list.Last(); ok && last.Value.Counts.Partial {
			up["sock_diag"] = false
		}
	}
	return up
}

// blind publishes that the kernel no longer answers. What was read last stays,
// with its time: its readers see that it is old.
func (s *Observer) blind() {
	last := s.published.latest.Load()
	if last == nil {
		return
	}
	stale := *last
	stale.Self.SourceUp = map[string]bool{"sock_diag": false, "netstat": false}
	s.published.store(&stale)
}
