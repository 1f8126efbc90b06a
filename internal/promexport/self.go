package promexport

import (
	"maps"
	"slices"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

type selfMetrics struct {
	sample        *metric
	scan          *metric
	scanInterval  *metric
	lastScan      *metric
	missedTicks   *metric
	failedSamples *metric
	longestGap    *metric
	sourceUp      *metric
	omitted       *metric
	calmInterval  *metric
	reloaded      *metric
	reloadedAt    *metric
	incidents     *metric
	incidentsOpen *metric
	lostFrames    *metric
	writeErrors   *metric
	refused       *metric
	evicted       *metric
}

func newSelfMetrics(c *catalogue) selfMetrics {
	return selfMetrics{
		sample: c.histogram("tcpdiag_sample_duration_seconds",
			"How long the agent takes to sample the accept queues."),
		scan: c.histogram("tcpdiag_scan_duration_seconds",
			"How long the agent takes to scan the connections."),
		scanInterval: c.gauge("tcpdiag_scan_interval_seconds",
			"Time between two scans, longer where that is needed to stay below 2 % of a core."),
		lastScan: c.gauge("tcpdiag_last_scan_timestamp_seconds",
			"When the last scan began, in Unix time; connections, phases and waits are of that moment."),
		missedTicks: c.counter("tcpdiag_missed_ticks_total",
			"Samples that were due and could not be taken in time."),
		failedSamples: c.counter("tcpdiag_failed_samples_total",
			"Samples that the kernel did not answer, or not for all listeners."),
		longestGap: c.gauge("tcpdiag_longest_sample_gap_seconds",
			"The longest time between two samples of the last 60 s; absent until there are two."),
		sourceUp: c.gauge("tcpdiag_source_up",
			"Whether a source of the agent can be read: 1 yes, 0 no.", "source"),
		omitted: c.gauge("tcpdiag_omitted_listeners",
			"Listeners beyond --max-listeners, which have no series."),
		calmInterval: c.gauge("tcpdiag_calm_sample_interval_seconds",
			"Time between two samples of accept queues that have been empty for 10 s, longer than --sample-interval where all samples would take more than 1 % of a core."),
		reloaded: c.gauge("tcpdiag_config_last_reload_successful",
			"Whether the latest reading of the configuration file succeeded: 1 yes, 0 no, and the former one is in force; absent without --config."),
		reloadedAt: c.gauge("tcpdiag_config_last_reload_success_timestamp_seconds",
			"When the configuration in force was read, in Unix time; absent without --config."),
		incidents: c.counter("tcpdiag_incidents_total",
			"Incidents since the agent started: a listener became saturated, losing or down."),
		incidentsOpen: c.gauge("tcpdiag_incidents_open",
			"Incidents that are being recorded."),
		lostFrames: c.counter("tcpdiag_incident_lost_frames_total",
			"Frames of incidents that could not be recorded: a full or slow disk, or the largest size of a recording."),
		writeErrors: c.counter("tcpdiag_incident_write_errors_total",
			"Failures of the directory of --incident-dir; incidents are then kept in memory or have a gap."),
		refused: c.counter("tcpdiag_share_refused_total",
			"What found no room in something that strangers share, by resource: its owner held its share already.", "resource"),
		evicted: c.counter("tcpdiag_share_evicted_total",
			"What was taken away of something that strangers share, by resource: its owner held most, and others wanted theirs.", "resource"),
	}
}

func (c *Collector) ourselves(e emitter, s *model.Snapshot) {
	m := &c.catalogue.self
	e.histogram(m.sample, nil, durationHistogram(&s.Self.SampleSeconds))
	e.histogram(m.scan, nil, durationHistogram(&s.Self.ScanSeconds))
	e.value(m.missedTicks, nil, float64(s.Self.MissedTicks))
	e.value(m.failedSamples, nil, float64(s.Self.FailedSamples))
	if s.Self.LongestGap > 0 {
		e.value(m.longestGap, nil, s.Self.LongestGap.Seconds())
	}
	e.value(m.omitted, nil, float64(s.Omitted))
	if config := s.Self.Config; config != nil {
		e.value(m.reloaded, nil, truth(config.Successful))
		e.value(m.reloadedAt, nil, float64(config.LastSuccess.UnixMilli())/1000)
	}
	if i := s.Self.Incidents; i != nil {
		e.value(m.incidents, nil, float64(i.Total))
		e.value(m.incidentsOpen, nil, float64(i.Open))
		e.value(m.lostFrames, nil, float64(i.LostFrames))
		e.value(m.writeErrors, nil, float64(i.WriteErrors))
	}
	for _, share := range s.Self.Shares {
		e.value(m.refused, labels{label("resource", share.Resource)}, float64(share.Refused))
		e.value(m.evicted, labels{label("resource", share.Resource)}, float64(share.Evicted))
	}
	if s.Self.ScanInterval > 0 {
		e.value(m.scanInterval, nil, s.Self.ScanInterval.Seconds())
	}
	if s.Self.CalmInterval > 0 {
		e.value(m.calmInterval, nil, s.Self.CalmInterval.Seconds())
	}
	if !s.Time.IsZero() {
		e.value(m.lastScan, nil, float64(s.Time.UnixMilli())/1000)
	}
	for _, source := range slices.Sorted(maps.Keys(s.Self.SourceUp)) {
		e.value(m.sourceUp, labels{label("source", source)}, truth(s.Self.SourceUp[source]))
	}
}
