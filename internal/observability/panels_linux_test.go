package observability

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// choice is what a reader has chosen in the dashboards' variables.
type choice struct{ job, instance, listener, netns, port string }

func (c choice) in(expr string, rate, shown time.Duration) string {
	return strings.NewReplacer(
		"$__rate_interval", rate.String(), "$__range", shown.Round(time.Second).String(),
		"$job", c.job, "$instance", c.instance, "$listener", c.listener, "$netns", c.netns, "$port", c.port,
	).Replace(expr)
}

// show evaluates a query as Grafana does over the time of the test, and keeps
// the series that have a number in them.
func (s *stack) show(t *testing.T, q target, c choice, interval time.Duration) []Series {
	t.Helper()
	now := time.Now()
	expr := c.in(q.Expr, 4*interval, now.Sub(s.started))
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
	c := choice{job: ".+", instance: of["instance"], listener: of["listener"], netns: ".+", port: of["port"]}
	eachTarget(t, func(t *testing.T, _ dashboard, _ panel, q target) {
		if len(s.show(t, q, c, scrape)) > 0 {
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

// notExported are the metrics that this machine cannot tell: whatever an agent
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

// visible holds the panels that must show what fell between two scrapes.
func (s *stack) visible(t *testing.T) {
	c := choice{job: "tcpdiag-short", instance: ".+", listener: s.short.Address().String(), netns: ".+", port: ".+"}
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			switch p.Title {
			case "Accept queue at its fullest", "Time the queue was full", "Packets dropped",
				"Share of the time the queue was full", "Packets dropped, by cause", "Top losses", "Fullest accept queues":
				shown := s.show(t, p.Targets[0], c, shortScrape)
				require.True(t, slices.ContainsFunc(shown, func(one Series) bool {
					return slices.ContainsFunc(one.Values, func(v float64) bool { return v > 0 })
				}), "%s shows nothing: %v", p.Title, shown)
			}
		}
	}
}
