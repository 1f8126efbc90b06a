package promexport

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// metric is one row of the catalogue.
type metric struct {
	Doc
	kind  dto.MetricType
	desc  *prometheus.Desc
	index int // in catalogue.all
	// created is when the counting began, for a scraper that asks for protobuf: the
	// start of the agent. It is nil for what the kernel and the JVM count.
	created *timestamppb.Timestamp
}

// series is one sample or one histogram of a metric, immutable once emitted:
// its label pairs are shared with others.
type series struct {
	metric *metric
	labels labels
	value  float64
	hist   *dto.Histogram
}

// Desc implements prometheus.Metric.
func (s series) Desc() *prometheus.Desc { return s.metric.desc }

// Write implements prometheus.Metric.
func (s series) Write(out *dto.Metric) error {
	out.Label = s.labels
	switch s.metric.kind {
	case dto.MetricType_COUNTER:
		out.Counter = &dto.Counter{Value: &s.value, CreatedTimestamp: s.metric.created}
	case dto.MetricType_HISTOGRAM:
		out.Histogram = s.hist
	default:
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// message is the series as the library's message, in one allocation where
// there are many.
func (s series) message() *dto.Metric {
	switch s.metric.kind {
	case dto.MetricType_COUNTER:
		m := &counterMessage{value: s.value}
		m.counter.Value, m.metric.Counter, m.metric.Label = &m.value, &m.counter, s.labels
		m.counter.CreatedTimestamp = s.metric.created
		return &m.metric
	case dto.MetricType_HISTOGRAM:
		return &dto.Metric{Label: s.labels, Histogram: s.hist}
	default:
		m := &gaugeMessage{value: s.value}
		m.gauge.Value, m.metric.Gauge, m.metric.Label = &m.value, &m.gauge, s.labels
		return &m.metric
	}
}

type counterMessage struct {
	metric  dto.Metric
	counter dto.Counter
	value   float64
}

type gaugeMessage struct {
	metric dto.Metric
	gauge  dto.Gauge
	value  float64
}

// labels are label pairs sorted by name, which the registry checks.
type labels []*dto.LabelPair

// label makes a pair. Values come from command names, paths and configuration
// files: bytes that are no UTF-8 would fail the scrape, and controls would reach
// a terminal.
func label(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: new(model.Printable(value))}
}

// with returns a copy of ls with the pairs added.
func (ls labels) with(pairs ...*dto.LabelPair) labels {
	out := make(labels, len(ls), len(ls)+len(pairs))
	copy(out, ls)
	for _, p := range pairs {
		out = append(out, p)
		for i := len(out) - 1; i > 0 && *out[i].Name < *out[i-1].Name; i-- {
			out[i], out[i-1] = out[i-1], out[i]
		}
	}
	return out
}

// emitter takes each series of a scrape.
type emitter func(series)

func (e emitter) value(m *metric, ls labels, v float64) {
	e(series{metric: m, labels: ls, value: v})
}

func (e emitter) histogram(m *metric, ls labels, h *dto.Histogram) {
	e(series{metric: m, labels: ls, hist: h})
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
