package observability

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// dashboard is what the tests need of Grafana's classic JSON.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Editable      bool
	Panels        []panel
	Templating    struct{ List []variable }
	Annotations   struct {
		List []struct {
			Name       string
			Datasource datasource
			Expr       string
		}
	}
}

type datasource struct{ Type, UID string }

type variable struct {
	Name, Label, Type, Query, AllValue string
	Datasource                         datasource
	Multi, IncludeAll                  bool
	Refresh                            int
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  datasource
	GridPos     struct{ X, Y, W, H int }
	Targets     []target
	Collapsed   bool
	Panels      []panel // of a row that is folded
	FieldConfig struct {
		Defaults struct {
			Unit       string
			NoValue    string
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
		}
	}
}

type target struct {
	RefID        string
	Expr         string
	LegendFormat string
	Datasource   datasource
	Instant      bool
	Range        bool
}

func dashboards(t *testing.T) []dashboard {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dashboardsDir, "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []dashboard
	for _, path := range files {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var d dashboard
		require.NoError(t, json.NewDecoder(bytes.NewReader(b)).Decode(&d), path)
		out = append(out, d)
	}
	return out
}

// all are the panels, those within rows that are folded too.
func (d dashboard) all() (out []panel) {
	for _, p := range d.Panels {
		out = append(append(out, p), p.Panels...)
	}
	return out
}

// drawn are the panels with data: all but the headings.
func (d dashboard) drawn() []panel {
	var out []panel
	for _, p := range d.all() {
		if p.Type != "row" {
			out = append(out, p)
		}
	}
	return out
}

// parseable gives Grafana's own variables, where a duration must stand, a value.
func parseable(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h").Replace(expr)
}

// eachTarget runs a check for every query of every dashboard.
func eachTarget(t *testing.T, check func(*testing.T, dashboard, panel, target)) {
	t.Helper()
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			for _, q := range p.Targets {
				t.Run(d.UID+"/"+p.Title+"/"+q.RefID, func(t *testing.T) { check(t, d, p, q) })
			}
		}
	}
}

// The rules of Grafana's dashboard linter: template-*, panel-*, uneditable.
func TestDashboardsAreLinted(t *testing.T) {
	units := []string{"none", "short", "locale", "s", "percentunit", "count:/s", "bytes"}
	for _, d := range dashboards(t) {
		t.Run(d.UID, func(t *testing.T) {
			require.LessOrEqual(t, d.SchemaVersion, 38, "classic JSON, for Grafana 10 and newer")
			require.False(t, d.Editable)
			ids, titles := make(map[int]bool), make(map[string]bool)
			for _, p := range d.all() {
				require.False(t, ids[p.ID], "id %d twice", p.ID)
				require.False(t, titles[p.Title], "%q twice", p.Title)
				ids[p.ID], titles[p.Title] = true, true
			}
			for _, p := range d.drawn() {
				require.NotEmpty(t, p.Title)
				require.Greater(t, len(p.Description), 20, p.Title)
				require.Equal(t, datasource{"prometheus", "${datasource}"}, p.Datasource, p.Title)
				require.Contains(t, units, p.FieldConfig.Defaults.Unit, p.Title)
				require.NotEmpty(t, p.Targets, p.Title)
				require.NotEmpty(t, p.FieldConfig.Defaults.NoValue, "%s: what it means that there is nothing", p.Title)
				require.Contains(t, []string{"timeseries", "stat", "gauge", "table", "heatmap", "bargauge", "state-timeline"}, p.Type)
			}
			for _, a := range d.Annotations.List {
				if a.Expr != "" {
					require.Equal(t, "${datasource}", a.Datasource.UID)
					require.Contains(t, a.Expr, "ALERTS{")
				}
			}
		})
	}
}

func TestDashboardVariables(t *testing.T) {
	for _, d := range dashboards(t) {
		t.Run(d.UID, func(t *testing.T) {
			known := make(map[string]variable)
			for _, v := range d.Templating.List {
				known[v.Name] = v
				if v.Type != "query" {
					continue
				}
				require.Equal(t, "${datasource}", v.Datasource.UID, v.Name)
				require.Equal(t, 2, v.Refresh, "%s: reload when the time range changes", v.Name)
				query := regexp.MustCompile(`^label_values\((.+), \w+\)$`).FindStringSubmatch(v.Query)
				require.NotNil(t, query, v.Query)
				if v.Name != "job" && v.Name != "instance" {
					require.Empty(t, v.AllValue, "%s: All is what its query finds, not every value that there is", v.Name)
				}
				found := selectors(query[1])
				require.Len(t, found, 1, v.Query)
				require.True(t, exported(t)[found[0].name], v.Query)
			}
			require.Equal(t, "datasource", known["datasource"].Type)
			require.Equal(t, "prometheus", known["datasource"].Query)
			for name, label := range map[string]string{"job": "Job", "instance": "Instance"} {
				require.Equal(t, label, known[name].Label)
				require.True(t, known[name].Multi && known[name].IncludeAll, name)
				require.Equal(t, ".+", known[name].AllValue, name)
			}
			for _, p := range d.drawn() {
				for _, q := range p.Targets {
					for _, use := range regexp.MustCompile(`\$([a-z_]\w*)`).FindAllStringSubmatch(q.Expr, -1) {
						require.True(t, strings.HasPrefix(use[1], "__") || known[use[1]].Name != "", "%s: $%s", p.Title, use[1])
					}
				}
			}
		})
	}
}

