package diagnosis

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// status is the worst that the evidence shows.
func (j *judge) status() model.Status {
	switch {
	case j.s.OnlyElsewhere() && !j.s.RefusedHere():
		return model.StatusWarning
	case !j.s.Now.Listening():
		return model.StatusDown
	case j.s.Losses().DroppedPackets > 0 || j.s.ResetInQueue() > 0 || j.s.TurnsAway():
		return model.StatusLosing
	case j.saturated():
		return model.StatusSaturated
	case j.high() != model.CauseNone || j.s.QueueWaitsLong() || j.s.RequestsStand() || j.s.WorkerStands() || j.s.SilentPeer() != nil || j.s.Unacknowledged() || j.s.LeftInside() || j.s.Forgotten() || j.s.Unheard() > 0 || j.s.TLSFails() || j.s.LeftUnanswered() || j.s.LongUnanswered() || j.s.CutOff() || j.s.OnlyStrangers() || j.s.SomeUnanswered():
		return model.StatusWarning
	}
	return model.StatusOK
}

// onlyStands: that is all there is to warn of.
func (j *judge) onlyStands(v model.Verdict) bool {
	return v.Status == model.StatusWarning && j.high() == model.CauseNone
}

// saturated: a stage is full and something waits in front of it. In front of
// a full accept queue are the handshakes, in front of maxConnections the
// accept queue, in front of the threads the requests that nobody has read, in front
// of a pool of connections the requests that virtual threads have begun. A
// process without descriptors or ports only makes wait what it cannot take, one that
// does not run makes wait whoever comes.
func (j *judge) saturated() bool {
	return j.s.QueueFull || j.s.ConnectionsFull || j.s.ThreadsFull || j.s.Waits.Virtual ||
		j.s.OutOfFiles && j.s.Both(reading.QueueWaits) ||
		j.s.ExecutorFull && reading.WaitingRequests(j.s.Now) > 0 ||
		causes.NobodyAccepts(j.s) ||
		j.s.Halted() || j.s.InLongSafepoint() && j.holds(causes.Surely) == model.CauseJVMPause ||
		j.s.Both(reading.WithoutPoller) && j.s.Both(reading.UnreadAny) || j.starved() != model.CauseNone
}

// seenOnce: a stage is full in this snapshot. That is no state yet, but not nothing
// either.
func (j *judge) seenOnce() bool {
	e := j.s.From
	e.Before, e.First = nil, false
	return newJudge(e, j.catalogue, j.s.T).saturated()
}

// high names the stage that is at 80 % or more in two snapshots. Connections only
// count when clients wait or the forecast fills them, threads when clients wait:
// they come and go too fast to be forecast.
func (j *judge) high() model.Cause {
	return causes.Outranking(j.catalogue, func(c *causes.Cause) causes.Certainty {
		return causes.When(c.Near != nil && c.Near(j.s), causes.Surely)
	}).Name
}
