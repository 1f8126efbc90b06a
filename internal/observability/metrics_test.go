package observability

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/backlog"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

// The folders under test, from here.
var (
	rulesDir      = filepath.Join("..", "..", "deploy", "prometheus")
	dashboardsDir = filepath.Join("..", "..", "dashboards")
)

// exported are the names of all series that an agent can have.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{"up": true} // Prometheus's own
	for _, m := range promexport.Metrics() {
		names[m.Name] = true
		if m.Type == "histogram" {
			names[m.Name+"_bucket"], names[m.Name+"_sum"], names[m.Name+"_count"] = true, true, true
		}
	}
	registry := promexport.NewRegistry(func() *backlog.Snapshot { return nil }, promexport.Build{})
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, f := range families {
		names[f.GetName()] = true
	}
	return names
}

// rule is a recording or an alerting rule of the files.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

func rules(t *testing.T) (recording, alerting []rule) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rulesDir, "*.rules.yml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var f ruleFile
		require.NoError(t, yaml.Unmarshal(b, &f))
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					alerting = append(alerting, r)
				} else {
					recording = append(recording, r)
				}
			}
		}
	}
	return recording, alerting
}

// selectors are all of an expression's, with the nodes above each.
type selected struct {
	*parser.VectorSelector
	above []parser.Node
}

func selectors(t *testing.T, expr string) []selected {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, "%s", expr)
	var out []selected
	parser.Inspect(parsed, func(n parser.Node, path []parser.Node) error {
		if v, ok := n.(*parser.VectorSelector); ok {
			out = append(out, selected{v, append([]parser.Node(nil), path...)})
		}
		return nil
	})
	return out
}

// queries are the expressions that a template's text asks for, their verbs
// filled with a label that matches nothing.
func queries(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`printf ("(?:[^"\\]|\\.)*")[^|}]*\| query`).FindAllStringSubmatch(text, -1) {
		var format string
		if yaml.Unmarshal([]byte(m[1]), &format) != nil {
			continue
		}
		out = append(out, strings.NewReplacer("%s", `job="x"`, "%q", `"x"`).Replace(format))
	}
	return out
}
