package loadtest

import "github.com/tcpdiag/tcpdiag/internal/model"

// Latency is how long clients waited for the first byte of their answer, from their first SYN
// on (tcpdiag_listener_first_response_seconds): of a sixteenth of the clients.
type Latency struct {
	Count   uint32
	Buckets [model.NumResponseBuckets]uint32 // cumulative
}

func (y *Latency) join(later Latency) {
	y.Count += later.Count
	for i := range y.Buckets {
		y.Buckets[i] += later.Buckets[i]
	}
}

func latencyOf(r *model.FirstResponses) (y Latency) {
	y.Count = uint32(r.Count)
	for i := range r.Buckets {
		y.Buckets[i] = uint32(r.Buckets[i])
	}
	return y
}

// Quantile is the time within which a share of the clients had the first byte; false without
// any, or beyond the last bound.
func (c *Course) Quantile(y Latency, share float64) (seconds float64, known bool) {
	r := model.FirstResponses{Count: uint64(y.Count), Bounds: c.bounds}
	for i, n := range y.Buckets {
		r.Buckets[i] = uint64(n)
	}
	return r.Quantile(share)
}

// SeesAnswers reports whether it is known which clients had an answer.
func (c *Course) SeesAnswers() bool { return c.tapped && c.latest.clients.Answers.Known }

// Latency is that of the whole run.
func (c *Course) Latency() (all Latency) {
	for i := range c.Points {
		all.join(c.Points[i].Latency)
	}
	return all
}
