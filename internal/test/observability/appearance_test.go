package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/model"
)

// drawing is what a panel says of its appearance: what no query test can see.
type drawing struct {
	Type        string
	Title       string
	GridPos     struct{ X, Y, W int }
	Targets     []target
	FieldConfig struct {
		Defaults  field
		Overrides []struct {
			Matcher    struct{ ID, Options string }
			Properties []struct {
				ID    string
				Value json.RawMessage
			}
		}
	}
	Options struct {
		Legend struct {
			Placement, DisplayMode, SortBy string
			SortDesc                       bool
		}
	}
	Transformations []struct {
		ID      string
		Options json.RawMessage
	}
}

type field struct {
	Unit     string
	NoValue  string
	Min, Max *float64
	Mappings []struct {
		Type    string
		Options struct {
			Match  string
			Result struct{ Text, Color string }
		}
	}
	Color      struct{ Mode string }
	Custom     struct{ AxisSoftMax *float64 }
	Thresholds struct{ Steps []struct{ Color string } }
}

// overridden is a property of one field, nil where it has none.
func (p *drawing) overridden(name, property string) json.RawMessage {
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.Options != name {
			continue
		}
		for _, q := range o.Properties {
			if q.ID == property {
				return q.Value
			}
		}
	}
	return nil
}

// eachDrawing runs a check for every panel of every dashboard.
func eachDrawing(t *testing.T, check func(*testing.T, *drawing)) {
	t.Helper()
	for _, name := range []string{"backlog", "fleet"} {
		b, err := os.ReadFile(filepath.Join(dashboardsDir, name+".json"))
		require.NoError(t, err)
		var d struct {
			Panels []struct {
				drawing
				Panels []drawing // of a row that is folded
			}
		}
		require.NoError(t, json.Unmarshal(b, &d))
		for i := range d.Panels {
			p := &d.Panels[i]
			for _, one := range append([]drawing{p.drawing}, p.Panels...) {
				if one.Type != "row" {
					t.Run(name+"/"+one.Title, func(t *testing.T) { check(t, &one) })
				}
			}
		}
	}
}

// What a reader sees first answers: of one listener what holds now (its status, why, the
// room in use) beside what was lost; of all a table, the worst first, and the clients
// that were turned away.
func TestFirstRows(t *testing.T) {
	first := make(map[string][]string)
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.GridPos.Y == 0 {
			dashboard := strings.Split(t.Name(), "/")[1]
			first[dashboard] = append(first[dashboard], p.Title)
		}
		if p.Title != "Listeners, worst first" {
			return
		}
		require.Zero(t, p.GridPos.X)
		last := p.Transformations[len(p.Transformations)-1]
		require.Equal(t, "sortBy", last.ID)
		require.JSONEq(t, `{"fields": {}, "sort": [{"field": "Status", "desc": true}]}`, string(last.Options))
		for _, column := range []string{"Status", "Room in use", "Drops"} {
			require.NotNil(t, p.overridden(column, "custom.cellOptions"), column)
		}
		require.Contains(t, string(p.overridden("Status", "mappings")), `"losing"`)
		require.Contains(t, string(p.overridden("Listener", "links")), "/d/tcpdiag-backlog?")
	})
	require.Equal(t, map[string][]string{
		"backlog": {"Status", "Why", "Room in use", "Clients turned away", "Dropped now"},
		"fleet":   {"Listeners, worst first", "Clients turned away"},
	}, first)
}

// A cell whose bar is of a stage's share, full or empty as the stage is: 20 of 20
// half-open connections were drawn as an empty bar.
func TestStagesDrawTheirShare(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Title == "Stages and their limits" {
			require.Equal(t, "0", string(p.overridden("Full", "min")))
			require.Equal(t, "1", string(p.overridden("Full", "max")))
			require.Contains(t, string(p.overridden("Full", "custom.cellOptions")), `"gauge"`)
			require.Contains(t, p.Targets[2].Expr, "tcpdiag_listener_syn_backlog_length")
		}
		require.NotEqual(t, "heatmap", p.Type, "it glares when nothing is wrong")
	})
}

// No value takes the first threshold's colour, green, unless it is mapped; and where it is mapped, what it
// says is the mapping's: "no data" stood where the panel knew better.
func TestNoDataIsNotGreen(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Type != "stat" && p.Type != "gauge" {
			return
		}
		for _, m := range p.FieldConfig.Defaults.Mappings {
			if m.Type == "special" && m.Options.Match == "null+nan" {
				require.NotEmpty(t, m.Options.Result.Text)
				require.Equal(t, p.FieldConfig.Defaults.NoValue, m.Options.Result.Text)
				require.NotEmpty(t, m.Options.Result.Color)
				require.NotContains(t, m.Options.Result.Color, "green")
				return
			}
		}
		require.Fail(t, "null and NaN are not mapped")
	})
}

// What a panel says when it is empty stands in each empty cell as well, and is cut there.
func TestEmptyCellsAreDashes(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Type != "table" {
			return
		}
		first := p.FieldConfig.Overrides[0]
		require.Equal(t, "byRegexp .*", first.Matcher.ID+" "+first.Matcher.Options)
		require.Len(t, first.Properties, 1)
		require.Equal(t, "noValue", first.Properties[0].ID)
		require.JSONEq(t, `"–"`, string(first.Properties[0].Value))
	})
}

