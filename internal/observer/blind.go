package observer

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
