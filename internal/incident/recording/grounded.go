package recording

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Grounded is a listener whose times can be written down: on the wall clock of
// one moment, and as far apart as they were on the monotonic clock, which a
// verdict was judged by. A clock that is set does not change what is judged again.
func Grounded(at time.Time, l *model.Listener) model.Listener {
	out := *l
	g := ground(at)
	g.listener(&out)
	if out.Basis == nil {
		return out
	}
	basis := *out.Basis
	if basis.Before != nil {
		before := *basis.Before
		g.listener(&before)
		basis.Before = &before
	}
	if basis.Shown != nil {
		shown := *basis.Shown
		shown.Last, shown.Better, shown.Other = g.time(shown.Last), g.time(shown.Better), g.time(shown.Other)
		basis.Shown = &shown
	}
	out.Basis = &basis
	return out
}

// ground is the moment that times are set against.
type ground time.Time

func (g ground) time(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	at := time.Time(g)
	return at.Round(0).UTC().Add(t.Sub(at))
}

func (g ground) listener(l *model.Listener) {
	if l.Recent != nil {
		r := *l.Recent
		r.Began, r.Ended, r.Latest = g.time(r.Began), g.time(r.Ended), g.time(r.Latest)
		l.Recent = &r
	}
	if l.Last != nil {
		last := *l.Last
		last.Seen = g.time(last.Seen)
		l.Last = &last
	}
	if l.Connections != nil {
		c := *l.Connections
		c.At = g.time(c.At)
		l.Connections = &c
	}
	if l.Process != nil {
		p := *l.Process
		p.At = g.time(p.At)
		if p.Downstream != nil {
			d := *p.Downstream
			d.At = g.time(d.At)
			p.Downstream = &d
		}
		if p.Stacks != nil {
			s := *p.Stacks
			s.At = g.time(s.At)
			p.Stacks = &s
		}
		l.Process = &p
	}
}