// A legend that is a table shows three names, and a scroll bar: what has a few more, each of its own colour, is a
// list, and of ten that are alike the highest are first.
func TestLegendsShowWhatMatters(t *testing.T) {
	alike := regexp.MustCompile(`\{\{(who|instance|peer)\}\}`)
	eachDrawing(t, func(t *testing.T, p *drawing) {
		legend := p.Options.Legend
		if p.Type != "timeseries" || legend.DisplayMode == "list" {
			return
		}
		for _, q := range p.Targets {
			if strings.Contains(q.LegendFormat, "{{") {
				require.Regexp(t, alike, q.LegendFormat)
				require.Equal(t, "Max", legend.SortBy)
				require.True(t, legend.SortDesc)
				return
			}
		}
		require.LessOrEqual(t, len(p.Targets), 3)
	})
}

// A unit formats every number of a table, those that a link sends as well:
// a namespace's 4026531840 became "4.03 Bil". Units belong to single fields.
func TestUnitsDoNotReachLinks(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Type != "table" {
			return
		}
		require.Equal(t, "none", p.FieldConfig.Defaults.Unit)
		links := string(p.overridden("Listener", "links"))
		for _, of := range []string{"job", "netns"} {
			require.Nil(t, p.overridden(of, "unit"), of)
			if links != "" {
				require.Contains(t, links, "${__data.fields."+of+":percentencode}")
			}
		}
	})
}

// Grafana's own scale of a state timeline writes "< 1" and "3+" next to the
// mapped words; a fixed colour turns that scale off. Two namespaces of one
// instance need two names.
func TestStatusTimelines(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Type != "state-timeline" {
			return
		}
		require.Equal(t, "fixed", p.FieldConfig.Defaults.Color.Mode)
		require.NotEmpty(t, p.FieldConfig.Defaults.Mappings)
		require.Contains(t, p.Targets[0].LegendFormat, "{{netns}}")
		require.True(t, strings.HasPrefix(p.Targets[0].LegendFormat, "{{who}} "), "a pod or a process is what a person reads first")
		sick := strings.Contains(p.Targets[0].Expr, "listener:tcpdiag_trouble:max{") || strings.Contains(p.Targets[0].Expr, `status="ok"}[$__range] @ end()) == 0`)
		require.True(t, sick, "hundreds that are ok hide the one that is not")
	})
}

// Shares end at 100 %: an accept queue can hold one more for a moment. An idle
// one must not stretch its axis to 10,000 %.
func TestSharesEndAtOne(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		d := p.FieldConfig.Defaults
		if p.Type != "timeseries" || d.Unit != "percentunit" {
			return
		}
		require.NotNil(t, d.Min)
		if d.Max == nil {
			require.NotNil(t, d.Custom.AxisSoftMax, "several CPUs or threads add up to more than 1")
			return
		}
		require.InDelta(t, 1, *d.Max, 0)
		for _, q := range p.Targets {
			require.True(t, strings.HasPrefix(q.Expr, "clamp_max(") && strings.HasSuffix(q.Expr, ", 1)"), q.Expr)
		}
	})
}

// "304 mp/s" and "14 K" are what pps and short make of small rates and of counts.
func TestUnitsReadWell(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		unit := p.FieldConfig.Defaults.Unit
		if p.Type == "stat" {
			require.NotEqual(t, "short", unit)
		}
		for _, q := range p.Targets {
			if regexp.MustCompile(`rate\(tcpdiag_(listener_)?dropped_packets_total`).MatchString(q.Expr) && p.Type != "table" {
				require.Equal(t, "count:/s", unit)
			}
		}
	})
}

// Losses are never green, keep their colour when another cause appears, and
// nothing lost is no row of its own.
func TestLossesHaveTheirOwnColours(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Type != "timeseries" || !strings.HasPrefix(p.Title, "Packets dropped") {
			return
		}
		require.Equal(t, "fixed", p.FieldConfig.Defaults.Color.Mode)
		for _, cause := range []string{"max_connections", "keep_alive_idle", "open_files", "jvm_pause", "cpu_throttled", "cpu_saturated", "slow_accept", "accept_queue", "syn_backlog"} {
			colour := string(p.overridden(cause, "color"))
			require.NotEmpty(t, colour, cause)
			require.NotContains(t, colour, "green", cause)
		}
		for _, q := range p.Targets {
			require.NotContains(t, q.Expr, `"none"`)
		}
	})
}

// An outcome keeps its colour when another appears; nobody turned away is green.
func TestOutcomesHaveTheirOwnColours(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if !strings.HasPrefix(p.Title, "Clients, by how") {
			return
		}
		for o := range model.NumClientOutcomes {
			colour := string(p.overridden(o.String(), "color"))
			require.NotEmpty(t, colour, o)
			require.Equal(t, o == model.ClientConnected, strings.Contains(colour, "green"), o)
		}
	})
}

// A title has about five characters a column at 1280 pixels; a legend next to
// the graph is cut there.
func TestTitlesAndLegendsFit(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		require.LessOrEqual(t, len(p.Title), 5*p.GridPos.W, p.Title)
		if p.Type == "timeseries" {
			require.Equal(t, "bottom", p.Options.Legend.Placement)
		}
	})
}

// The numbers of one row are those of one instance: "21 of 42, 100 %" hid one
// sick pod among fifty.
func TestStagesAreThoseOfOneInstance(t *testing.T) {
	eachDrawing(t, func(t *testing.T, p *drawing) {
		if p.Title != "Stages and their limits" {
			return
		}
		require.Len(t, p.Targets, 3)
		for _, q := range p.Targets {
			require.NotContains(t, q.Expr, "sum(")
			require.Equal(t, 5, strings.Count(q.Expr, "and on (job, instance, netns) topk(1, "), q.Expr)
			require.Contains(t, q.Expr, `"1 SYN backlog"`)
		}
	})
}
