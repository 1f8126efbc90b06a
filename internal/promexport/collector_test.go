package promexport_test

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

// gather goes through the library's pedantic registry, which refuses
// duplicates, undescribed labels and whatever else would fail a scrape.
func gather(t testing.TB, c prometheus.Collector) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	families, err := reg.Gather()
	require.NoError(t, err)
	out := make(map[string]*dto.MetricFamily, len(families))
	for _, f := range families {
		out[f.GetName()] = f
	}
	return out
}

func collect(t testing.TB, s *model.Snapshot) map[string]*dto.MetricFamily {
	t.Helper()
	return gather(t, promexport.NewCollector(source(s), time.Unix(1_700_000_000, 0)))
}

// samples are a family's values by their labels without listener and netns,
// "cause=max_connections,packet=syn" for short.
func samples(f *dto.MetricFamily) map[string]float64 {
	out := make(map[string]float64)
	for _, m := range f.GetMetric() {
		var key []string
		for _, p := range m.GetLabel() {
			if p.GetName() != "netns" && p.GetName() != "listener" {
				key = append(key, p.GetName()+"="+p.GetValue())
			}
		}
		v := m.GetGauge().GetValue()
		if m.GetCounter() != nil {
			v = m.GetCounter().GetValue()
		}
		out[strings.Join(key, ",")] = v
	}
	return out
}

// series counts as Prometheus does: each classic bucket, the sum and the count.
func series(families map[string]*dto.MetricFamily) int {
	n := 0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			n++
			if h := m.GetHistogram(); h != nil {
				n += len(h.GetBucket()) + 2 // +Inf and the sum; the count is counted above
			}
		}
	}
	return n
}

func TestNothingBeforeTheFirstScan(t *testing.T) {
	require.Empty(t, collect(t, nil))
}

// The fast path and the library's must not differ.
func TestRegistryGathersWhatTheCollectorCollects(t *testing.T) {
	s := fleet(3)
	got, err := promexport.NewRegistry(source(s), time.Unix(1_700_000_000, 0), promexport.Build{Version: "1.2.3", Revision: "abc"}).Gather()
	require.NoError(t, err)
	want := collect(t, s)
	require.True(t, slices.IsSortedFunc(got, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) }))
	found := make(map[string]bool)
	for _, f := range got {
		w, ok := want[f.GetName()]
		if !ok {
			continue // the library's own collectors
		}
		found[f.GetName()] = true
		require.Equal(t, w.GetHelp(), f.GetHelp())
		require.Equal(t, w.GetType(), f.GetType())
		require.ElementsMatch(t, texts(w), texts(f), f.GetName())
	}
	require.Len(t, found, len(want))
	for _, name := range []string{"go_goroutines", "process_open_fds", "tcpdiag_build_info"} {
		require.True(t, slices.ContainsFunc(got, func(f *dto.MetricFamily) bool { return f.GetName() == name }), name)
	}
}

func texts(f *dto.MetricFamily) []string {
	out := make([]string, len(f.GetMetric()))
	for i, m := range f.GetMetric() {
		out[i] = strings.Join(strings.Fields(m.String()), " ")
	}
	return out
}

func TestEveryMetricIsExportedAndDocumented(t *testing.T) {
	got := collect(t, fleet(1))
	docs := make(map[string]promexport.Doc)
	for _, d := range promexport.Metrics() {
		docs[d.Name] = d
		require.Contains(t, got, d.Name, "the fixture knows everything")
	}
	for name, f := range got {
		require.Contains(t, docs, name)
		require.Equal(t, docs[name].Type, strings.ToLower(f.GetType().String()), name)
		for _, m := range f.GetMetric() {
			var labels []string
			for _, p := range m.GetLabel() {
				labels = append(labels, p.GetName())
			}
			want := slices.Clone(docs[name].Labels)
			slices.Sort(want)
			require.Equal(t, want, labels, name)
		}
	}
}

