package render

import (
	"strconv"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

func synBacklog(l *backlog.Listener) stage {
	st := stage{name: "SYN backlog", neverFull: true}
	if l.SynBacklog == nil {
		st.why = "not scanned"
		return st
	}
	st.used, st.max = &l.SynBacklog.Length, &l.SynBacklog.Limit
	return st
}

func acceptQueue(l *backlog.Listener) stage {
	st := stage{name: "accept queue"}
	q := l.AcceptQueue
	if q == nil {
		st.why = "not read"
		return st
	}
	st.used, st.max = &q.Length, new(q.Capacity())
	st.source, st.kind = "backlog "+number(q.Limit)+" + 1", "backlog + 1"
	if k := l.Connector; k != nil && k.AcceptCount != nil {
		sum := "acceptCount " + number(q.Limit) + " + 1"
		if k.AcceptCount.Value > q.Limit {
			sum = "acceptCount " + number(k.AcceptCount.Value) + " clamped to " + number(q.Limit)
		}
		st.source, st.kind = sum+", "+settingSource(k.AcceptCount), sum
	}
	return st
}

func connections(l *backlog.Listener) stage {
	st := stage{name: "connections"}
	if l.Connections == nil {
		st.why = "not scanned"
	} else {
		st.used = new(l.Connections.Held())
	}
	if k := l.Connector; k == nil || k.MaxConnections == nil {
		st.why = "maxConnections not known; --max-connections tells"
	} else {
		st.limit(k.MaxConnections)
	}
	return st
}

// limit sets the maximum from the connector's setting; negative is none.
func (st *stage) limit(s *backlog.Setting[int]) {
	st.source, st.kind = settingSource(s), string(s.Kind)
	if s.Value < 0 {
		st.unlimited = true
		return
	}
	st.max = &s.Value
}

// threads are busy workers over maxThreads: as the diagnosis counted them, as
// Actuator says, or as the phases tell.
func threads(l *backlog.Listener) stage {
	st := stage{name: "threads"}
	st.used, st.why = busyThreads(l)
	k := l.Connector
	switch {
	case k == nil || k.MaxThreads == nil && k.VirtualThreads == nil:
		st.why = "maxThreads not known; --max-threads tells"
	case k.VirtualThreads != nil && k.VirtualThreads.Value:
		st.unlimited = true
		st.source = "virtual threads: maxThreads does not apply"
	case k.MaxThreads == nil:
		st.why = "maxThreads not known; --max-threads tells"
	default:
		st.limit(k.MaxThreads)
	}
	return st
}

// busyThreads also says why, where it cannot be known.
func busyThreads(l *backlog.Listener) (busy *int, why string) {
	for i := range l.Limits {
		if l.Limits[i].Name == string(backlog.CauseMaxThreads) {
			return &l.Limits[i].Used, ""
		}
	}
	k, c := l.Connector, l.Connections
	switch {
	case k != nil && k.BusyThreads != nil:
		return k.BusyThreads, ""
	case c == nil:
		return nil, "not scanned"
	case k != nil && (k.TLS || k.HTTP2):
		return nil, "requests are not visible under TLS; Actuator knows"
	default:
		return new(c.Phases[backlog.InService] + c.Phases[backlog.Sending]), ""
	}
}

func openFiles(l *backlog.Listener) stage {
	st := stage{name: "open files"}
	p := l.Process
	if p == nil {
		st.why = "owner not visible"
		return st
	}
	st.used, st.max = p.OpenFiles, p.OpenFilesLimit
	if st.used == nil || st.max == nil {
		st.why = "not readable"
		return st
	}
	st.source = "soft limit of pid " + strconv.Itoa(p.PID)
	st.kind = "soft limit"
	return st
}

// otherLimits are those that are no stage of the funnel, such as ephemeral ports.
func otherLimits(l *backlog.Listener) []stage {
	var out []stage
	for i := range l.Limits {
		lim := &l.Limits[i]
		switch lim.Name {
		case "syn_backlog", "accept_queue", "max_connections", "max_threads", "open_files":
		default:
			out = append(out, stage{name: stageOf(lim.Name), used: &lim.Used, max: &lim.Max})
		}
	}
	return out
}
