package handshake

import (
	queue "container/heap"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/tcpdiag/tcpdiag/internal/handshake/kernel"
	"github.com/tcpdiag/tcpdiag/internal/handshake/outcome"
	"github.com/tcpdiag/tcpdiag/internal/handshake/packet"
)

// simulated is a model of the kernel's rules for one listener and its clients, in a time of
// its own: what it drops, for whom it makes a socket (PassiveOpens), and what a tap beside
// it reads. Its random numbers choose the settings and what the clients do.
type simulated struct {
	rand    *rand.Rand
	now     time.Duration
	events  agenda
	tracker *Tracker
	read    []taken       // by the tap, not yet taken in
	lag     time.Duration // of its ring: a block is handed over when it is as old
	wide    time.Duration

	// Settings.
	backlog, slots, threads int
	cookies                 int
	abort                   bool
	retries                 int
	oneWay, service         time.Duration
	loss                    float64
	slow                    bool // the machine: the tap, the answers to its questions and the clients are late at times

	clients []*simulatedClient
	queue   []*simulatedSocket
	taken   int // slots in use
	ready   []*simulatedSocket
	busy    int
	half    int

	opened, cookiesSent, dropped uint64
	notedAt                      time.Duration
	notedCookies, notedDrops     uint64
}

type taken struct {
	at time.Duration
	s  packet.Segment
}

type event struct {
	at time.Duration
	n  int
	do func()
}

type agenda struct {
	list []event
	n    int
}

func (e *agenda) Len() int { return len(e.list) }
func (e *agenda) Less(i, j int) bool {
	a, b := &e.list[i], &e.list[j]
	return a.at < b.at || a.at == b.at && a.n < b.n
}
func (e *agenda) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *agenda) Push(x any)    { e.list = append(e.list, x.(event)) }
func (e *agenda) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

func (m *simulated) after(d time.Duration, do func()) {
	m.events.n++
	queue.Push(&m.events, event{m.now + d, m.events.n, do})
}

func (m *simulated) between(from, to time.Duration) time.Duration {
	return from + time.Duration(m.rand.Int64N(int64(to-from)+1))
}

// slowest is how long a client or the tap waits at most on a slow machine.
const slowest = 300 * time.Millisecond

// late is for how long something has to wait on a slow machine, which it does once in as many times.
func (m *simulated) late(times int, most time.Duration) time.Duration {
	if !m.slow || m.rand.IntN(times) > 0 {
		return 0
	}
	return m.between(0, most)
}

// pass plays what happens until a moment.
func (m *simulated) pass(until time.Duration) {
	for len(m.events.list) > 0 && m.events.list[0].at <= until {
		e := queue.Pop(&m.events).(event)
		m.now = max(m.now, e.at)
		e.do()
	}
	m.now = max(m.now, until)
}

// simulatedSocket is what the server's kernel has for a client.
type simulatedSocket struct {
	c              *simulatedClient
	isn            uint32
	sent, got      uint32 // bytes, and one for a FIN
	acked          uint32
	data           uint32 // of got
	segments       int    // that came, and those of them with data
	withData       int
	byData         bool // the first of them had data, or a FIN
	made, lastSent time.Duration
	accepted, held bool // held: it has a slot
	finIn, finOut  bool
	gone           bool // no socket is left
	timeWait       bool
	timeout        int
}

// simulatedClient is one client, and its own account.
type simulatedClient struct {
	m       *simulated
	port    uint16
	isn     uint32
	check   bool
	deaf    bool          // nothing that the server sends reaches it
	connect time.Duration // how long it waits for its connection
	read    time.Duration // and then for its answer, or stays

	began, left   time.Duration
	hears         time.Duration   // when the latest packet reaches it
	how           outcome.Outcome // GaveUp, Reset; else see made
	failed        bool
	connected     bool
	closed, dead  bool
	answered      bool
	serverISN     uint32
	sent, acked   uint32 // the request's bytes and FIN that were sent, and those that were acknowledged
	got           uint32 // of the server's
	finSent       bool
	repeats       int
	retransmitted bool
	takenAt       time.Duration // when its request was acknowledged
	pending       bool          // it left when its request was not acknowledged, so that its FIN waits for that

	// At the server's.
	firstReply time.Duration // of a deaf one's SYN-ACKs
	lastSYN    time.Duration // of a deaf one's
	halfISN    uint32
	halfOpen   bool
	cookieAt   time.Duration
	cookie     uint32
	socket     *simulatedSocket
	made       time.Duration
	hasMade    bool
}

const requestBytes, answerBytes = 50, 100

