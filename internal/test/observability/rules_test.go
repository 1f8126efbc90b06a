package observability

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// tool runs one of Prometheus's tools and returns what it printed; it skips
// where the tool is missing, but not in CI.
func tool(t *testing.T, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("%s is not installed (Debian: prometheus, prometheus-alertmanager)", name)
	}
	require.NoError(t, err)
	out, err := exec.Command(path, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(rulesDir, pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// fleetRules are the rules that the Fleet dashboard needs.
func fleetRules(t *testing.T) (files []string) {
	t.Helper()
	for _, name := range []string{"alerting", "fleet"} {
		path, err := filepath.Abs(filepath.Join(rulesDir, name+".rules.yml"))
		require.NoError(t, err)
		files = append(files, path)
	}
	return files
}

func TestConfigurationsAreValid(t *testing.T) {
	tool(t, "promtool", append([]string{"check", "rules"}, glob(t, "*.rules.yml")...)...)
	tool(t, "promtool", "check", "config", filepath.Join(rulesDir, "prometheus.yml"))
	tool(t, "amtool", "check-config", filepath.Join(rulesDir, "alertmanager.yml"))
}

func TestRules(t *testing.T) {
	for _, file := range glob(t, "tests/*.test.yml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel() // with one another, and not beside servers: each takes all of a processor
			tool(t, "promtool", "test", "rules", file)
		})
	}
}

