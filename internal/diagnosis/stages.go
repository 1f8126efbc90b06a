package diagnosis

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/words"
	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/phrase"
)

// Backend is the stage behind the threads: the peer that they wait for. Other stages have
// the names of model.Limit.
const Backend = "backend"

// DroppingStage is where packets of clients are dropped; "" where none are.
func DroppingStage(l *model.Listener) string {
	if l.Losses == nil || l.Losses.DroppedPackets == 0 || l.Verdict.Status != model.StatusLosing {
		return ""
	}
	for _, d := range l.Losses.By {
		if d.Packets > 0 && d.Cause != model.CauseSynBacklog {
			return reading.StageAcceptQueue
		}
	}
	if len(l.Losses.By) > 0 && l.Verdict.Cause != model.CauseBeforeListener { // these find no route back
		return "syn_backlog"
	}
	return ""
}

// RootStage is the stage that the others are full because of; "" where the cause is no
// stage, or nothing is to be fixed.
func RootStage(l *model.Listener) string {
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
		return reading.StageMaxThreads
	case model.CauseMaxConnections, model.CauseKeepAliveIdle:
		return reading.StageMaxConnections
	case model.CauseConnectionPool, model.CauseDownstream:
		return Backend
	case model.CauseAcceptQueue, model.CauseSlowAccept, model.CauseBacklogClamped:
		return reading.StageAcceptQueue
	case model.CauseOpenFiles, model.CauseSynBacklog, model.CauseEphemeralPorts:
		return string(root)
	}
	return ""
}

// BusiestPeer is the peer of the process with the most requests in flight, nil without one.
func BusiestPeer(l *model.Listener) *model.Peer {
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

// soon is how near a stage must be to its end for that to be worth a word.
const soon = 10 * time.Minute

// StageNote is a few words of what happens in a stage; "" where there is nothing to say.
func StageNote(l *model.Listener, stage string) string {
	switch stage {
	case string(model.CauseSynBacklog):
		if b := l.SynBacklog; b != nil && b.Length > b.Limit {
			return "may exceed its limit by a few"
		}
	case reading.StageAcceptQueue:
		if q := l.AcceptQueue; q != nil && q.OldestWait != nil {
			return "oldest " + phrase.Seconds(*q.OldestWait)
		}
	case reading.StageMaxConnections:
		return connectionsNote(l)
	case reading.StageMaxThreads:
		if p := l.Process; p != nil && p.Downstream != nil {
			if n := p.Downstream.Locked(l); n > 0 {
				return phrase.Number(n) + " " + phrase.Verb(n, "waits", "wait") + ": lock, pool, timer"
			}
		}
	case Backend:
		if p := BusiestPeer(l); p != nil {
			return words.PeerName(p)
		}
	}
	for i := range l.Limits {
		if lim := &l.Limits[i]; lim.Name == stage && lim.FullIn != nil && *lim.FullIn <= soon {
			return "full in " + phrase.Seconds(*lim.FullIn)
		}
	}
	return ""
}

func connectionsNote(l *model.Listener) string {
	if n := reading.WaitingRequests(l); n > 0 { // those of clients that have left, too, as the answer counts them
		return phrase.Number(n) + " " + phrase.Verb(n, "waits", "wait") + " for a thread"
	}
	if c := l.Connections; c != nil && c.Phases[model.Idle] > 0 {
		return phrase.Number(c.Phases[model.Idle]) + " idle"
	}
	return ""
}