// in is a segment of the client, which the network may lose.
func (c *simulatedClient) in(flags uint8, seq, ack uint32, payload int) {
	m := c.m
	if m.rand.Float64() < m.loss {
		return
	}
	m.after(m.oneWay, func() {
		m.tap(packet.Segment{
			Link: packet.Link{Incoming: true, Index: 2}, Src: c.addr().Addr().As16(), SrcPort: c.port,
			Dst: server.Addr().As16(), DstPort: port, Flags: flags, Seq: seq, Ack: ack, Payload: payload,
		})
		m.receive(c, flags, seq, ack, payload)
	})
}

// out is a segment of the server.
func (m *simulated) out(c *simulatedClient, flags uint8, seq, ack uint32, payload int) {
	m.tap(packet.Segment{
		Link: packet.Link{Outgoing: true, Index: 2}, Dst: c.addr().Addr().As16(), DstPort: c.port,
		Src: server.Addr().As16(), SrcPort: port, Flags: flags, Seq: seq, Ack: ack, Payload: payload,
	})
	if c.deaf {
		if flags&packet.FlagSYN != 0 && c.firstReply == 0 {
			c.firstReply = m.now
		}
		return
	}
	if m.rand.Float64() >= m.loss {
		c.hears = max(c.hears, m.now+m.oneWay+m.late(10, slowest))
		m.after(c.hears-m.now, func() { c.receive(flags, seq, ack, payload) })
	}
}

func (c *simulatedClient) addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 7}), c.port)
}

// tap reads what its filter lets pass (see filter).
func (m *simulated) tap(s packet.Segment) {
	more := m.now < m.wide || m.tracker.Stalling()
	client := s.SrcPort
	if s.Outgoing {
		client = s.DstPort
	}
	if s.Flags&packet.Always != 0 || packet.InSubset(client, port) || more && s.Incoming {
		m.read = append(m.read, taken{m.now, s})
	}
}

// drain is what a Tap does each 10 ms (see Tap.drainLocked).
func (m *simulated) drain() {
	ready := 0
	for ; ready < len(m.read) && m.read[ready].at <= m.now-m.lag; ready++ {
		m.tracker.Observe(m.read[ready].at, &m.read[ready].s)
	}
	m.read = slices.Delete(m.read, 0, ready)
	if m.now-m.notedAt >= 200*time.Millisecond && m.tracker.table.open > 0 {
		if m.cookiesSent != m.notedCookies {
			m.tracker.Cookies(m.notedAt, m.now)
		}
		if m.dropped != m.notedDrops {
			m.tracker.Drops(port, m.notedAt, m.now)
		}
		if m.cookiesSent != m.notedCookies || m.dropped != m.notedDrops {
			m.wide = m.now + 5*time.Second
		}
		m.notedAt, m.notedCookies, m.notedDrops = m.now, m.cookiesSent, m.dropped
	}
	m.tracker.Ask(m.now)
	m.tracker.Advance(max(m.now-Lag, 0))
	m.tracker.Widen(m.now < m.wide || m.tracker.Stalling())
}

// found is what the kernel says of a client when it is asked.
func (m *simulated) found(_, from netip.AddrPort, _ uint32) kernel.Found {
	c := m.clients[int(from.Port())-firstSimulated]
	if m.slow {
		m.pass(m.now + m.late(20, 50*time.Millisecond))
		defer func() { m.pass(m.now + m.late(20, 50*time.Millisecond)) }()
	}
	switch k := c.socket; {
	case k != nil && !k.gone:
		answer := k.sent - min(k.sent, 1) // without its FIN, which is no byte (__tcp_transmit_skb)
		return kernel.Found{
			Socket: kernel.Connection, HasInfo: true, Sent: uint64(answer), Received: uint64(k.data), Quiet: m.now - max(k.made, k.lastSent),
			ByBareACK: k.sent == 0 && !k.finIn && k.segments > k.withData, // see clients.byBareACK
		}
	case k != nil && k.timeWait:
		return kernel.Found{}
	case c.halfOpen:
		return kernel.Found{Socket: kernel.HalfOpenSocket}
	}
	return kernel.Found{Socket: kernel.OnlyListener}
}

// firstSimulated is the first client's port.
const firstSimulated = 20_000

// run plays until nothing more happens, and asserts at each read.
func (m *simulated) run(each func()) {
	for end, next := time.Duration(0), time.Duration(0); ; {
		if len(m.events.list) > 0 && m.events.list[0].at <= next {
			end = next + 10*time.Minute
		}
		m.pass(next)
		m.drain()
		each()
		if len(m.events.list) == 0 && (m.tracker.table.open == 0 || m.now > end) {
			return
		}
		if next = m.now + 10*time.Millisecond + m.late(10, slowest); m.tracker.table.open == 0 && len(m.events.list) > 0 {
			next = max(next, m.events.list[0].at)
		}
	}
}
