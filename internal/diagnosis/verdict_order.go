package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// chain lists the full stages from the client inwards.
func (j *judge) chain() []model.Cause {
	var full []cause
	for _, c := range j.catalogue {
		if c.full != nil && c.full(j) {
			full = append(full, c)
		}
	}
	slices.SortStableFunc(full, func(a, b cause) int { return a.depth - b.depth })
	var out []model.Cause
	for _, c := range full {
		out = append(out, c.name)
	}
	return out
}

// lossCause is the cause of the packets dropped in the interval, from the snapshots
// around each drop: the one with most of them. Causes that only say "the queue
// was full" rank behind one that says why, if it has a fair share.
func (j *judge) lossCause() model.Cause {
	var all, telling model.Cause
	var total, most, mostTelling uint64
	for i := range j.catalogue {
		c := &j.catalogue[i]
		n := j.droppedFor(c.name)
		total += n
		if n > most {
			all, most = c.name, n
		}
		if n > mostTelling && !c.onlyFull {
			telling, mostTelling = c.name, n
		}
	}
	if mostTelling > 0 && float64(mostTelling) >= j.T.LossShare*float64(total) {
		return telling
	}
	return all
}

// takenUp: the connections, the threads or what they wait for are used up.
func (j *judge) takenUp() bool {
	return j.connectionsFull || j.threadsFull || j.executorFull || j.waits.virtual
}

// starved names what keeps a process from what it has threads and connections for,
// while clients wait for seconds.
func (j *judge) starved() model.Cause { return j.holds(possibly) }

// holds is the first cause of the present state with that certainty.
func (j *judge) holds(is certainty) model.Cause {
	return outranking(j.catalogue, func(c *cause) certainty { return when(c.now.of(j) == is, surely) }).name
}

func (j *judge) queueCause() model.Cause { return queueCause(j.catalogue, j.Pair) }

// maxConnectionsFull: all connections are taken, or were when packets were dropped.
func maxConnectionsFull(j *judge) bool {
	lost := j.lossCause()
	return j.connectionsFull || lost == model.CauseMaxConnections || lost == model.CauseKeepAliveIdle
}
