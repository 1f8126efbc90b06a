package promexport

import (
	"cmp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// metric is one row of the catalogue.
type metric struct {
	Doc
	kind dto.MetricType
	desc *prometheus.Desc
}

// series is one sample or one histogram of a metric. It implements
// prometheus.Metric and is immutable once sent, as that interface demands; the
// label pairs are shared between series.
type series struct {
	metric *metric
	labels labels
	value  float64
	hist   *dto.Histogram
}

// Desc implements prometheus.Metric.
func (s *series) Desc() *prometheus.Desc { return s.metric.desc }

// Write implements prometheus.Metric.
func (s *series) Write(out *dto.Metric) error {
	out.Label = s.labels
	switch s.metric.kind {
	case dto.MetricType_COUNTER:
		out.Counter = &dto.Counter{Value: &s.value}
	case dto.MetricType_HISTOGRAM:
		out.Histogram = s.hist
	default:
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// labels are label pairs sorted by name, which the registry checks.
type labels []*dto.LabelPair

// label makes a pair. Values come from command names, paths and configuration
// files: bytes that are no UTF-8 would fail the scrape.
func label(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: new(strings.ToValidUTF8(value, "\uFFFD"))}
}

// with returns a copy of ls with the pairs added.
func (ls labels) with(pairs ...*dto.LabelPair) labels {
	out := make(labels, 0, len(ls)+len(pairs))
	out = append(append(out, ls...), pairs...)
	slices.SortFunc(out, func(a, b *dto.LabelPair) int { return cmp.Compare(*a.Name, *b.Name) })
	return out
}

// emitter sends series to the registry.
type emitter struct{ out chan<- prometheus.Metric }

func (e emitter) value(m *metric, ls labels, v float64) {
	e.out <- &series{metric: m, labels: ls, value: v}
}

func (e emitter) histogram(m *metric, ls labels, h *dto.Histogram) {
	e.out <- &series{metric: m, labels: ls, hist: h}
}

// number is what a sample can be made of.
type number interface{ ~int | ~uint64 | ~float64 }

// known sends nothing for what is not known.
func known[T number](e emitter, m *metric, ls labels, v *T) {
	if v != nil {
		e.value(m, ls, float64(*v))
	}
}

// truth is a boolean as a sample.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
