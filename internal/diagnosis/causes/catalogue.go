// Package causes is the catalogue: one file a cause, in one order of precedence
// (catalogue.go). An entry says when the cause holds (rule.go), what is said of it, what
// to do about it, and what its page in the documentation begins with. It asks
// package symptoms for what is so, and says it by packages words and advice.
package causes

import (
	"sync"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/reading"
	"github.com/tcpdiag/tcpdiag/internal/evidence"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Catalogue is every cause there is, in the one order of precedence: where the evidence
// shows two of them with the same certainty, the first is named. Whoever names a cause
// goes by it: of a dropped packet at that moment and by the readings around it, of the
// present state, of a stage that is nearly full; so do the texts and the documentation.
//
// First comes what keeps the process from running, and its poller, since every limit fills
// behind that; then the limits, from those that keep it from accepting inwards to what its threads
// wait for; last what is said of a full queue with nothing behind it.
func Catalogue() []Cause { return catalogue() }

var catalogue = sync.OnceValue(func() []Cause { //nolint:gochecknoglobals // built once, as each listener is judged by it, and only read
	return []Cause{
		listenerClosed(),
		noListener(),
		listensElsewhere(),
		beforeListener(),
		jvmPause(),
		cpuThrottles(),
		cpuSaturated(),
		notReading(),
		openFilesUsedUp(),
		keepAliveIdle(),
		maxConnectionsReached(),
		connectionPool(),
		downstreamSlow(),
		executorQueue(),
		maxThreadsBusy(),
		notAccepting(),
		ephemeralPortsUsedUp(),
		serverResets(),
		lossyNetwork(),
		synBacklog(),
		backlogClamped(),
		slowAccept(),
		acceptQueueFull(),
	}
})

// OfMoment names the cause that a moment shows, and what that rests on: accept_queue on
// nothing where it shows none.
func OfMoment(m *evidence.Moment) (model.Cause, evidence.Strength) {
	c := Outranking(Catalogue(), func(c *Cause) Certainty { return c.moment.Of(m) })
	if c.Name == model.CauseNone {
		return model.CauseAcceptQueue, evidence.StrengthNone
	}
	return c.Name, c.rests(m)
}

// DropCause names the limit behind packets that a listener dropped at its accept
// queue between two snapshots, one of model.DropCauses. before may be nil. It
// answers CauseAcceptQueue where it is not known for certain that maxConnections is
// not reached, and nothing else explains the full queue.
func DropCause(before, now *model.Listener, elapsed time.Duration, t reading.Thresholds) model.Cause {
	return QueueCause(Catalogue(), reading.Pair{Now: now, Before: before, Elapsed: elapsed, T: t})
}
