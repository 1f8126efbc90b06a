package promexport

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
)

// Source gives the latest snapshot from memory, nil before the first scan. It
// must not block.
type Source func() *backlog.Snapshot

// Collector is a prometheus.Collector over the latest snapshot.
type Collector struct {
	source    Source
	catalogue *catalogue
	fixed     fixedLabels
}

// NewCollector exports what source gives.
func NewCollector(source Source) *Collector {
	return &Collector{source: source, catalogue: newCatalogue(), fixed: newFixedLabels()}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range c.catalogue.all {
		out <- m.desc
	}
}

// Collect implements prometheus.Collector. Before the first scan there is
// nothing to export, and an absent series says just that.
//
// Two series with the same labels would fail the whole scrape, so whatever
// names itself twice is exported once: the first wins.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	s := c.source()
	if s == nil {
		return
	}
	e := emitter{out: out}
	c.targets(e, s)
	c.listeners(e, s)
	c.processes(e, s)
	c.namespaces(e, s)
	c.ourselves(e, s)
}

func (c *Collector) targets(e emitter, s *backlog.Snapshot) {
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
		e.value(c.catalogue.targetUp, labels{netnsLabel(t.NetNS), portLabel(t.Port)}, truth(t.Up))
	}
}

func (c *Collector) listeners(e emitter, s *backlog.Snapshot) {
	names := newProcessNames(s.Listeners)
	seen := make(map[address]bool, len(s.Listeners)+len(s.Gone))
	for _, l := range inExpositionOrder(s.Listeners) {
		a := newAddress(l.ID)
		if !l.Listening() || seen[a] {
			continue
		}
		seen[a] = true
		ls := a.labels()
		c.info(e, a, l, names)
		c.gauges(e, ls, l)
		c.totals(e, ls, &l.Totals)
		c.connectors(e, ls, l.Connector)
	}
	for i := range s.Gone[:min(len(s.Gone), MaxRetained)] {
		a := newAddress(s.Gone[i].ID)
		if seen[a] {
			continue
		}
		seen[a] = true
		c.totals(e, a.labels(), &s.Gone[i].Totals)
	}
}

// address is what makes two series of a listener the same.
type address struct {
	listener string
	netns    uint64
}

func newAddress(id backlog.ListenerID) address {
	return address{listener: id.String(), netns: id.NetNS}
}

func (a address) labels() labels {
	return labels{label("listener", a.listener), netnsLabel(a.netns)}
}

// inExpositionOrder sorts by the first label's value, so that the registry
// finds most of what it has to sort already sorted.
func inExpositionOrder(in []backlog.Listener) []*backlog.Listener {
	type keyed struct {
		address
		l *backlog.Listener
	}
	ks := make([]keyed, len(in))
	for i := range in {
		ks[i] = keyed{newAddress(in[i].ID), &in[i]}
	}
	slices.SortStableFunc(ks, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.listener, b.listener), cmp.Compare(a.netns, b.netns))
	})
	out := make([]*backlog.Listener, len(ks))
	for i, k := range ks {
		out[i] = k.l
	}
	return out
}

// fixedLabels are the pairs of the closed label sets, made once.
type fixedLabels struct {
	phases   [backlog.NumPhases]*dto.LabelPair
	statuses [backlog.NumStatuses]*dto.LabelPair
	drops    []dropLabels
	foreseen map[backlog.DropKey]bool
}

func newFixedLabels() fixedLabels {
	var f fixedLabels
	for p := range backlog.NumPhases {
		f.phases[p] = label("phase", p.String())
	}
	for s := range backlog.NumStatuses {
		f.statuses[s] = label("status", s.String())
	}
	f.drops = foreseenDrops()
	f.foreseen = make(map[backlog.DropKey]bool, len(f.drops))
	for _, d := range f.drops {
		f.foreseen[d.key] = true
	}
	return f
}