// Every alert is tested firing, with its text, and staying quiet.
func TestEveryAlertIsTested(t *testing.T) {
	fires, quiet := make(map[string]bool), make(map[string]bool)
	for _, file := range glob(t, "tests/*.test.yml") {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var f struct {
			Tests []struct {
				Alerts []struct {
					Alert    string `yaml:"alertname"`
					Expected []struct {
						Annotations map[string]string `yaml:"exp_annotations"`
					} `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		require.NoError(t, yaml.Unmarshal(b, &f))
		for _, test := range f.Tests {
			for _, a := range test.Alerts {
				quiet[a.Alert] = quiet[a.Alert] || len(a.Expected) == 0
				for _, e := range a.Expected {
					fires[a.Alert] = fires[a.Alert] || e.Annotations["summary"] != ""
				}
			}
		}
	}
	_, alerting := rules(t)
	for _, a := range alerting {
		require.True(t, fires[a.Alert], "%s is not tested firing", a.Alert)
		require.True(t, quiet[a.Alert], "%s is not tested staying quiet", a.Alert)
	}
}

// Every alert says where, what and what to do.
func TestAlertsExplainThemselves(t *testing.T) {
	_, alerting := rules(t)
	names := make(map[string]bool)
	for _, a := range alerting {
		t.Run(a.Alert, func(t *testing.T) {
			require.False(t, names[a.Alert], "twice")
			names[a.Alert] = true
			require.Contains(t, []string{"critical", "warning"}, a.Labels["severity"])
			for _, annotation := range []string{"summary", "description", "runbook", "runbook_url", "dashboard_url"} {
				require.NotEmpty(t, a.Annotations[annotation], annotation)
			}
			text := a.Annotations["summary"] + a.Annotations["description"] + a.Annotations["runbook"]
			switch {
			case strings.Contains(a.Expr, `"listener", `):
				require.Contains(t, a.Annotations["summary"], "$labels.listener")
				require.Regexp(t, `server\.\w+|net\.ipv4\.|net\.core\.`, text, "names no setting")
			case strings.Contains(a.Expr, "tcpdiag_process_"):
				require.Contains(t, a.Annotations["summary"], "$labels.process")
				require.Contains(t, text, "LimitNOFILE")
			case strings.Contains(a.Expr, "tcpdiag_target_up"):
				require.Contains(t, a.Annotations["summary"], "$labels.port")
			case a.Alert != "TcpdiagAgentAbsent":
				require.Contains(t, a.Annotations["summary"], "$labels.instance")
			}
		})
	}
}

// No rule and no text asks for what no agent exports and no rule records.
func TestRulesUseExportedMetrics(t *testing.T) {
	recording, alerting := rules(t)
	known := exported(t)
	for _, r := range recording {
		known[r.Record] = true
	}
	for _, name := range []string{"kube_pod_owner", "kube_replicaset_owner"} {
		known[name] = true // of kube-state-metrics
	}
	var asked []string
	used := func(where, expr string) {
		found := selectors(expr)
		require.NotEmpty(t, found, "%s", expr)
		for _, s := range found {
			require.True(t, known[s.name], "%s uses %q", where, s.name)
		}
	}
	for _, r := range recording {
		used(r.Record, r.Expr)
	}
	for _, a := range alerting {
		used(a.Alert, a.Expr)
		for _, text := range a.Annotations {
			require.Equal(t, strings.Count(text, "| query"), len(queries(text)), a.Alert)
			for _, q := range queries(text) {
				used(a.Alert, q)
				asked = append(asked, q)
			}
		}
	}
	requireParses(t, asked)
}

type matchers []string

// names are the alerts that alertname matchers select.
func (m matchers) names(t *testing.T, alerts []string) []string {
	t.Helper()
	require.Len(t, m, 1)
	match := regexp.MustCompile(`^alertname=(~?)"(.*)"$`).FindStringSubmatch(m[0])
	require.NotNil(t, match, m[0])
	pattern := regexp.MustCompile("^(?:" + match[2] + ")$")
	return slices.DeleteFunc(slices.Clone(alerts), func(name string) bool {
		return match[1] == "" && name != match[2] || match[1] != "" && !pattern.MatchString(name)
	})
}

// The inhibition speaks of alerts that there are, never lets two hold each
// other back, and leaves no symptom of an overflow to be reported next to it.
func TestInhibition(t *testing.T) {
	_, alerting := rules(t)
	var names []string
	for _, a := range alerting {
		names = append(names, a.Alert)
	}
	var config struct {
		Rules []struct {
			Source matchers `yaml:"source_matchers"`
			Target matchers `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}
	b, err := os.ReadFile(filepath.Join(rulesDir, "alertmanager.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(b, &config))
	holds := make(map[string][]string)
	for _, r := range config.Rules {
		sources, targets := r.Source.names(t, names), r.Target.names(t, names)
		require.NotEmpty(t, sources, "%v", r.Source)
		require.NotEmpty(t, targets, "%v", r.Target)
		require.Subset(t, r.Equal, []string{"job", "instance"}, "another instance's alert must not hold it back")
		for _, alternative := range strings.Split(strings.Trim(regexp.MustCompile(`\((.*)\)`).FindString(r.Target[0]), "()"), "|") {
			if alternative != "" && !strings.Contains(alternative, ".*") {
				require.True(t, slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(n, alternative) }), alternative)
			}
		}
		for _, s := range sources {
			holds[s] = append(holds[s], targets...)
		}
	}
	for source, targets := range holds {
		require.NotContains(t, targets, source)
		for _, target := range targets {
			require.NotContains(t, holds[target], source, "%s and %s hold each other back", source, target)
		}
	}
	require.Subset(t, holds["TcpdiagBacklogOverflow"], []string{
		"TcpdiagAcceptQueueHigh", "TcpdiagMaxConnectionsReached", "TcpdiagKeepAliveHoldsConnections",
		"TcpdiagThreadsExhausted", "TcpdiagClientsAbandonRequests", "TcpdiagBacklogOverflowPredicted", "TcpdiagBacklogFull",
	})
}

// "About 1 clients": a number and its noun agree; there is always room for more than one.
func TestAlertsSayOneAndMany(t *testing.T) {
	plural := regexp.MustCompile(`room for \{\{[^{}]*%\.0f" \}\} clients|%\.0f" \}\}(?:\{\{ end \}\})? (?:clients|SYNs|handshake packets|packets|connections|listeners)\b`)
	for _, file := range glob(t, "*.rules.yml") {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range plural.FindAllString(string(b), -1) {
			require.True(t, strings.HasPrefix(found, "room for"), "%s: %s", file, found)
		}
	}
}
