package symptoms

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// OnlyElsewhere means that nothing was seen to listen here, or to have listened, and it does in another network namespace, so that
// the wrong one may have been asked.
func (s *Symptoms) OnlyElsewhere() bool {
	return !s.Now.Listening() && s.Now.Expected && s.Now.Elsewhere != nil && s.Now.Last == nil && s.Closed == nil && s.Now.Draining == nil
}

// RefusedHere means that clients come for the port in this network namespace, where nothing listens on it: it is this one that is meant.
func (s *Symptoms) RefusedHere() bool {
	c := s.Clients()
	return c != nil && !s.Now.Listening() && c.Outcomes[model.ClientRefused] > 0
}

// TurnsAway means that clients fail though no packet was dropped at the listener. Of those that were let in
// and had no answer some always leave by themselves, as a browser does that is sent elsewhere.
func (s *Symptoms) TurnsAway() bool {
	unanswered, ended := s.Unanswered()
	return s.failOutside() > 0 || unanswered >= leftLeast && unansweredPart*unanswered >= ended
}

// SomeUnanswered means that one or two were let in and had no answer, of few that ended: as a person who clicks away, or a long poll
// that its client ends.
func (s *Symptoms) SomeUnanswered() bool {
	n, ended := s.Unanswered()
	return n > 0 && n < leftLeast && unansweredPart*n >= ended
}

// failOutside are the clients that fail before they are let in, or that the server resets, but for those of Strangers.
func (s *Symptoms) failOutside() uint64 {
	refused, lost, reset := s.Strangers()
	return s.GaveUp() + s.StillTry() + s.stalledClients() + s.Refused() + s.ResetByServer() - refused - lost - reset
}

// Strangers are the clients that were refused, those that nothing answered, and those that the server reset, where they are few beside
// those that get in: a scanner of ports is as likely one of these as a client, and what keeps it out may be meant to.
func (s *Symptoms) Strangers() (refused, lost, reset uint64) {
	if n := s.Refused(); !s.RefusedMany() {
		refused = n
	}
	if n := s.GaveUp() + s.StillTry(); !s.LostMany() {
		lost = n
	}
	return refused, lost, s.ResetByServer() - s.ResetMany()
}

// OnlyStrangers means that there are some, and that nothing else waits for long.
func (s *Symptoms) OnlyStrangers() bool {
	refused, lost, reset := s.Strangers()
	return refused+lost+reset > 0 && !s.RequestsStand() && !s.QueueWaitsLong()
}

// RefusedMany means that clients were refused, and not only a few strangers: or before it listened, as in a restart.
func (s *Symptoms) RefusedMany() bool {
	c := s.Clients()
	return s.Refused() > 0 && (c != nil && c.RefusedBefore || s.Closed != nil || s.tooMany(s.Refused(), s.LetInLately(), s.OthersGetIn()))
}

// LostMany means the same of clients that nothing answered. What the listener dropped is no stranger's alone, and at an address
// that is not there nobody gets in.
func (s *Symptoms) LostMany() bool {
	n := s.GaveUp() + s.StillTry()
	return n > 0 && (s.DroppedLately() || s.WasFull() || s.AddressMissing() || s.tooMany(n, s.LetInLately(), s.OthersGetIn()))
}

// OnlyUnanswered means that clients were let in and had no answer, and nothing else was lost.
func (s *Symptoms) OnlyUnanswered() bool {
	n, _ := s.Unanswered()
	return n > 0 && s.Losses().DroppedPackets == 0 && s.failOutside() == 0
}

// MostlyUnanswered means that more clients were let in and had no answer than failed otherwise.
func (s *Symptoms) MostlyUnanswered() bool {
	n, _ := s.Unanswered()
	return n > s.failOutside()
}