// target-job-rule, target-instance-rule, target-rate-interval-rule,
// target-counter-agg-rule, and a legend for whatever has one.
func TestDashboardQueries(t *testing.T) {
	known := exported(t)
	recording, _ := rules(t)
	for _, r := range recording {
		known[r.Record] = true
	}
	eachTarget(t, func(t *testing.T, _ dashboard, p panel, q target) {
		require.Equal(t, "${datasource}", q.Datasource.UID)
		require.NotEqual(t, q.Instant, q.Range)
		if p.Type == "timeseries" {
			require.True(t, q.Range)
			require.NotContains(t, []string{"", "__auto"}, q.LegendFormat)
		}
		found := selectors(q.Expr)
		require.NotEmpty(t, found)
		for _, s := range found {
			require.True(t, known[s.name], "no agent exports %q", s.name)
			require.Contains(t, s.matchers, `job=~"$job"`, s.name)
			require.Contains(t, s.matchers, `instance=~"$instance"`, s.name)
			requireCounterIsRate(t, s)
		}
	})
}

func requireCounterIsRate(t *testing.T, s selector) {
	t.Helper()
	switch {
	case strings.HasSuffix(s.name, "_total") || strings.HasSuffix(s.name, "_bucket") || strings.HasSuffix(s.name, "_count"):
		require.Contains(t, []string{"rate", "increase"}, s.function, "%s is a counter", s.name)
	case s.ranged == "":
		require.NotContains(t, []string{"rate", "increase"}, s.function, "%s has no range", s.name)
	}
	if s.function == "rate" {
		require.Equal(t, "$__rate_interval", s.ranged, s.name)
	}
	require.Contains(t, []string{"", "$__rate_interval", "$__range"}, s.ranged, s.name)
}

func TestDashboardQueriesParse(t *testing.T) {
	var exprs []string
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			for _, q := range p.Targets {
				exprs = append(exprs, parseable(q.Expr))
			}
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				exprs = append(exprs, regexp.MustCompile(`\((.+),`).FindStringSubmatch(v.Query)[1])
			}
		}
		for _, a := range d.Annotations.List {
			if a.Expr != "" {
				exprs = append(exprs, a.Expr)
			}
		}
	}
	requireParses(t, exprs)
}

// Panels do not overlap and leave the 24 columns of a row, nor do those that are seen
// when a row is unfolded; the lower rows are folded.
func TestDashboardLayout(t *testing.T) {
	for _, d := range dashboards(t) {
		requireApart(t, d.Panels)
		folded := 0
		for _, p := range d.Panels {
			require.Equal(t, p.Type == "row", p.Collapsed, p.Title)
			require.Equal(t, p.Collapsed, len(p.Panels) > 0, p.Title)
			requireApart(t, p.Panels)
			if p.Collapsed {
				folded++
			} else {
				require.Zero(t, folded, "%s is below a row that is folded", p.Title)
			}
		}
		require.GreaterOrEqual(t, folded, 3, d.UID)
	}
}

func requireApart(t *testing.T, panels []panel) {
	t.Helper()
	taken := make(map[[2]int]string)
	for _, p := range panels {
		g := p.GridPos
		require.LessOrEqual(t, g.X+g.W, 24, p.Title)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s over", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// What turns yellow or red on a dashboard is what the alerts speak of.
func TestThresholdsAreThoseOfTheAlerts(t *testing.T) {
	recording, alerting := rules(t)
	exprs := make(map[string]string)
	for _, a := range alerting {
		exprs[a.Alert] = a.Expr
	}
	require.Contains(t, exprs["TcpdiagOpenFilesHigh"], ">= 80")
	require.Contains(t, exprs["TcpdiagEphemeralPortsHigh"], ">= 80")
	require.Contains(t, exprs["TcpdiagAcceptQueueHigh"], "above_80")
	require.Contains(t, exprs["TcpdiagAgentMissesSamples"], ">= 50")
	require.Contains(t, exprs["TcpdiagBacklogFull"], ">= 0.1")
	for _, r := range recording {
		exprs[r.Record] = r.Expr
	}
	require.Contains(t, exprs["listener:tcpdiag_overflow_packets:increase3m"], ">= 3")
	want := map[string][]float64{
		"Fullest queue":           {.8, 1},
		"Room in use":             {.8, 1},
		"Open files":              {.8, 1},
		"How full each stage is":  {.8, 1},
		"Stages and their limits": {.8, 1},
		"Time it was full":        {.1, 3},
		"Nearest to a limit":      {.8, 1},
		"Fullest accept queues":   {.8, 1},
		"Fullest servers":         {.8, 1},
		"Samples missed":          {.5},
	}
	for _, d := range dashboards(t) {
		for _, p := range d.drawn() {
			steps, ok := want[p.Title]
			if !ok {
				continue
			}
			delete(want, p.Title)
			var got []float64
			for _, s := range p.FieldConfig.Defaults.Thresholds.Steps {
				if s.Value != nil {
					got = append(got, *s.Value)
				}
			}
			require.Equal(t, steps, got, p.Title)
		}
	}
	require.Empty(t, want, "panels that are gone")
}
