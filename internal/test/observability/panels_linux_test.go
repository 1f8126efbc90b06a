package observability

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// inserted asks Prometheus what a dashboard's variables offer over the time of
// the test.
func (s *stack) inserted(t *testing.T, d dashboard, c choice) map[string]string {
	t.Helper()
	return d.inserted(t, c, func(metric, label string) (found []string) {
		got, err := s.prometheus.Query(t.Context(), fmt.Sprintf("group by (%s) (last_over_time(%s[%s]))", label, metric, s.shown()))
		require.NoError(t, err)
		for _, one := range got {
			found = append(found, one.Labels[label])
		}
		slices.Sort(found)
		return found
	})
}

// shown is the dashboards' time range: that of the test.
func (s *stack) shown() time.Duration { return time.Since(s.started).Round(time.Second) }

// show evaluates a query as Grafana does over the time of the test, and keeps
// the series that have a number in them.
func (s *stack) show(t *testing.T, q target, inserted map[string]string, interval time.Duration) []Series {
	t.Helper()
	now := time.Now()
	expr := insert(strings.NewReplacer("$__rate_interval", (4*interval).String(), "$__range", s.shown().String()).Replace(q.Expr), inserted)
	var got []Series
	var err error
	if q.Instant {
		got, err = s.prometheus.Query(t.Context(), expr)
	} else {
		steps := now.Sub(s.started) / interval // so that the last one is now
		got, err = s.prometheus.QueryRange(t.Context(), expr, now.Add(-steps*interval), now, interval)
	}
	require.NoError(t, err)
	return slices.DeleteFunc(got, func(one Series) bool {
		return !slices.ContainsFunc(one.Values, func(v float64) bool { return !math.IsNaN(v) })
	})
}

// panels asks both dashboards for everything they show of the overload.
func (s *stack) panels(t *testing.T) {
	missing := s.notExported(t)
	of := s.told("pager", "tcpdiag")[0].Labels
	inserted := make(map[string]map[string]string)
	for _, d := range dashboards(t) {
		inserted[d.UID] = s.inserted(t, d, choice{"instance": of["instance"], "listener": of["listener"]})
	}
	eachTarget(t, func(t *testing.T, d dashboard, p panel, q target) {
		if p.Title == "Ports without a listener" { // it lists what is down, and every port is served here
			var filtered bool
			q.Expr, filtered = strings.CutSuffix(q.Expr, " > 0")
			require.True(t, filtered)
		}
		if strings.Contains(q.Expr, "unless on ()") {
			return // in the place of clients where they are not counted
		}
		if strings.Contains(q.Expr, "listener:tcpdiag_trouble:max") || strings.Contains(q.Expr, "instance_status:tcpdiag_listeners:count") {
			return // of statuses that nobody has by now: TestDashboardsOfThreeServers has who has them
		}
		if strings.HasSuffix(p.Title, ", by peer") {
			return // the server connects to nobody: TestClientsAndPeersOnDashboards has one that does
		}
		if len(s.show(t, q, inserted[d.UID], scrape)) > 0 {
			return
		}
		for _, used := range selectors(q.Expr) {
			if missing[used.name] {
				t.Skipf("this machine does not tell %s", used.name)
			}
		}
		require.Fail(t, "nothing to show", "%s", q.Expr)
	})
}

// notExported are the metrics that this machine cannot provide: whatever an agent
// can export and Prometheus has not seen.
func (s *stack) notExported(t *testing.T) map[string]bool {
	t.Helper()
	out := exported(t)
	seen, err := s.prometheus.Query(t.Context(), `group by (__name__) (last_over_time({job=~".+"}[10m]))`)
	require.NoError(t, err)
	for _, one := range seen {
		delete(out, one.Labels["__name__"])
	}
	return out
}

// visible holds the panels that must show what fell between two scrapes, and
// those that must not show what another port of the same agent is.
func (s *stack) visible(t *testing.T) {
	for _, d := range dashboards(t) {
		inserted := s.inserted(t, d, choice{"job": "tcpdiag-short", "listener": s.short.Address().String()})
		for _, p := range d.drawn() {
			switch p.Title {
			case "Fullest queue", "Time it was full", "Packets dropped",
				"Share of time the queue was full", "Packets dropped, by cause", "Top losses", "Fullest accept queues":
				require.True(t, anyValue(s.show(t, p.Targets[0], inserted, shortScrape), func(v float64) bool { return v > 0 }),
					"%s shows nothing", p.Title)
			case "Status":
				const down = 4
				shown := s.show(t, p.Targets[0], inserted, shortScrape)
				require.NotEmpty(t, shown, p.Title)
				require.False(t, anyValue(shown, func(v float64) bool { return v >= down }), "%s: %v", p.Title, shown)
			}
		}
	}
}

func anyValue(series []Series, is func(float64) bool) bool {
	return slices.ContainsFunc(series, func(one Series) bool { return slices.ContainsFunc(one.Values, is) })
}
