package recording

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Counted are the listener's totals since the agent started.
type Counted struct {
	Dropped           []model.Drops       `json:"Dropped"`
	Pending           uint64              `json:"Pending"` // dropped packets whose cause was still being read
	AbandonedRequests uint64              `json:"AbandonedRequests"`
	QueueResets       uint64              `json:"QueueResets"`
	Clients           *model.ClientTotals `json:"Clients"`
}

// Since is what was counted between two moments.
func Since(base, last *Counted) Counted {
	out := Counted{
		Pending:           last.Pending,
		AbandonedRequests: last.AbandonedRequests - min(base.AbandonedRequests, last.AbandonedRequests),
		QueueResets:       last.QueueResets - min(base.QueueResets, last.QueueResets),
	}
	for _, d := range last.Dropped {
		if d.Packets -= min(d.Packets, base.of(d.DropKey)); d.Packets > 0 {
			out.Dropped = append(out.Dropped, d)
		}
	}
	if last.Clients != nil {
		out.Clients = new(*last.Clients)
		if base.Clients != nil {
			*out.Clients = last.Clients.Sub(*base.Clients)
		}
	}
	return out
}

// Until is c where now counts on from it, and nothing where now began again, as after a listener was closed for an
// hour. The clients begin again by themselves where their handshakes are followed from the start again.
func (c Counted) Until(now *Counted) Counted {
	fewer := func(d model.Drops) bool { return now.of(d.DropKey) < d.Packets }
	if c.Clients != nil && (now.Clients == nil || now.Clients.Begun < c.Clients.Begun) {
		c.Clients = nil
	}
	if slices.ContainsFunc(c.Dropped, fewer) {
		return Counted{Clients: c.Clients}
	}
	return c
}

// Plus is both together, with what is still being read as of the later.
func (c Counted) Plus(more *Counted) Counted {
	out := Counted{
		Pending: more.Pending, AbandonedRequests: c.AbandonedRequests + more.AbandonedRequests, QueueResets: c.QueueResets + more.QueueResets,
		Dropped: slices.Clone(c.Dropped), Clients: c.Clients,
	}
	for _, d := range more.Dropped {
		if i := slices.IndexFunc(out.Dropped, func(o model.Drops) bool { return o.DropKey == d.DropKey }); i >= 0 {
			out.Dropped[i].Packets += d.Packets
		} else {
			out.Dropped = append(out.Dropped, d)
		}
	}
	if c.Clients != nil && more.Clients != nil {
		out.Clients = new(c.Clients.Add(*more.Clients))
	} else if more.Clients != nil {
		out.Clients = more.Clients
	}
	return out
}

func (c *Counted) of(key model.DropKey) uint64 {
	for _, d := range c.Dropped {
		if d.DropKey == key {
			return d.Packets
		}
	}
	return 0
}

// Packets is how many were dropped in the incident.
func (c *Counted) Packets() (sum uint64) {
	for _, d := range c.Dropped {
		sum += d.Packets
	}
	return sum + c.Pending
}
