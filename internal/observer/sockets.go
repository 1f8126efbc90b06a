package observer

import (
	"errors"
	"net/netip"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/sockdiag"
)

// gathered is what one walk of the socket table found behind one listener.
type gathered struct {
	connections model.Connections
	states      [sockdiag.Closing + 1]int
	synBacklog  int
	queued      int
	lingering   int // of those waiting: see lingers
	oldest      time.Duration
	closed      []netip.AddrPort // peers of those whose client sent FIN before its answer: see unanswered
}

// walk goes once through the socket table for the watched ports of both
// families. The counts of a walk that was cut short each time it was tried are
// marked partial.
func (sp *space) walk(at time.Time, kept, all []*candidate) (map[*candidate]*gathered, error) {
	out := make(map[*candidate]*gathered, len(kept))
	ports := make([]uint16, 0, len(kept))
	listeners := matcher{listeners: make(map[bound]*gathered, len(kept))}
	watched := make(map[uint16]bool)
	for _, c := range kept {
		out[c] = &gathered{}
		if !watched[c.port()] {
			watched[c.port()] = true
			ports = append(ports, c.port())
		}
	}
	for _, c := range all { // an unwatched listener on a watched port has its own
		if watched[c.port()] {
			g := out[c]
			if g == nil {
				g = &gathered{}
			}
			listeners.listeners[bound{c.id.Address, c.members[0].Interface}] = g
		}
	}
	if len(ports) == 0 {
		return out, nil
	}
	sp.slow.OnRestart = func() {
		for _, g := range listeners.listeners {
			*g = gathered{}
		}
	}
	timeWait := sp.countsTimeWait(at, kept)
	err := sp.slow.Sockets(ports, statesToWalk(timeWait), func(s *sockdiag.Socket) error {
		if g := listeners.find(s); g != nil {
			g.add(s)
		}
		return nil
	})
	switch {
	case !timeWait:
		sp.recallTimeWait(out)
	case err == nil:
		sp.countedTimeWait(at, out)
	}
	for _, g := range out {
		g.finish(err != nil)
	}
	if errors.Is(err, sockdiag.ErrInterrupted) {
		err = nil
	}
	return out, err
}

// add counts one socket in exactly one place. Inode 0 also marks SYN_RECV,
// TIME_WAIT and orphans, so the state comes first.
func (g *gathered) add(s *sockdiag.Socket) {
	switch s.State {
	case sockdiag.SynRecv:
		g.synBacklog++
		return
	case sockdiag.Established, sockdiag.CloseWait:
	default:
		g.states[s.State]++
		return
	}
	if s.State == sockdiag.CloseWait && unanswered(s) {
		g.closed = append(g.closed, s.Remote)
	}
	if s.Inode == 0 {
		g.queued++
		if s.HasInfo {
			// Set when the handshake completes, and nothing was sent since.
			g.oldest = max(g.oldest, s.Info.LastDataSent)
		}
		return
	}
	g.states[s.State]++
	g.connections.Accepted++
	phase := phaseOf(s)
	g.connections.Phases[phase]++
	switch {
	case phase == model.Waiting && lingers(s):
		g.lingering++
	case phase == model.Idle && silent(&s.Info):
		g.connections.Silent++
	}
	if s.State == sockdiag.CloseWait && s.RecvQ > 1 { // FIN itself counts as one byte
		g.connections.Abandoned++
	}
}

// sockets is the number of all of them but the half-open and those in TIME_WAIT.
func (g *gathered) sockets() int {
	n := g.queued - g.states[sockdiag.TimeWait]
	for _, k := range g.states {
		n += k
	}
	return n
}

func (g *gathered) finish(partial bool) {
	g.connections.Partial = partial
	g.connections.States = make(map[string]int)
	for state, n := range g.states {
		if n > 0 {
			g.connections.States[sockdiag.State(state).String()] = n
		}
	}
}
