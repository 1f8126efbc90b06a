package render

import (
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// answerBar is how wide a stage's bar is below an answer; a narrow screen has none.
const (
	answerBar = 12
	narrow    = 66
)

// stages are one line each, from the client inwards, with where packets are dropped and
// which stage is to be fixed first.
func (s answerText) stages(level brevity) {
	stages := s.shown(level)
	used, most := 1, 1
	for i := range stages {
		used = max(used, lipgloss.Width(known(stages[i].used)))
		most = max(most, lipgloss.Width(stages[i].maximum()))
	}
	for i := range stages {
		s.stageLine(&stages[i], used, most)
	}
}

// shown are the stages of which there is something to see: without a half-open
// connection the SYN backlog is none, and where room is short the calm ones are left out.
func (s answerText) shown(level brevity) []stage {
	all := append([]stage{synBacklog(s.l), acceptQueue(s.l), connections(s.l), threads(s.l), backend(s.l), openFiles(s.l)}, otherLimits(s.l)...)
	return slices.DeleteFunc(all, func(st stage) bool {
		switch {
		case st.name == "":
			return true
		case s.marked(st.name):
			return false
		case st.neverFull && (st.used == nil || *st.used == 0):
			return true
		}
		return level >= withoutCalmStages && !st.nearFull()
	})
}

func (st *stage) nearFull() bool {
	return st.used != nil && st.max != nil && *st.max > 0 && float64(*st.used)/float64(*st.max) >= .8
}

func (s answerText) stageLine(st *stage, used, most int) {
	head := []span{
		{text: blanks(answerIndent)},
		{padRight(st.name, 13), plain},
		{padLeft(known(st.used), used+1), bold},
		{" / ", dim},
		{padRight(st.maximum(), most), plain},
	}
	gap := span{text: "  "}
	if st.used == nil || st.max == nil || *st.max <= 0 {
		head = append(head, gap)
		head = append(head, span{printable(cmpOr(st.why, st.source)), dim})
	} else {
		ratio := float64(*st.used) / float64(*st.max)
		if s.width >= narrow {
			head = append(append(head, gap), bar(ratio, answerBar, st.level(ratio))...)
		}
		head = append(head, span{padLeft(st.percent(ratio), 6), st.level(ratio)})
	}
	s.line(append(head, s.notes(st)...)...)
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// notes are what is to be known of a stage, the mark first.
func (s answerText) notes(st *stage) []span {
	var out []span
	name := st.name
	if name == rootStage(s.l) && (st.used == nil || st.max == nil || st.nearFull()) {
		out = append(out, span{"  ◀ " + s.wide("fix this first", "fix first"), fixStyle})
	}
	if name == droppingStage(s.l) {
		out = append(out, span{"  ◀ drops here", bad})
	}
	if text := stageNote(s.l, name); text != "" {
		out = append(out, span{"  " + text, dim})
	}
	return out
}

// wide is the longer of two forms where there is room.
func (s answerText) wide(long, short string) string {
	if s.width < narrow {
		return short
	}
	return long
}

func (s answerText) marked(name string) bool {
	return name == rootStage(s.l) || name == droppingStage(s.l)
}

// soon is how near a stage must be to its end for that to be worth a word here.
const soon = 10 * time.Minute

// stageNote is a few words beside the bar.
func stageNote(l *model.Listener, name string) string {
	switch name {
	case "accept queue":
		if q := l.AcceptQueue; q != nil && q.OldestWait != nil {
			return "oldest " + howLong(*q.OldestWait)
		}
	case "connections":
		return connectionsNote(l.Connections)
	case "threads":
		if p := l.Process; p != nil && p.Downstream != nil {
			if n := p.Downstream.Locked(l); n > 0 {
				return phrase.Number(n) + " wait: lock, pool, timer"
			}
		}
	case "backend":
		if p := busiestPeer(l); p != nil {
			return peerName(p)
		}
	}
	if full := fullIn(l, name); full != nil && *full <= soon {
		return "full in " + howLong(*full)
	}
	return ""
}

func connectionsNote(c *model.Connections) string {
	switch {
	case c == nil:
		return ""
	case c.Phases[model.Waiting] > 0:
		return plural(c.Phases[model.Waiting], "waits", "wait") + " for a thread"
	case c.Phases[model.Idle] > 0:
		return phrase.Number(c.Phases[model.Idle]) + " idle"
	}
	return ""
}

// droppingStage is where packets of clients were dropped; "" where none were.
func droppingStage(l *model.Listener) string {
	if l.Losses == nil || l.Losses.DroppedPackets == 0 || l.Verdict.Status != model.StatusLosing {
		return ""
	}
	for _, d := range l.Losses.By {
		if d.Packets > 0 && d.Cause != model.CauseSynBacklog {
			return "accept queue"
		}
	}
	if len(l.Losses.By) > 0 {
		return "SYN backlog"
	}
	return ""
}

// rootStage is the stage that the others are full because of; "" where the cause is no
// stage, or nothing is to be fixed.
func rootStage(l *model.Listener) string {
	v := &l.Verdict
	if v.Status == model.StatusOK || v.Status == model.StatusDown {
		return ""
	}
	root := v.Cause
	if n := len(v.Chain); n > 0 {
		root = v.Chain[n-1]
	}
	switch root {
	case model.CauseMaxThreads, model.CauseExecutorQueue:
		return "threads"
	case model.CauseMaxConnections, model.CauseKeepAliveIdle:
		return "connections"
	case model.CauseConnectionPool, model.CauseDownstream:
		return "backend"
	case model.CauseOpenFiles:
		return "open files"
	case model.CauseAcceptQueue, model.CauseSlowAccept, model.CauseBacklogClamped:
		return "accept queue"
	case model.CauseSynBacklog:
		return "SYN backlog"
	case model.CauseEphemeralPorts:
		return "ephemeral ports"
	}
	return ""
}

// backend is the peer that the cause is, as a stage behind the threads; none where the
// cause is none.
func backend(l *model.Listener) stage {
	p := busiestPeer(l)
	if p == nil || rootStage(l) != "backend" {
		return stage{}
	}
	return stage{name: "backend", used: &p.InFlight, max: &p.Connections}
}

// busiestPeer is the peer with the most requests in flight.
func busiestPeer(l *model.Listener) *model.Peer {
	if l.Process == nil || l.Process.Downstream == nil {
		return nil
	}
	var most *model.Peer
	for i := range l.Process.Downstream.Peers {
		if p := &l.Process.Downstream.Peers[i]; p.InFlight > 0 && (most == nil || p.InFlight > most.InFlight) {
			most = p
		}
	}
	return most
}

func peerName(p *model.Peer) string {
	if p.Name != "" {
		return printable(p.Name) + " " + p.Address.String()
	}
	return p.Address.String()
}

// lost says what was dropped and what clients see of it, in one line.
func (s answerText) lost() {
	lo := s.l.Losses
	if lo == nil || lo.DroppedPackets == 0 {
		return
	}
	text := plural(lo.DroppedPackets, "packet", "packets") + " in " + howLong(s.snap.Interval)
	if len(lo.WorstCase) > 0 {
		text += "; clients may see: " + strings.ReplaceAll(worstCase(lo.WorstCase), ",", " or")
	}
	s.part("Lost", span{text: text + "."})
}
