package main

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/collectors/version"
)

// metrics are what the archiver says of itself.
type metrics struct {
	registry   *prometheus.Registry
	records    *prometheus.CounterVec
	recordings *prometheus.CounterVec
	retries    *prometheus.CounterVec
	reached    *prometheus.GaugeVec
}

// The outcomes of log records and of recordings, and the two ends.
const (
	outcomeSent       = "sent"
	outcomeStored     = "stored"
	outcomePresent    = "present"
	outcomeRejected   = "rejected"
	outcomeDropped    = "dropped"
	outcomeUnreadable = "unreadable"

	endCollector = "collector"
	endBucket    = "bucket"
)

func newMetrics(s *spool) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tcpdiag_archive_log_records_total",
			Help: "Log records by outcome: sent, rejected (by the collector, for good), dropped (no room in the spool).",
		}, []string{"outcome"}),
		recordings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tcpdiag_archive_recordings_total",
			Help: "Recordings by outcome: stored, present (there was one of the same key), rejected (by the store, for good), dropped (no room in the spool), unreadable.",
		}, []string{"outcome"}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tcpdiag_archive_retries_total",
			Help: "Attempts that failed and are repeated.",
		}, []string{"to"}),
		reached: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "tcpdiag_archive_last_success_timestamp_seconds",
			Help: "When something was last accepted; absent before the first.",
		}, []string{"to"}),
	}
	for _, o := range []string{outcomeSent, outcomeRejected, outcomeDropped} {
		m.records.WithLabelValues(o)
	}
	for _, o := range []string{outcomeStored, outcomePresent, outcomeRejected, outcomeDropped, outcomeUnreadable} {
		m.recordings.WithLabelValues(o)
	}
	for _, to := range []string{endCollector, endBucket} {
		m.retries.WithLabelValues(to)
	}
	gauge := func(name, help string, of func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(of()) })
	}
	m.registry.MustRegister(
		m.records, m.recordings, m.retries, m.reached, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		version.NewCollector("tcpdiag_archive"),
		gauge("tcpdiag_archive_spool_bytes", "What waits in the spool.", s.bytes),
		gauge("tcpdiag_archive_spool_max_bytes", "The most that may wait (--spool-max-mib).", func() int64 { return s.max }),
		gauge("tcpdiag_archive_spool_log_records", "Log records that wait for the collector.", func() int64 { return int64(s.waiting(kindEvent)) }),
		gauge("tcpdiag_archive_spool_recordings", "Recordings that wait for the bucket.", func() int64 { return int64(s.waiting(kindRecording)) }),
	)
	return m
}