// WaitedFor is what was shown in the snapshot before, where clients had no answer by its cause: a stage was full then,
// they have left since, and nobody has begun to connect.
func (s *Symptoms) WaitedFor() (was model.Verdict, ok bool) {
	c := s.Clients()
	if s.Shown == nil || !s.Shown.Started || c == nil || c.Begun > 0 || !s.MostlyUnanswered() || s.Losses().DroppedPackets > 0 {
		return was, false
	}
	was = s.Shown.Verdict
	full := was.Status == model.StatusSaturated || was.Status == model.StatusLosing && len(was.Chain) > 0
	return was, was.Cause != model.CauseNone && full
}

// AfterTrouble means that the latest packets were dropped before the clients came that are in
// trouble now, or longer ago than a status goes back.
func (s *Symptoms) AfterTrouble() bool {
	c := s.Clients()
	return s.Now.Recent != nil && (s.Now.Recent.Over || c != nil && c.AfterDrops)
}

// FailsUnseen means that clients fail, and no packet was dropped.
func (s *Symptoms) FailsUnseen() bool { return s.Losses().DroppedPackets == 0 && s.TurnsAway() }

// unansweredPart: one of this many clients without an answer is too many.
const unansweredPart = 20

// ThreadsWanted reports whether requests wait and the threads that are free are
// not many more than these. On a busy server some are always on their way to one.
func (s *Symptoms) ThreadsWanted(l *model.Listener) bool {
	most, _ := reading.MaxThreads(l)
	busy, _ := reading.BusyThreads(l)
	waiting := reading.WaitingRequests(l)
	return waiting > 0 && float64(busy+waiting) >= s.T.ThreadsBusy*float64(most)
}

// StageHigh reports whether a stage is at 80 % or more in both snapshots. The limits
// of the snapshot before are computed again: its sysctls are those of now.
func (s *Symptoms) StageHigh(name string) bool {
	l, ok := reading.LimitNamed(s.Limits, name)
	if !ok || l.Ratio < s.T.High {
		return false
	}
	if s.Before == nil {
		return !s.First
	}
	was, ok := reading.LimitNamed(reading.Headroom(s.Before, nil, 0, s.Sysctl, s.T), name)
	return ok && was.Ratio >= s.T.High
}

// ClientPortsHigh means that clients on this machine have nearly all local ports in use towards the listener: who else wants
// to connect from there, as a proxy beside it, cannot, and no packet shows that.
func (s *Symptoms) ClientPortsHigh() bool {
	return s.Both(func(l *model.Listener) bool {
		used, most, _, ok := reading.ClientPorts(l, s.Sysctl)
		return ok && float64(used) >= s.T.High*float64(most)
	})
}

// Fills reports whether a stage will be full within the horizon.
func (s *Symptoms) Fills(name string) bool {
	l, ok := reading.LimitNamed(s.Limits, name)
	return ok && l.FullIn != nil && *l.FullIn <= s.T.Horizon
}

// ConnectionsHigh leaves idle keep-alive connections out of the count: they
// alone never warn. When clients wait in the accept queue, they count.
func (s *Symptoms) ConnectionsHigh() bool {
	if !s.StageHigh(reading.StageMaxConnections) {
		return false
	}
	if s.Both(s.QueueStands) {
		return true
	}
	return s.Fills(reading.StageMaxConnections) && s.Both(func(l *model.Listener) bool {
		n, ok := reading.SlotsInUse(l)
		return ok && reading.ConnectionLimit(l) == reading.LimitKnown &&
			float64(n-reading.Phase(l, model.Idle)) >= s.T.High*float64(l.Connector.MaxConnections.Value)
	})
}

// TakenUp means that the connections, the threads or what they wait for are used up.
func (s *Symptoms) TakenUp() bool {
	return s.ConnectionsFull || s.ThreadsFull || s.ExecutorFull || s.Waits.Virtual
}

// MostlyIdleNow reports whether most of the connections are idle in the latest snapshot.
func (s *Symptoms) MostlyIdleNow() bool {
	n, ok := reading.SlotsInUse(s.Now)
	return ok && model.MostlyIdle(s.Now.Connections.Unused(), n)
}
