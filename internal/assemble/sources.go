package assemble

import "github.com/tcpdiag/tcpdiag/internal/facts"

// sources says what could be read lately, for source_up.
func sources(f *facts.View) map[string]bool {
	answers := len(f.Watchlist.Silent) == 0
	up := map[string]bool{"sock_diag": answers && len(f.Unread) == 0, "netstat": answers, "sysctl": true, "sockstat": true}
	for i := range f.Namespaces {
		n := &f.Namespaces[i]
		if !n.Counted {
			continue
		}
		up["sysctl"] = up["sysctl"] && n.SysctlOK
		up["sockstat"] = up["sockstat"] && n.Sockstat != nil
		up["sock_diag"] = up["sock_diag"] && n.Answers
	}
	for i := range f.Watchlist.Watched {
		list := f.Connections[f.Watchlist.Watched[i].ID]
		if last, ok := list.Last(); ok && last.Value.Counts.Partial {
			up["sock_diag"] = false
		}
	}
	return up
}
