package downstream

import (
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

const (
	// window is what AllInFlight and PerSecond span.
	window = time.Minute
	// rests is how many readings of a process at rest the background is the
	// median of, and fewest how many it takes.
	rests, fewest = 15, 3
)

// Memory is what is remembered of a process from reading to reading.
type Memory struct {
	at      time.Time
	flights map[uint64]Flight    // by cookie
	begun   map[uint64]time.Time // of those that connect: when first seen
	peers   map[netip.AddrPort]*history
}

// history is one peer's past.
type history struct {
	readings []past
	rest     []int // in flight while nobody was served, the latest last
}

type past struct {
	at      time.Time
	elapsed time.Duration // since the one before
	begun   int
	all     bool // every connection was in flight, or may have been
}

// flight is the state of a connection, with the help of its state before: on one
// on which something was sent since then, that state is over.
func (m *Memory) flight(c *Connection, elapsed time.Duration) Flight {
	if c.Flight != Unknown || c.Age < elapsed {
		return c.Flight
	}
	return m.flights[c.Cookie]
}

// since is how long a connection has been trying at least: the first try is
// repeated after a second, and each later one no earlier (tcp_syn_linear_timeouts).
func (m *Memory) since(c *Connection) time.Duration {
	tries := time.Duration(c.Retransmits) * time.Second
	if first, ok := m.begun[c.Cookie]; ok {
		return max(tries, m.at.Sub(first))
	}
	return tries
}

// Next takes a reading of the process's connections. busy is how many requests
// the process is serving, nil where that is not known: then nothing is learned of
// its background.
func (m *Memory) Next(at time.Time, list []Connection, busy *int) *model.Downstream {
	var elapsed time.Duration
	if !m.at.IsZero() {
		elapsed = at.Sub(m.at)
	}
	m.at = at
	peers, partial := count(list, m, elapsed)
	m.remember(at, list, elapsed)
	order := ranked(peers)
	m.record(at, elapsed, peers, atRest(order, busy))
	out := &model.Downstream{At: at, Partial: partial}
	for i, t := range order {
		if i == MaxPeers {
			out.Others = rest(order[i:])
			break
		}
		m.peers[t.Address].fill(&t.Peer)
		out.Peers = append(out.Peers, t.Peer)
	}
	return out
}

// atRest is how many of what is in flight no request that is being served can
// account for; negative where that is not known. Only a process that serves fewer
// requests than are in flight proves it.
func atRest(order []*peerCounts, busy *int) int {
	if busy == nil {
		return -1
	}
	all := 0
	for _, t := range order {
		all += t.InFlight
	}
	if *busy > 0 && 2**busy > all {
		return -1
	}
	return *busy
}

func (m *Memory) remember(at time.Time, list []Connection, elapsed time.Duration) {
	flights, begun := make(map[uint64]Flight, len(list)), make(map[uint64]time.Time)
	for i := range list {
		c := &list[i]
		if c.Flight == Connecting {
			first, ok := m.begun[c.Cookie]
			if !ok {
				first = at
			}
			begun[c.Cookie] = first
			continue
		}
		flights[c.Cookie] = m.flight(c, elapsed)
	}
	m.flights, m.begun = flights, begun
}

// record adds the reading to each peer's past. busy is negative where the process
// is not at rest.
func (m *Memory) record(at time.Time, elapsed time.Duration, peers map[netip.AddrPort]*peerCounts, busy int) {
	next := make(map[netip.AddrPort]*history, len(peers))
	for address, t := range peers {
		h := m.peers[address]
		if h == nil {
			h = &history{}
		}
		h.push(past{at: at, elapsed: elapsed, begun: t.begun, all: t.InFlight+t.Connecting > 0 && t.InFlight+t.Connecting+t.Unknown == t.Connections})
		if busy >= 0 {
			h.rest = append(h.rest[max(0, len(h.rest)+1-rests):], max(0, t.InFlight-busy))
		}
		next[address] = h
	}
	m.peers = next
}

func (h *history) push(p past) {
	h.readings = slices.DeleteFunc(h.readings, func(old past) bool { return p.at.Sub(old.at) > window })
	h.readings = append(h.readings, p)
}

// fill gives a peer what its past says.
func (h *history) fill(p *model.Peer) {
	p.AllInRow = h.allInRow()
	if n := len(h.readings); n > 1 {
		all := 0
		for _, r := range h.readings {
			if r.all {
				all++
			}
		}
		p.AllInFlight = new(float64(all) / float64(n))
		since := h.readings
		if p.AllInRow > 1 { // what came into the first of them is of the time before
			since = h.readings[n-p.AllInRow+1:]
		}
		p.PerSecond = rate(since)
	}
	if len(h.rest) >= fewest {
		sorted := slices.Clone(h.rest)
		slices.Sort(sorted)
		p.Background = new(sorted[len(sorted)/2])
	}
}

// allInRow is in how many of the latest readings every connection was in flight.
func (h *history) allInRow() (n int) {
	for i := len(h.readings) - 1; i >= 0 && h.readings[i].all; i-- {
		n++
	}
	return n
}

func rate(list []past) *float64 {
	begun, elapsed := 0, time.Duration(0)
	for _, r := range list {
		begun += r.begun
		elapsed += r.elapsed
	}
	if elapsed <= 0 {
		return nil
	}
	return new(float64(begun) / elapsed.Seconds())
}
