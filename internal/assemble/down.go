package assemble

import (
	"github.com/tcpdiag/tcpdiag/internal/diagnosis"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// down adds the expected ports on which nothing listens, each with what its last
// listener's clients lost.
func (d *Draft) down() {
	for _, t := range d.Targets {
		if t.Up {
			continue
		}
		l := model.Listener{ID: model.ListenerID{NetNS: t.NetNS}, Port: t.Port, Expected: true}
		if n := d.f.Namespace(t.NetNS); n != nil && n.Down[t.Port] != nil {
			lost := *n.Down[t.Port]
			lost.WorstCase = append(diagnosis.WorstCase(&lost, nil, n.Sysctl), diagnosis.SeenRefused)
			l.Losses = &lost
		}
		d.Listeners = append(d.Listeners, l)
	}
}
