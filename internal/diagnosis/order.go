package diagnosis

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/diagnosis/causes"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// chain lists the full stages from the client inwards.
func (j *judge) chain() []model.Cause {
	var full []causes.Cause
	lost := j.lossCause()
	for _, c := range j.catalogue {
		if c.Full != nil && c.Full(j.s, lost) {
			full = append(full, c)
		}
	}
	slices.SortStableFunc(full, func(a, b causes.Cause) int { return a.Depth - b.Depth })
	var out []model.Cause
	for _, c := range full {
		out = append(out, c.Name)
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
		n := j.s.DroppedFor(c.Name)
		total += n
		if n > most {
			all, most = c.Name, n
		}
		if n > mostTelling && !c.OnlyFull {
			telling, mostTelling = c.Name, n
		}
	}
	if mostTelling > 0 && float64(mostTelling) >= j.s.T.LossFraction*float64(total) {
		return telling
	}
	return all
}

// starved names what keeps a process from what it has threads and connections for,
// while clients wait for seconds.
func (j *judge) starved() model.Cause { return j.holds(causes.Possibly) }

// holds is the first cause of the present state with that certainty.
func (j *judge) holds(is causes.Certainty) model.Cause {
	return causes.Outranking(j.catalogue, func(c *causes.Cause) causes.Certainty { return causes.When(c.Now.Of(j.s) == is, causes.Surely) }).Name
}

func (j *judge) queueCause() model.Cause { return causes.QueueCause(j.catalogue, j.s.Pair) }
