package incident

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/incident/recording"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// totals are what was counted at a port in an incident, whoever listens there: a server that ends takes its own
// totals along, and who is refused afterwards is counted for the port.
type totals struct {
	sum     recording.Counted
	seen    map[Key]recording.Counted // of each listener on the port, as last read; see forget
	refused uint64                    // of the port, as last read
}

// newTotals begin with what was counted before, of the listener that key is.
func newTotals(before map[Key]recording.Counted, key Key, refused uint64) totals {
	t := totals{sum: before[key], seen: make(map[Key]recording.Counted), refused: refused}
	for k, c := range before {
		if k.Port == key.Port && k.ID.NetNS == key.ID.NetNS {
			t.seen[k] = c
		}
	}
	return t
}

// add takes what a listener of the port has counted by now.
func (t *totals) add(key Key, now recording.Counted) {
	more := recording.Since(new(t.seen[key].Until(&now)), &now)
	t.seen[key] = now
	t.sum = t.sum.Plus(&more)
}

// refuse takes how many the port has refused by now, attributed to this incident, or to another of the port.
func (t *totals) refuse(now uint64, attributed bool) {
	if n := now - min(now, t.refused); attributed && n > 0 {
		clients := model.ClientTotals{Begun: n}
		clients.Outcomes[model.ClientRefused] = n
		if t.sum.Clients != nil {
			clients = clients.Add(*t.sum.Clients)
		}
		t.sum.Clients = &clients
	}
	t.refused = now
}

// minSeen are remembered at least, without being asked whether somebody keeps their totals.
const minSeen = 64

// forget leaves those out whose totals nobody keeps any more: who comes back begins again. So they are hardly more than a snapshot has, on
// however many addresses of a port somebody listens.
func (t *totals) forget(s *model.Snapshot) {
	if len(t.seen) <= minSeen+len(s.Listeners)+len(s.Retired) {
		return
	}
	remaining := make(map[Key]recording.Counted, len(s.Listeners)+len(s.Retired))
	keep := func(k Key) {
		if c, ok := t.seen[k]; ok {
			remaining[k] = c
		}
	}
	for i := range s.Listeners {
		keep(KeyOf(&s.Listeners[i]))
	}
	for i := range s.Retired {
		keep(Key{s.Retired[i].ID, s.Retired[i].ID.Address.Port()})
	}
	t.seen = remaining
}

// refusedAt is how many clients an expected port has refused, where somebody counts them.
func refusedAt(s *model.Snapshot, netns uint64, port uint16) (n uint64, known bool) {
	i := slices.IndexFunc(s.Targets, func(t model.Target) bool { return t.NetNS == netns && t.Port == port })
	if i < 0 || s.Targets[i].Refused == nil {
		return 0, false
	}
	return *s.Targets[i].Refused, true
}
