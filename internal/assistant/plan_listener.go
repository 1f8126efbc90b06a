package assistant

import (
	"context"
	"fmt"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/api/plandoc"
)

// fromListener fills in what the listener on a port and its kernel have in force, and
// says of each limit where it is from.
func (s *server) fromListener(ctx context.Context, port uint16, in *plandoc.PlanInput) (taken []string, err error) {
	snap, err := s.source.Snapshot(ctx, Query{Port: port})
	if err != nil {
		return nil, err
	}
	clean(snap)
	i := slices.IndexFunc(snap.Listeners, func(l api.Listener) bool { return l.AcceptQueue != nil })
	if i < 0 {
		return nil, fmt.Errorf("from_port %d: nothing that is watched listens there", port)
	}
	l := &snap.Listeners[i]
	take := func(name string, dst *int, value *int, source string) {
		if value == nil {
			taken = append(taken, fmt.Sprintf("%s is not known, %d is assumed", name, *dst))
			return
		}
		*dst = *value
		taken = append(taken, fmt.Sprintf("%s %d (%s)", name, *value, source))
	}
	c := l.Connector
	if c == nil {
		c = &api.Connector{}
	}
	take("max_connections", &in.MaxConnections, valueOf(c.MaxConnections), sourceOf(c.MaxConnections))
	take("accept_count", &in.AcceptCount, &l.AcceptQueue.Limit, "in force, the listener's Send-Q")
	in.InForce = true
	if c.VirtualThreads != nil && c.VirtualThreads.Value {
		take("threads", &in.Threads, new(-1), "no limit: virtual threads")
	} else {
		take("threads", &in.Threads, valueOf(c.MaxThreads), sourceOf(c.MaxThreads))
	}
	for _, n := range snap.NetNS {
		if n.ID == l.NetNS {
			takeSysctls(in, n.Sysctl)
		}
	}
	return taken, nil
}

func takeSysctls(in *plandoc.PlanInput, values map[string]int) {
	for name, dst := range map[string]*int{"somaxconn": &in.Somaxconn, "tcp_max_syn_backlog": &in.MaxSynBacklog} {
		if v, ok := values[name]; ok {
			*dst = v
		}
	}
	for name, dst := range map[string]*bool{"tcp_syncookies": &in.Syncookies, "tcp_abort_on_overflow": &in.AbortOnOverflow} {
		if v, ok := values[name]; ok {
			*dst = v != 0
		}
	}
}

func valueOf(s *api.Setting[int]) *int {
	if s == nil {
		return nil
	}
	return &s.Value
}

func sourceOf(s *api.Setting[int]) string {
	if s == nil {
		return ""
	}
	return s.Source
}
