package promexport

import (
	"sync/atomic"

	dto "github.com/prometheus/client_model/go"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// causes is a set of causes, a bit for each of model.DropCauses().
type causes uint16

// dropLabels are the labels of one series of dropped packets, made once.
type dropLabels struct {
	key           model.DropKey
	bit           causes
	cause, packet *dto.LabelPair
}

// dropMemory says which series of dropped packets exist at 0. A cause can
// occur where its evidence can be read: a listener whose maxConnections nobody
// knows never drops because of max_connections. What could occur once at an
// address stays, through the listener's restart too, or increase() would miss
// the first drop after it.
type dropMemory struct {
	series   []dropLabels
	foreseen map[model.DropKey]bool
	before   *atomic.Pointer[map[address]causes]
}

func newDropMemory() dropMemory {
	m := dropMemory{foreseen: make(map[model.DropKey]bool), before: new(atomic.Pointer[map[address]causes])}
	m.before.Store(&map[address]causes{})
	for i, cause := range model.DropCauses() {
		for _, packet := range packetsOf(cause) {
			d := dropLabels{
				key:    model.DropKey{Cause: cause, Packet: packet},
				bit:    1 << i,
				cause:  label("cause", string(cause)),
				packet: label("packet", string(packet)),
			}
			m.series = append(m.series, d)
			m.foreseen[d.key] = true
		}
	}
	return m
}

// packetsOf are the packets a cause can drop. A full SYN queue drops SYNs; what
// fills the accept queue drops SYNs (tcp_conn_request) and final ACKs
// (tcp_v4_syn_recv_sock). The counters cannot always say which.
func packetsOf(cause model.Cause) []model.Packet {
	if cause == model.CauseSynBacklog {
		return []model.Packet{model.PacketSYN, model.PacketUnknown}
	}
	return []model.Packet{model.PacketSYN, model.PacketACK, model.PacketUnknown}
}

// scrapeDrops is the memory during one scrape. Addresses that are not asked
// for are forgotten with it.
type scrapeDrops struct {
	before, now map[address]causes
}

func (m *dropMemory) begin() scrapeDrops {
	before := *m.before.Load()
	return scrapeDrops{before: before, now: make(map[address]causes, len(before))}
}

func (m *dropMemory) end(s scrapeDrops) { m.before.Store(&s.now) }

// closed are the causes of a listener that has closed.
func (s scrapeDrops) closed(a address) causes {
	s.now[a] = s.before[a]
	return s.now[a]
}

// possible are the causes of a listener that stands.
func (s scrapeDrops) possible(a address, l *model.Listener) causes {
	can := s.before[a]
	for i, cause := range model.DropCauses() {
		if canOccur(cause, l) {
			can |= 1 << i
		}
	}
	s.now[a] = can
	return can
}

// canOccur says whether the cause's evidence can be read at all.
func canOccur(cause model.Cause, l *model.Listener) bool {
	p, k := l.Process, l.Connector
	known := k != nil && k.MaxConnections != nil
	limited := known && k.MaxConnections.Value >= 0
	switch cause {
	case model.CauseMaxConnections: // a JVM's acceptor shows it whatever is known of the limit
		return limited || !known && p != nil && isJVM(p, k)
	case model.CauseKeepAliveIdle: // never claimed from unclassified connections
		return (limited || !known && p != nil && isJVM(p, k)) && (k == nil || !k.TLS && !k.HTTP2)
	case model.CauseOpenFiles:
		return p != nil && p.OpenFiles != nil && p.OpenFilesLimit != nil
	case model.CauseJVMPause:
		return p != nil && (isJVM(p, k) || p.Stopped || p.Frozen || p.Dumping || p.StoppedChildren > 0)
	case model.CauseCPUThrottled:
		return p != nil && p.CPUThrottled != nil
	case model.CauseCPUSaturated:
		return p != nil && p.RunDelay != nil
	case model.CauseNotAccepting: // its acceptor has to be read
		return p != nil && k.Kind().Limits
	case model.CauseMaxThreads: // where these accept
		return k != nil && k.AcceptsWithWorkers()
	case model.CauseSlowAccept: // what else could have filled the queue is known
		return known || p != nil && isJVM(p, k)
	default: // syn_backlog needs the listener alone, accept_queue that nothing else could be read
		return true
	}
}

func isJVM(p *model.Process, k *model.Connector) bool {
	return p.SafepointTime != nil || model.IsJVM(p.Comm) || k.Kind().JVM
}

func (c *Collector) dropped(e emitter, ls labels, counts map[model.DropKey]uint64, can causes) {
	m := c.catalogue.listener.dropped
	for i := range c.drops.series {
		d := &c.drops.series[i]
		if n := counts[d.key]; n > 0 || can&d.bit != 0 {
			e.value(m, ls.with(d.cause, d.packet), float64(n))
		}
	}
	for key, n := range counts {
		// Nobody foresaw it; a missed first increase is better than a lost loss.
		if n > 0 && !c.drops.foreseen[key] {
			e.value(m, ls.with(label("cause", string(key.Cause)), label("packet", string(key.Packet))), float64(n))
		}
	}
}

// dropSums are the packets dropped at the accept queue, whatever filled it, and at the SYN backlog.
func dropSums(counts map[model.DropKey]uint64) (overflow, synBacklog uint64) {
	for key, n := range counts {
		if key.Cause == model.CauseSynBacklog {
			synBacklog += n
		} else {
			overflow += n
		}
	}
	return overflow, synBacklog
}
