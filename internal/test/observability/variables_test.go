package observability

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// choice is what a reader has chosen in a dashboard's variables, by name. The
// others stand as they do when a dashboard is opened: at All, or, where there is
// no All, at the first.
type choice map[string]string

// inserted are the texts that Grafana puts in the place of a dashboard's query
// variables, each of which may ask with those before it. values answers a
// label_values query, sorted.
func (d dashboard) inserted(t *testing.T, c choice, values func(metric, label string) []string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		query := regexp.MustCompile(`^label_values\((.+), (\w+)\)$`).FindStringSubmatch(v.Query)
		require.NotNil(t, query, v.Query)
		found := values(insert(query[1], out), query[2])
		chosen, ok := c[v.Name]
		switch {
		case ok && v.Multi:
			out[v.Name] = anyOf(chosen)
		case ok:
			out[v.Name] = chosen
		case v.IncludeAll && v.AllValue != "":
			out[v.Name] = v.AllValue
		case v.IncludeAll:
			out[v.Name] = anyOf(found...)
		default:
			require.NotEmpty(t, found, v.Query)
			out[v.Name] = found[0]
		}
	}
	return out
}

// anyOf is a regular expression for the values, inside a string of PromQL. Of
// no values it is one that only an absent label matches.
func anyOf(values ...string) string {
	var escaped []string
	for _, v := range values {
		escaped = append(escaped, strings.ReplaceAll(regexp.QuoteMeta(v), `\`, `\\`))
	}
	if len(escaped) == 1 {
		return escaped[0]
	}
	return "(" + strings.Join(escaped, "|") + ")"
}

func insert(expr string, inserted map[string]string) string {
	return regexp.MustCompile(`\$[a-z]\w*`).ReplaceAllStringFunc(expr, func(name string) string {
		if text, ok := inserted[name[1:]]; ok {
			return text
		}
		return name
	})
}

func TestVariablesAsGrafanaInsertsThem(t *testing.T) {
	var d dashboard
	d.Templating.List = []variable{
		{Name: "datasource", Type: "datasource", Query: "prometheus"},
		{Name: "job", Type: "query", Query: "label_values(a, job)", Multi: true, IncludeAll: true, AllValue: ".+"},
		{Name: "listener", Type: "query", Query: `label_values(b{job=~"$job"}, listener)`},
		{Name: "port", Type: "query", Query: `label_values(c{listener="$listener"}, port)`, Multi: true, IncludeAll: true},
	}
	answers := map[string][]string{
		"a job":                          {"x", "y"},
		`b{job=~".+"} listener`:          {"[::]:1", "[::]:2"},
		`b{job=~"x\\.y"} listener`:       {"[::]:1"},
		`c{listener="[::]:1"} port`:      {"1"},
		`c{listener="[::]:2"} port`:      {"2", "3"},
		`c{listener="[::]:gone"} port`:   nil,
		`c{listener="127.0.0.1:1"} port`: {"1"},
	}
	ask := func(metric, label string) []string {
		found, ok := answers[metric+" "+label]
		require.True(t, ok, "%s %s", metric, label)
		return found
	}
	for _, tt := range []struct {
		chosen choice
		want   map[string]string
	}{
		{nil, map[string]string{"job": ".+", "listener": "[::]:1", "port": "1"}},
		{choice{"job": "x.y"}, map[string]string{"job": `x\\.y`, "listener": "[::]:1", "port": "1"}},
		{choice{"listener": "[::]:2"}, map[string]string{"job": ".+", "listener": "[::]:2", "port": "(2|3)"}},
		{choice{"listener": "[::]:gone"}, map[string]string{"job": ".+", "listener": "[::]:gone", "port": "()"}},
	} {
		require.Equal(t, tt.want, d.inserted(t, tt.chosen, ask), "%v", tt.chosen)
	}
}
