package render

import (
	"path"
	"strconv"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

func synBacklog(l *model.Listener) stage {
	st := stage{name: "SYN backlog", neverFull: true}
	if l.SynBacklog == nil {
		st.why = "not scanned"
		return st
	}
	st.used, st.max = &l.SynBacklog.Length, &l.SynBacklog.Limit
	return st
}

func acceptQueue(l *model.Listener) stage {
	st := stage{name: "accept queue"}
	q := l.AcceptQueue
	if q == nil {
		st.why = "not read"
		return st
	}
	st.used, st.max = &q.Length, new(q.Capacity())
	st.source = "backlog " + phrase.Number(q.Limit) + " + 1"
	if k := l.Connector; k != nil && k.AcceptCount != nil {
		st.short = "acceptCount " + phrase.Number(q.Limit) + " + 1"
		if k.AcceptCount.Value > q.Limit {
			st.short = "clamped from " + phrase.Number(k.AcceptCount.Value)
		}
		st.source, st.detail = st.short+", "+k.AcceptCount.Origin(), detailOf(k.AcceptCount)
	}
	return st
}

func connections(l *model.Listener) stage {
	st := stage{name: "connections"}
	if l.Connections == nil {
		st.why = "not scanned"
	} else {
		st.used = new(l.Connections.Held())
	}
	if k := l.Connector; k == nil || k.MaxConnections == nil {
		st.why = "not known; give --max-connections"
	} else {
		st.limit(k.MaxConnections)
	}
	return st
}

// limit sets the maximum from the connector's setting; negative is none.
func (st *stage) limit(s *model.Setting[int]) {
	st.source, st.short, st.detail = s.Origin(), shortSource(s), detailOf(s)
	if s.Value < 0 {
		st.unlimited = true
		return
	}
	st.max = &s.Value
}

// shortSource is a file's name without its folders, or the kind of source.
func shortSource(s *model.Setting[int]) string {
	if s.Kind == model.SourceFile && s.Source != "" && !strings.Contains(s.Source, " ") {
		return path.Base(s.Source)
	}
	return string(s.Kind)
}

// detailOf is what shortSource leaves out.
func detailOf(s *model.Setting[int]) string {
	if s.Source == shortSource(s) {
		return ""
	}
	return s.Source
}

// threads are busy workers over maxThreads: as the diagnosis counted them, as
// Actuator says, or as the phases show.
func threads(l *model.Listener) stage {
	st := stage{name: "threads"}
	st.used, st.why = busyThreads(l)
	k := l.Connector
	switch {
	case k == nil || k.MaxThreads == nil && k.VirtualThreads == nil:
		st.why = "not known; give --max-threads"
	case k.VirtualThreads != nil && k.VirtualThreads.Value:
		st.unlimited = true
		st.source = "virtual threads: maxThreads does not apply"
	case k.MaxThreads == nil:
		st.why = "not known; give --max-threads"
	default:
		st.limit(k.MaxThreads)
	}
	return st
}

// busyThreads also says why, where it is not known.
func busyThreads(l *model.Listener) (busy *int, why string) {
	n, known := l.BusyThreads()
	switch known {
	case model.BusyIsKnown:
		return &n, ""
	case model.BusyEncrypted:
		return nil, "not visible: encrypted; Actuator knows"
	case model.BusyMultiplexed:
		return nil, "not visible: HTTP/2; Actuator knows"
	case model.BusyBeyondThreads:
		return nil, "not known: more requests than threads"
	case model.BusyAfterResets:
		return nil, "not known: clients reset"
	case model.BusyUnseen:
		return nil, "not known: requests wait"
	}
	return nil, "not read"
}

func openFiles(l *model.Listener) stage {
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
	st.short = "soft limit"
	return st
}

// otherLimits are those that are no stage of the funnel, such as ephemeral ports.
func otherLimits(l *model.Listener) []stage {
	var out []stage
	for i := range l.Limits {
		lim := &l.Limits[i]
		switch lim.Name {
		case "syn_backlog", "accept_queue", "max_connections", "max_threads", "open_files":
		default:
			st := stage{name: stageOf(lim.Name), used: &lim.Used, max: &lim.Max}
			if p := l.Process; lim.Name == string(model.CauseEphemeralPorts) && p != nil && p.Busiest != nil {
				st.source, st.detail = "to "+p.Busiest.Address.String(), "to "+p.Busiest.Address.String()
			}
			out = append(out, st)
		}
	}
	return out
}