func TestNamesPassTheLinter(t *testing.T) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(promexport.NewCollector(source(fleet(2)), time.Unix(1_700_000_000, 0)))
	problems, err := testutil.GatherAndLint(reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestClosedLabelSetsExistAtZero(t *testing.T) {
	s := fleet(1)
	s.Listeners[0].Totals, s.Listeners[0].Connector.Protocol = model.Totals{}, "http-nio2"
	got := collect(t, s)
	require.Equal(t, map[string]float64{
		"phase=waiting": 7991, "phase=in_service": 200, "phase=sending": 0, "phase=streaming": 0,
		"phase=idle": 0, "phase=client_closed": 1, "phase=unclassified": 0,
	}, samples(got["tcpdiag_listener_connections"]))
	require.Equal(t, map[string]float64{
		"status=ok": 0, "status=warning": 0, "status=saturated": 0, "status=losing": 1, "status=down": 0,
	}, samples(got["tcpdiag_listener_status"]))
	drops := samples(got["tcpdiag_listener_dropped_packets_total"])
	for _, cause := range model.DropCauses() {
		for _, packet := range []model.Packet{model.PacketSYN, model.PacketACK, model.PacketUnknown} {
			value, ok := drops["cause="+string(cause)+",packet="+string(packet)]
			occurs := cause != model.CauseSynBacklog || packet != model.PacketACK
			require.Equal(t, occurs, ok, "%s %s", cause, packet)
			require.Zero(t, value)
		}
	}
	for _, name := range []string{"abandoned_requests_total", "queue_resets_total", "accept_queue_full_seconds_total"} {
		require.Equal(t, map[string]float64{"": 0}, samples(got["tcpdiag_listener_"+name]))
	}
}

// What rules over thousands of listeners compare is one series of each.
func TestWhatIsAddedUpForMany(t *testing.T) {
	s := fleet(1)
	l := &s.Listeners[0]
	l.AcceptQueue.Length = 5
	l.Connections.Phases = [model.NumPhases]int{model.Idle: 3, model.Waiting: 4}
	l.Connections.Reset = new(6)
	l.Limits = []model.Limit{{Name: "accept_queue", Ratio: .05}, {Name: "max_threads", Ratio: .7}, {Name: "open_files", Ratio: .2}}
	l.Totals.Dropped = map[model.DropKey]uint64{
		{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: 4,
		{Cause: model.CauseSynBacklog, Packet: model.PacketSYN}:     5,
		{Cause: model.CauseSynBacklog, Packet: model.PacketUnknown}: 2,
		{Cause: model.CauseMaxConnections, Packet: model.PacketACK}: 1,
	}
	check := func(want map[string]float64) {
		t.Helper()
		got := collect(t, s)
		for name, v := range want {
			require.InDelta(t, v, samples(got["tcpdiag_listener_"+name])[""], 1e-9, name)
		}
	}
	room := float64(8192 + 101)
	check(map[string]float64{"clients_inside": 18, "capacity_used_ratio": 18 / room, "fullest_limit_ratio": .7, "overflow_packets_total": 5, "syn_backlog_packets_total": 7})
	l.Connections.Reset = nil
	l.Limits[0].Ratio = 1.02 // a queue that races past its capacity
	check(map[string]float64{"clients_inside": 12, "capacity_used_ratio": 12 / room, "fullest_limit_ratio": 1})
	l.Connector.MaxConnections, l.Limits = nil, nil
	got := collect(t, s)
	require.Contains(t, got, "tcpdiag_listener_clients_inside")
	require.NotContains(t, got, "tcpdiag_listener_capacity_used_ratio")
	require.NotContains(t, got, "tcpdiag_listener_fullest_limit_ratio")
}

func TestADropCauseNeedsItsEvidence(t *testing.T) {
	all := []string{
		"max_connections", "keep_alive_idle", "open_files", "jvm_pause",
		"cpu_throttled", "cpu_saturated", "slow_accept", "syn_backlog", "accept_queue", "not_accepting",
	}
	tests := map[string]struct {
		change func(*model.Listener)
		lacks  []string
		has    []string
	}{
		"everything known":    {func(*model.Listener) {}, nil, nil},
		"NIO2":                {func(l *model.Listener) { l.Connector.Protocol = "http-nio2" }, nil, []string{"max_threads"}},
		"no connector":        {func(l *model.Listener) { l.Connector = nil }, []string{"not_accepting"}, nil},
		"limit not known":     {func(l *model.Listener) { l.Connector.MaxConnections = nil }, nil, nil},
		"no limit":            {func(l *model.Listener) { l.Connector.MaxConnections.Value = -1 }, []string{"max_connections", "keep_alive_idle"}, nil},
		"TLS":                 {func(l *model.Listener) { l.Connector.TLS = true }, []string{"keep_alive_idle"}, nil},
		"HTTP/2":              {func(l *model.Listener) { l.Connector.HTTP2 = true }, []string{"keep_alive_idle"}, nil},
		"no schedstat":        {func(l *model.Listener) { l.Process.RunDelay = nil }, []string{"cpu_saturated"}, nil},
		"no cgroup":           {func(l *model.Listener) { l.Process.CPUThrottled = nil }, []string{"cpu_throttled"}, nil},
		"no open files":       {func(l *model.Listener) { l.Process.OpenFiles = nil }, []string{"open_files"}, nil},
		"no open files limit": {func(l *model.Listener) { l.Process.OpenFilesLimit = nil }, []string{"open_files"}, nil},
		"no JVM":              {func(l *model.Listener) { *l = plain(8080) }, []string{"max_connections", "keep_alive_idle", "slow_accept", "jvm_pause", "not_accepting"}, nil},
		"stopped":             {func(l *model.Listener) { *l = plain(8080); l.Process.Stopped = true }, []string{"max_connections", "keep_alive_idle", "slow_accept", "not_accepting"}, nil},
		"no owner": {func(l *model.Listener) { l.Process = nil }, []string{
			"open_files", "jvm_pause", "cpu_throttled", "cpu_saturated", "not_accepting",
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := fleet(1)
			s.Listeners[0].Totals = model.Totals{}
			tt.change(&s.Listeners[0])
			want := slices.Concat(slices.DeleteFunc(slices.Clone(all), func(c string) bool { return slices.Contains(tt.lacks, c) }), tt.has)
			require.ElementsMatch(t, want, causesOf(collect(t, s)))
		})
	}
}

func causesOf(got map[string]*dto.MetricFamily) []string {
	causes := make(map[string]bool)
	for key := range samples(got["tcpdiag_listener_dropped_packets_total"]) {
		cause, _, _ := strings.Cut(strings.TrimPrefix(key, "cause="), ",")
		causes[cause] = true
	}
	return slices.Collect(maps.Keys(causes))
}

// What was dropped is never kept back, foreseen or not.
func TestADropThatNobodyForesawIsExported(t *testing.T) {
	s := fleet(1)
	s.Listeners[0].Connector = nil
	s.Listeners[0].Totals.Dropped = map[model.DropKey]uint64{
		{Cause: "sunspots", Packet: "fin"}:                          3,
		{Cause: model.CauseMaxConnections, Packet: model.PacketSYN}: 4,
		{Cause: model.CauseSynBacklog, Packet: model.PacketACK}:     5,
	}
	drops := samples(collect(t, s)["tcpdiag_listener_dropped_packets_total"])
	require.InDelta(t, 3, drops["cause=sunspots,packet=fin"], 0)
	require.InDelta(t, 4, drops["cause=max_connections,packet=syn"], 0)
	require.InDelta(t, 5, drops["cause=syn_backlog,packet=ack"], 0)
}

func TestAbsentIsNotZero(t *testing.T) {
	bare := model.Listener{
		ID:   model.ListenerID{NetNS: netns, Address: netip.MustParseAddrPort("0.0.0.0:80")},
		Port: 80,
	}
	got := collect(t, &model.Snapshot{Listeners: []model.Listener{bare}})
	require.Equal(t, []string{
		"tcpdiag_dropped_packets_total",
		"tcpdiag_failed_samples_total",
		"tcpdiag_listener_abandoned_requests_total",
		"tcpdiag_listener_accept_queue_fill_ratio",
		"tcpdiag_listener_accept_queue_full_seconds_total",
		"tcpdiag_listener_dropped_packets_total",
		"tcpdiag_listener_info",
		"tcpdiag_listener_overflow_packets_total",
		"tcpdiag_listener_queue_resets_total",
		"tcpdiag_listener_status",
		"tcpdiag_listener_syn_backlog_packets_total",
		"tcpdiag_listener_verdict_info",
		"tcpdiag_missed_ticks_total",
		"tcpdiag_omitted_listeners",
		"tcpdiag_sample_duration_seconds",
		"tcpdiag_scan_duration_seconds",
	}, slices.Sorted(maps.Keys(got)))
}

// A count that is too low looks like a server that is idle, or that has room.
func TestAPartialCountIsNoSeries(t *testing.T) {
	whole, partial := fleet(1), fleet(1)
	partial.Listeners[0].Connections.Partial = true
	all, some := collect(t, whole), collect(t, partial)
	for _, name := range []string{"tcpdiag_listener_connections", "tcpdiag_listener_connections_age_seconds", "tcpdiag_listener_connections_sampling_error", "tcpdiag_listener_reset_connections", "tcpdiag_listener_clients_inside", "tcpdiag_listener_capacity_used_ratio"} {
		require.Contains(t, all, name)
		require.NotContains(t, some, name)
		delete(all, name)
	}
	require.Equal(t, slices.Sorted(maps.Keys(all)), slices.Sorted(maps.Keys(some)), "all else stays")
}

// An estimate is a series, with its error beside it.
func TestSamplingError(t *testing.T) {
	s := fleet(1)
	require.Equal(t, 0., collect(t, s)["tcpdiag_listener_connections_sampling_error"].GetMetric()[0].GetGauge().GetValue(), "each was counted")
	s.Listeners[0].Connections.Subset, s.Listeners[0].Connections.Error = 4096, 55
	got := collect(t, s)
	require.Equal(t, 55., got["tcpdiag_listener_connections_sampling_error"].GetMetric()[0].GetGauge().GetValue())
	require.Contains(t, got, "tcpdiag_listener_connections")
}

func TestADownPortHasItsTargetAlone(t *testing.T) {
	got := collect(t, &model.Snapshot{
		Listeners: []model.Listener{{Port: 9090, Expected: true, Verdict: model.Verdict{Status: model.StatusDown}}},
		Targets:   []model.Target{{Port: 9090, NetNS: netns}, {Port: 8080, NetNS: netns, Up: true}},
	})
	require.Equal(t, map[string]float64{"port=9090": 0, "port=8080": 1}, samples(got["tcpdiag_target_up"]))
	for name := range got {
		require.NotContains(t, name, "listener_")
	}
}

// A restart of the server must not give every series a new identity.
func TestPIDPodAndContainerAreInInfoAlone(t *testing.T) {
	for _, d := range promexport.Metrics() {
		for _, name := range []string{"pid", "pod_uid", "pod", "container"} {
			if d.Name != "tcpdiag_listener_info" {
				require.NotContains(t, d.Labels, name, d.Name)
			}
		}
	}
}

// A container's name is Kubernetes', and its id where there is none.
func TestPodInInfo(t *testing.T) {
	s := fleet(1)
	info := func() map[string]string {
		out := make(map[string]string)
		for _, p := range collect(t, s)["tcpdiag_listener_info"].GetMetric()[0].GetLabel() {
			out[p.GetName()] = p.GetValue()
		}
		return out
	}
	require.Subset(t, info(), map[string]string{"container": "3f2a", "container_id": "3f2a", "pod_uid": "0b51"})
	s.Listeners[0].Pod = &model.Pod{Namespace: "shop", Name: "orders-7d9c", Container: "app", UID: "0b51"}
	require.Subset(t, info(), map[string]string{"namespace": "shop", "pod": "orders-7d9c", "container": "app", "container_id": "3f2a", "pod_uid": "0b51"})
}

func TestUnlimitedConnectionsAreInfinite(t *testing.T) {
	s := fleet(1)
	s.Listeners[0].Connector.MaxConnections.Value = -1
	got := collect(t, s)
	require.Greater(t, samples(got["tcpdiag_connector_limit"])["limit=max_connections"], 1e300)
	require.NotContains(t, got, "tcpdiag_listener_client_capacity")
}

func TestAProcessIsNamedByItsLowestPort(t *testing.T) {
	s := &model.Snapshot{Listeners: []model.Listener{overloaded(8443, 42), overloaded(8080, 42), overloaded(9000, 43)}}
	require.Equal(t, map[string]float64{"process=java:8080": 8460, "process=java:9000": 8460},
		samples(collect(t, s)["tcpdiag_process_open_files"]))
}

func TestLabelsThatAreNoUTF8DoNotFailTheScrape(t *testing.T) {
	s := fleet(1)
	s.Listeners[0].Process.Comm = "ja\xffva"
	s.Listeners[0].Limits[0].Name = "\xfe"
	require.Contains(t, samples(collect(t, s)["tcpdiag_process_threads"]), `process=ja\xffva:8080`)
}

// What the agent counts says since when; what the kernel and the JVM count is older.
func TestCountersSayWhenTheyBegan(t *testing.T) {
	started := time.Unix(1_700_000_000, 0)
	families, err := promexport.NewRegistry(source(fleet(2)), started, promexport.Build{}).Gather()
	require.NoError(t, err)
	own, others := 0, 0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			switch c := m.GetCounter(); {
			case c == nil || !strings.HasPrefix(name, "tcpdiag_"):
			case strings.HasPrefix(name, "tcpdiag_netns_") && name != "tcpdiag_netns_unattributed_dropped_packets_total",
				strings.HasPrefix(name, "tcpdiag_process_"), strings.HasPrefix(name, "tcpdiag_jvm_"):
				require.Nil(t, c.CreatedTimestamp, name)
				others++
			default:
				require.Equal(t, started.UTC(), c.GetCreatedTimestamp().AsTime(), name)
				own++
			}
		}
	}
	require.Greater(t, own, 5)
	require.Greater(t, others, 5)
}
