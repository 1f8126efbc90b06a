package evidence

import (
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Moment is what one judgement is made from: a process and its acceptor as they are read
// now and were before. near is the reading that shows the acceptor's sleep, wide the one
// that rates are taken from.
type Moment struct {
	near, wide, cur *Reading
	phases          *Phases
	turns           turnover
}

// apart reports whether two readings of one process are at least so far apart.
func (m *Moment) apart(d time.Duration) bool {
	return m.near.taken() && m.cur.Began.Sub(m.near.Ended) >= d
}

const (
	// limitAge is how old a walk may be that shows the limit reached, roomAge
	// one that shows room: a server that fills does so in less than a second.
	limitAge, roomAge = 5 * time.Second, 1500 * time.Millisecond
)

// limit is the number of connections that counts as maxConnections.
func (p *Phases) limit() (int, bool) {
	if !p.MaxConnections.Known || p.MaxConnections.V < 0 {
		return 0, false
	}
	return model.ConnectionsReached(p.MaxConnections.V), true
}

// AtLimit reports whether all slots were taken at the nearest walk.
func (m *Moment) AtLimit() bool {
	p := m.phases
	limit, ok := p.limit()
	return ok && p.Walked && p.Age <= limitAge && p.SlotsInUse >= limit
}

// Room reports whether slots were free, for certain, at the nearest walk.
func (m *Moment) Room() bool {
	p := m.phases
	if !p.Walked || p.Partial || p.Uncertain || p.Age > roomAge || !p.MaxConnections.Known {
		return false
	}
	limit, limited := p.limit()
	return !limited || p.SlotsInUse < limit
}

// FarFromLimit reports whether slots are free, for certain, as the process has fewer files open than a limit that the server says
// itself, or that was set: each slot is a descriptor, those of connections that clients have reset as well, which no walk finds. The
// files must have been counted while the acceptor slept: at the latch all slots are taken as long as it does.
func (m *Moment) FarFromLimit() bool {
	p, files := m.phases, m.cur.Files
	if !p.MaxConnections.Known || p.Uncertain || !p.Given {
		return false
	}
	if p.MaxConnections.V < 0 {
		return true
	}
	meanwhile := !m.cur.Began.Add(-m.cur.FilesAge).Before(m.near.Ended)
	return files.Known && files.V > 0 && meanwhile && float64(files.V) <= far*float64(p.MaxConnections.V)
}

// far is the share of the limit that the open files must be below: some connections may end between two files that are read.
const far = .9

// MostlyIdle reports whether most of the slots were held by idle connections. Idle
// connections that are counted too low cannot be too many.
func (m *Moment) MostlyIdle() bool {
	p := m.phases
	return p.Walked && p.Age <= limitAge && p.SlotsInUse > 0 && model.MostlyIdle(p.Idle, p.SlotsInUse)
}
