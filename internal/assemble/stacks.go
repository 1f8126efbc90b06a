package assemble

import (
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/hostproc"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// stacks gives the processes what their JVMs said of their threads.
func (d *Draft) stacks() {
	if len(d.f.Stacks) == 0 {
		return
	}
	var keys []hostproc.ProcessKey
	for i := range d.Listeners {
		p := d.Listeners[i].Process
		if p == nil {
			continue
		}
		key := hostproc.ProcessKey{PID: p.PID, StartTime: p.StartTime}
		known, ok := d.f.Stacks[key]
		if !ok {
			continue
		}
		p.Stacks = known.Stacks
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range append(keys, hostproc.ProcessKey{}) { // what concerns no process of its own comes last
		d.add(d.f.Stacks[key].Missed)
	}
}

func (d *Draft) add(list []model.Unavailable) { d.miss.Add(list...) }
