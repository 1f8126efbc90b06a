package recording

import "github.com/tcpdiag/tcpdiag/internal/model"

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
