package observer

// sources tells what the latest scan could read, for source_up.
func (s *Sampler) sources() map[string]bool {
	up := map[string]bool{"sock_diag": s.dumped && s.walked, "netstat": s.dumped, "sysctl": true, "sockstat": true}
	for _, sp := range s.spaces {
		if !sp.awake() {
			continue
		}
		up["sysctl"] = up["sysctl"] && len(sp.sysctl) > 0 && sp.sysctlErr == nil
		up["sockstat"] = up["sockstat"] && sp.sockstat != nil
	}
	return up
}

// blind publishes that the kernel no longer answers. What was seen last stays,
// with its time: its readers are told that it is old.
func (s *Sampler) blind() {
	last := s.published.Load()
	if last == nil {
		return
	}
	stale := *last
	stale.Self.SourceUp = map[string]bool{"sock_diag": false, "netstat": false}
	s.published.Store(&stale)
}
