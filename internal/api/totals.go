package api

import "github.com/tcpdiag/tcpdiag/internal/model"

// Totals are running totals of an address since whoever watches it began: what differs between
// two documents is of the time between them. Each is left out where it is 0 or not followed.
type Totals struct {
	DroppedBy         map[string]uint64 `json:"dropped_by,omitempty"` // packets, by cause
	AbandonedRequests uint64            `json:"abandoned_requests,omitempty"`
	QueueResets       uint64            `json:"queue_resets,omitempty"`
	Clients           *ClientTotals     `json:"clients,omitempty"`
}

// ClientTotals are clients since their handshakes were first followed, by outcome.
type ClientTotals struct {
	Begun      uint64  `json:"begun"`
	Connected  uint64  `json:"connected"`
	Delayed    uint64  `json:"delayed"`
	GaveUp     uint64  `json:"gave_up"`
	Stalled    uint64  `json:"stalled"`
	Refused    uint64  `json:"refused"`
	Reset      uint64  `json:"reset"`
	HalfOpen   uint64  `json:"half_open"`
	Undecided  uint64  `json:"undecided"`
	LetIn      uint64  `json:"let_in"`
	LetInLate  uint64  `json:"let_in_late"`
	Untracked  uint64  `json:"untracked,omitempty"`
	Answered   *uint64 `json:"answered,omitempty"` // this and the next three: where the server's first byte is an answer
	Unanswered *uint64 `json:"unanswered,omitempty"`
	Checks     *uint64 `json:"checks,omitempty"`
	Unclear    *uint64 `json:"answer_unclear,omitempty"`

	Responses *ResponseTotals `json:"first_responses,omitempty"`
}

// ResponseTotals is the histogram of tcpdiag_listener_first_response_seconds.
type ResponseTotals struct {
	Count      uint64    `json:"count"`
	SumSeconds float64   `json:"sum_seconds"`
	Bounds     []float64 `json:"bounds_seconds"`
	Buckets    []uint64  `json:"buckets"` // cumulative, for each of the bounds
}

func newTotals(t *model.Totals) *Totals {
	if len(t.Dropped) == 0 && t.AbandonedRequests == 0 && t.QueueResets == 0 && t.Clients == nil {
		return nil
	}
	out := &Totals{AbandonedRequests: t.AbandonedRequests, QueueResets: t.QueueResets, DroppedBy: make(map[string]uint64, len(t.Dropped))}
	for key, n := range t.Dropped {
		if n > 0 {
			out.DroppedBy[string(key.Cause)] += n
		}
	}
	if c := t.Clients; c != nil {
		out.Clients = newClientTotals(c)
	}
	return out
}

func newClientTotals(c *model.ClientTotals) *ClientTotals {
	out := &ClientTotals{Begun: c.Begun, LetIn: c.LetIn, LetInLate: c.LetInLate, Untracked: c.Untracked}
	for o, field := range out.outcomes() {
		*field = c.Outcomes[o]
	}
	if a := c.Answers; a.Known {
		out.Answered, out.Unanswered, out.Checks, out.Unclear = new(a.Answered), new(a.Unanswered), new(a.Checks), new(a.Unclear)
	} else if a.Least {
		out.Unanswered = new(a.Unanswered)
	}
	if r := c.Responses; r.Count > 0 {
		out.Responses = &ResponseTotals{Count: r.Count, SumSeconds: r.Sum, Bounds: r.Bounds[:], Buckets: r.Buckets[:]}
	}
	return out
}

func (c *ClientTotals) outcomes() map[model.ClientOutcome]*uint64 {
	return map[model.ClientOutcome]*uint64{
		model.ClientConnected: &c.Connected, model.ClientDelayed: &c.Delayed, model.ClientGaveUp: &c.GaveUp, model.ClientStalled: &c.Stalled,
		model.ClientRefused: &c.Refused, model.ClientReset: &c.Reset, model.ClientHalfOpen: &c.HalfOpen, model.ClientUndecided: &c.Undecided,
	}
}

func (t *Totals) model() (out model.Totals) {
	if t == nil {
		return out
	}
	out.AbandonedRequests, out.QueueResets, out.Dropped = t.AbandonedRequests, t.QueueResets, make(map[model.DropKey]uint64)
	for name, n := range t.DroppedBy {
		out.Dropped[model.DropKey{Cause: model.Cause(name)}] += n
	}
	c := t.Clients
	if c == nil {
		return out
	}
	out.Clients = &model.ClientTotals{Begun: c.Begun, LetIn: c.LetIn, LetInLate: c.LetInLate, Untracked: c.Untracked}
	for o, field := range c.outcomes() {
		out.Clients.Outcomes[o] = *field
	}
	if c.Answered != nil || c.Unanswered != nil {
		out.Clients.Answers = model.ClientAnswers{Known: c.Answered != nil, Least: c.Answered == nil, Answered: counted(c.Answered), Unanswered: counted(c.Unanswered), Checks: counted(c.Checks), Unclear: counted(c.Unclear)}
	}
	if r := c.Responses; r != nil {
		out.Clients.Responses.Count, out.Clients.Responses.Sum = r.Count, r.SumSeconds
		copy(out.Clients.Responses.Bounds[:], r.Bounds)
		copy(out.Clients.Responses.Buckets[:], r.Buckets)
	}
	return out
}
