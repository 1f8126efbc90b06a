// Package promexport exports a snapshot as Prometheus metrics. A scrape is
// answered from memory: nothing here waits for the kernel, takes a lock or
// reads a clock.
//
// Absent is not zero: what this kernel, this user or this configuration cannot
// show has no series. Closed label sets (phase, cause, packet, status) exist
// at 0 from the first scrape, or increase() would miss the first event. pid,
// pod and container live only in tcpdiag_listener_info, so that a restart of
// the server does not give every series a new identity.
package promexport

import (
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// Source gives the latest snapshot from memory, nil before the first scan. It
// must not block.
type Source func() *model.Snapshot

// Collector is a prometheus.Collector over the latest snapshot.
type Collector struct {
	source    Source
	catalogue *catalogue
	fixed     fixedLabels
	drops     dropMemory
	ledger    *dropLedger
}

// NewCollector exports what source gives. started is when the agent began to count.
func NewCollector(source Source, started time.Time) *Collector {
	c := &Collector{source: source, catalogue: newCatalogue(), fixed: newFixedLabels(), drops: newDropMemory(), ledger: newDropLedger()}
	c.catalogue.countedFrom(started)
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.catalogue.all {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.emit(func(s series) { out <- s })
}

// emit hands out every series of the latest snapshot. Before the first scan
// there is none, and an absent series says just that.
//
// Two series with the same labels would fail the whole scrape, so whatever
// names itself twice is exported once: the first wins.
func (c *Collector) emit(e emitter) {
	s := c.source()
	if s == nil {
		return
	}
	c.targets(e, s)
	c.listeners(e, s)
	c.processes(e, s)
	c.namespaces(e, s)
	c.ourselves(e, s)
}

func (c *Collector) targets(e emitter, s *model.Snapshot) {
	type key struct {
		netns uint64
		port  uint16
	}
	seen := make(map[key]bool, len(s.Targets))
	for _, t := range s.Targets {
		k := key{t.NetNS, t.Port}
		if seen[k] {
			continue
		}
		seen[k] = true
		if !t.Unasked {
			e.value(c.catalogue.targetUp, labels{netnsLabel(t.NetNS), portLabel(t.Port)}, truth(t.Up))
		}
		known(e, c.catalogue.refused, labels{netnsLabel(t.NetNS), portLabel(t.Port)}, t.Refused)
	}
	clear(seen)
	for _, t := range s.TargetInfos {
		k := key{t.NetNS, t.Port}
		if seen[k] {
			continue
		}
		seen[k] = true
		e.value(c.catalogue.targetInfo, labels{netnsLabel(t.NetNS), portLabel(t.Port)}.with(custom(t.Labels)...), 1)
	}
}

// custom are the labels of the configuration file, whose names were checked
// there. The series of one family may differ in them: a label that a port does
// not have is the same to Prometheus as an empty one.
func custom(of map[string]string) []*dto.LabelPair {
	out := make([]*dto.LabelPair, 0, len(of))
	for name, value := range of {
		out = append(out, label(name, value))
	}
	return out
}

func (c *Collector) listeners(e emitter, s *model.Snapshot) {
	names := newProcessNames(s.Listeners)
	seen := make(map[address]bool, len(s.Listeners)+len(s.Retired))
	drops := c.drops.begin()
	all := make(map[address]causeCounts, len(s.Listeners)+len(s.Retired))
	for i := range s.Listeners {
		l := &s.Listeners[i]
		a := newAddress(l.ID)
		if !l.Listening() || seen[a] {
			continue
		}
		seen[a] = true
		ls := a.labels()
		c.info(e, a, l, names)
		c.gauges(e, ls, l)
		c.totals(e, ls, &l.Totals, drops.possible(a, l))
		c.connectors(e, ls, l.Connector)
		all[a] = countsOf(l.Totals.Dropped)
	}
	retained := 0
	for i := range s.Retired {
		a := newAddress(s.Retired[i].ID)
		if seen[a] {
			continue
		}
		seen[a] = true
		all[a] = countsOf(s.Retired[i].Totals.Dropped)
		if retained++; retained > MaxRetained {
			continue
		}
		c.totals(e, a.labels(), &s.Retired[i].Totals, drops.closed(a))
	}
	c.drops.end(drops)
	sums := c.ledger.add(s.Time, all)
	for _, cause := range slices.Sorted(maps.Keys(sums)) {
		e.value(c.catalogue.droppedByCause, labels{label("cause", string(cause))}, float64(sums[cause]))
	}
}

// address is what makes two series of a listener the same.
type address struct {
	listener string
	netns    uint64
}

func newAddress(id model.ListenerID) address {
	return address{listener: id.String(), netns: id.NetNS}
}

func (a address) labels() labels {
	return labels{label("listener", a.listener), netnsLabel(a.netns)}
}

// fixedLabels are the pairs of the closed label sets, made once.
type fixedLabels struct {
	phases   [model.NumPhases]*dto.LabelPair
	statuses [model.NumStatuses]*dto.LabelPair
	outcomes [model.NumClientOutcomes]*dto.LabelPair
}

func newFixedLabels() fixedLabels {
	var f fixedLabels
	for p := range model.NumPhases {
		f.phases[p] = label("phase", p.String())
	}
	for s := range model.NumStatuses {
		f.statuses[s] = label("status", s.String())
	}
	for o := range model.NumClientOutcomes {
		f.outcomes[o] = label("outcome", o.String())
	}
	return f
}
