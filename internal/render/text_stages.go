package render

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
	"github.com/tcpdiag/tcpdiag/internal/render/term"
)

// Stage is one line of the funnel.
type Stage struct {
	name      string
	used, Max *int
	why       string // why used or max is not known
	unlimited bool
	source    string // where max comes from
	short     string // the same for narrow screens
	detail    string // what short leaves out
	fullIn    *time.Duration
	// neverFull is for the SYN backlog: whether it is full is said by
	// counters, never by its length.
	neverFull bool
}

func synBacklog(l *model.Listener) Stage {
	st := Stage{name: "SYN backlog", neverFull: true}
	if l.SynBacklog == nil {
		st.why = "not scanned"
		return st
	}
	st.used, st.Max = &l.SynBacklog.Length, &l.SynBacklog.Limit
	return st
}

// AcceptQueue is the queue of what was not accepted yet, in connections.
func AcceptQueue(l *model.Listener) Stage {
	st := Stage{name: "accept queue"}
	q := l.AcceptQueue
	if q == nil {
		st.why = "not read"
		return st
	}
	st.used, st.Max = new(min(q.Length, q.Capacity())), new(q.Capacity())
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

// Connections are those that the server has accepted, over maxConnections.
func Connections(l *model.Listener) Stage {
	st := Stage{name: "connections"}
	if n, known := l.Taken(); known {
		st.used = &n
	} else {
		st.why = "not scanned"
	}
	if k := l.Connector; k == nil || k.MaxConnections == nil {
		st.why = "not known; give --max-connections"
	} else {
		st.limit(k.MaxConnections)
	}
	return st
}

// limit sets the maximum from the connector's setting; negative is none.
func (st *Stage) limit(s *model.Setting[int]) {
	st.source, st.short, st.detail = s.Origin(), shortSource(s), detailOf(s)
	if s.Value < 0 {
		st.unlimited = true
		return
	}
	st.Max = &s.Value
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

// Threads are busy workers over maxThreads: as the diagnosis counted them, as
// Actuator says, or as the phases show.
func Threads(l *model.Listener) Stage {
	st := Stage{name: "threads"}
	st.used, st.why = BusyThreads(l)
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
	if st.used != nil && st.Max != nil && *st.used > *st.Max { // the limit, or what a request is, is not as it seems
		st.used, st.why = nil, "not known: more requests than threads"
		if v := &l.Verdict; v.Cause == model.CauseMaxThreads || slices.Contains(v.Chain, model.CauseMaxThreads) {
			st.used = st.Max
		}
	}
	return st
}

// BusyThreads also says why, where it is not known.
func BusyThreads(l *model.Listener) (busy *int, why string) {
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

func openFiles(l *model.Listener) Stage {
	st := Stage{name: "open files"}
	p := l.Process
	if p == nil {
		st.why = "owner not visible"
		return st
	}
	st.used, st.Max = p.OpenFiles, p.OpenFilesLimit
	if st.used == nil || st.Max == nil {
		st.why = "not readable"
		return st
	}
	if *st.Max > 0 { // it may have been lowered below what is open
		st.used = new(min(*st.used, *st.Max))
	}
	st.source = "soft limit of pid " + strconv.Itoa(p.PID)
	st.short = "soft limit"
	return st
}

// otherLimits are those that are no stage of the funnel, such as ephemeral ports.
func otherLimits(l *model.Listener) []Stage {
	var out []Stage
	for i := range l.Limits {
		lim := &l.Limits[i]
		switch lim.Name {
		case "syn_backlog", "accept_queue", "max_connections", "max_threads", "open_files":
		default:
			st := Stage{name: StageOf(lim.Name), used: &lim.Used, Max: &lim.Max}
			if p := l.Process; lim.Name == string(model.CauseEphemeralPorts) && p != nil && p.Busiest != nil {
				st.source, st.detail = "to "+p.Busiest.Address.String(), "to "+p.Busiest.Address.String()
			}
			out = append(out, st)
		}
	}
	return out
}

func (st *Stage) maximum() string {
	if st.unlimited {
		return "no limit"
	}
	return known(st.Max)
}

func (st *Stage) level(ratio float64) term.Style {
	switch {
	case st.neverFull:
		return term.Plain
	case ratio >= 1:
		return term.Bad
	case ratio >= .8:
		return term.Warn
	default:
		return term.Good
	}
}

// percent is rounded down: 100 % is said of nothing but a full stage.
func (st *Stage) percent(ratio float64) string {
	if ratio >= 1 && !st.neverFull {
		return "FULL"
	}
	if ratio > 0 && ratio < .01 {
		return "<1 %"
	}
	return phrase.Number(int(min(ratio, 1)*100)) + " %"
}

// note is the forecast, or else where the limit comes from: whole where it
// fits, in a word where it does not.
func (st *Stage) note(room int) (note term.Span, shortened bool) {
	if st.fullIn != nil {
		return term.Warn.Of("  full in " + term.HowLong(*st.fullIn)), st.detail != ""
	}
	if text := term.Printable(st.source); lipgloss.Width(text) <= room {
		return term.Dim.Of("  " + text), false
	}
	return term.Dim.Of("  " + term.Printable(st.short)), st.detail != ""
}

// known is a number, or n/a.
func known(n *int) string {
	if n == nil {
		return "n/a"
	}
	return phrase.Number(*n)
}

// StageOf is a limit's name on the screen.
func StageOf(limit string) string {
	switch limit {
	case "syn_backlog":
		return "SYN backlog"
	case "max_connections":
		return "connections"
	case "max_threads":
		return "threads"
	default:
		return term.Printable(term.Spaced(limit))
	}
}
