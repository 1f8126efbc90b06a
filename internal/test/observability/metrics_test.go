package observability

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/tcpdiag/tcpdiag/internal/model"
	"github.com/tcpdiag/tcpdiag/internal/promexport"
)

// The folders under test, from here.
var (
	rulesDir      = filepath.Join("..", "..", "..", "deploy", "prometheus")
	dashboardsDir = filepath.Join("..", "..", "..", "dashboards")
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
	registry := promexport.NewRegistry(func() *model.Snapshot { return nil }, time.Unix(1_700_000_000, 0), promexport.Build{})
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

// selector is a metric's name with its matchers and what stands around it.
// Where all metrics have a prefix of their own, this needs no parser; that the
// expressions parse is promtool's to say.
type selector struct {
	name, matchers, ranged string
	function               string // it is an argument of, "" for none
}

func selectors(expr string) []selector {
	names := regexp.MustCompile(`(?:(\w+)\()?\b((?:[a-z_]+:)?tcpdiag_[a-z0-9_:]+|kube_[a-z_]+|up|process_[a-z_]+|go_[a-z_]+|ALERTS)\b(?:\{([^}]*)\})?(?:\[([^\]]*)\])?`)
	var out []selector
	for _, m := range names.FindAllStringSubmatch(withoutStrings(expr), -1) {
		out = append(out, selector{function: m[1], name: m[2], matchers: m[3], ranged: m[4]})
	}
	return out
}

// withoutStrings empties the strings that are no matcher's value: the label
// names and values of label_replace.
func withoutStrings(expr string) string {
	return regexp.MustCompile(`, "[^"]*"`).ReplaceAllString(expr, `, ""`)
}

// requireParses has promtool parse expressions, as rules of a file.
func requireParses(t *testing.T, exprs []string) {
	t.Helper()
	var f struct {
		Groups []map[string]any `yaml:"groups"`
	}
	var all []map[string]string
	for _, expr := range exprs {
		all = append(all, map[string]string{"record": "parsed:expression", "expr": expr})
	}
	f.Groups = []map[string]any{{"name": "expressions", "rules": all}}
	path := filepath.Join(t.TempDir(), "expressions.yml")
	require.NoError(t, writeYAML(path, f))
	tool(t, "promtool", "check", "rules", "--lint=none", path)
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
		out = append(out, strings.NewReplacer("%s", `job="x"`, "%[1]s", `job="x"`, "%q", `"x"`).Replace(format))
	}
	return out
}
