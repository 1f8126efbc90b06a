package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	scraping "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1alpha1"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/yaml"
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(m.Run())
}

// values reads YAML as `helm --values` does.
func values(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

// everything turns every part of the chart on.
func everything() map[string]any {
	on := func() map[string]any { return map[string]any{"enabled": true} }
	return map[string]any{
		"podMonitor": on(), "prometheusRule": on(), "dashboards": on(), "service": on(), "networkPolicy": on(),
		"archive": map[string]any{"enabled": true, "bucket": "gs://incidents"},
	}
}

// valueSets are the chart's values files, no values at all, and everything on.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	out, err := valuesFiles()
	require.NoError(t, err)
	require.Len(t, out, 4)
	out["none"], out["everything"] = map[string]any{}, everything()
	return out
}

// What `helm lint --strict` says: no warning.
func TestLint(t *testing.T) {
	for name, v := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			result := lint.RunAll(chartFolder, v, releaseNamespace)
			require.Less(t, result.HighestSeverity, support.WarningSev, "%v", result.Messages)
		})
	}
}

func TestEveryValuesFileRendersStrictly(t *testing.T) {
	for name, v := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			agent := one[*apps.DaemonSet](t, rendered(t, v))
			require.Equal(t, []string{"agent", "--all-namespaces"}, pod(t, agent).Spec.Containers[0].Args[:2])
		})
	}
}

// By default there is the agent and its account, and nothing that needs a CRD.
func TestNothingIsThereUnasked(t *testing.T) {
	objects := lasting(t, nil)
	require.Len(t, objects, 2)
	one[*apps.DaemonSet](t, objects)
	one[*core.ServiceAccount](t, objects)
}

func TestSchemaRejects(t *testing.T) {
	for _, tt := range []struct{ name, values, says string }{
		{"an unknown key", "hostNetwork: true", "hostNetwork"},
		{"an unknown key below", "image: {version: 1.0.0}", "version"},
		{"a typing error", "podMonitor: {enable: true}", "enable"},
		{"a port beyond all", "port: 70000", "port"},
		{"a truth as a string", `podMonitor: {enabled: "yes"}`, "enabled"},
		{"an unknown level", "log: {level: verbose}", "level"},
		{"a flag that is none", "extraArgs: [agent]", "extraArgs"},
		{"a digest that is none", "image: {digest: latest}", "digest"},
		{"a label that is a number", "podLabels: {team: 3}", "team"},
		{"an interval without a unit", `podMonitor: {interval: "15"}`, "interval"},
		{"an unknown pull policy", "image: {pullPolicy: Sometimes}", "pullPolicy"},
		{"an unknown volume", "incidents: {volume: pvc}", "volume"},
		{"a relative path of the node", "incidents: {volume: hostPath, hostPath: incidents}", "hostPath"},
		{"the whole node", "incidents: {volume: hostPath, hostPath: /}", "hostPath"},
		{"a monitor and annotations", "{podMonitor: {enabled: true}, scrapeAnnotations: true}", "choose one"},
		{"a monitor and a ScrapeConfig", "{serviceMonitor: {enabled: true}, scrapeConfig: {enabled: true}}", "choose one"},
		{"both monitors", "{podMonitor: {enabled: true}, serviceMonitor: {enabled: true}}", "choose one"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := renderChart(t.Context(), chartFolder, values(t, tt.values))
			require.ErrorContains(t, err, tt.says)
		})
	}
}

// Every default passes the schema that belongs to it, and every value has its
// place in it: a value that the schema forgot could not be set.
func TestSchemaKnowsEveryDefault(t *testing.T) {
	c, err := loader.Load(chartFolder)
	require.NoError(t, err)
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	require.NoError(t, yaml.Unmarshal(c.Schema, &schema))
	for key := range c.Values {
		require.Contains(t, schema.Properties, key)
	}
	delete(schema.Properties, "global")
	require.Len(t, c.Values, len(schema.Properties), "each key of the schema has a default that says what it is")
}

// A monitor finds the agents by the port's name and by labels, and the job's
// name is one that the alerts on a missing agent know.
func TestMonitorsFindTheAgents(t *testing.T) {
	objects := rendered(t, values(t, "podMonitor: {enabled: true, labels: {release: prometheus}}"))
	agent := pod(t, one[*apps.DaemonSet](t, objects))
	pods := one[*monitoring.PodMonitor](t, objects)
	requireSelected(t, pods.Spec.Selector.MatchLabels, agent.Labels)
	require.Equal(t, "prometheus", pods.Labels["release"])
	require.Equal(t, agent.Spec.Containers[0].Ports[0].Name, *pods.Spec.PodMetricsEndpoints[0].Port)
	require.Contains(t, agent.Labels[pods.Spec.JobLabel], "tcpdiag")

	objects = lasting(t, values(t, "serviceMonitor: {enabled: true}"))
	service := one[*core.Service](t, objects)
	services := one[*monitoring.ServiceMonitor](t, objects)
	requireSelected(t, services.Spec.Selector.MatchLabels, service.Labels)
	requireSelected(t, service.Spec.Selector, pod(t, one[*apps.DaemonSet](t, objects)).Labels)
	require.Equal(t, service.Spec.Ports[0].Name, services.Spec.Endpoints[0].Port)
	require.Contains(t, service.Labels[services.Spec.JobLabel], "tcpdiag")
}

// A ScrapeConfig keeps the agents' port and nothing else, and a Prometheus without the operator
// is told it by annotations.
func TestOtherWaysToScrape(t *testing.T) {
	objects := lasting(t, values(t, "scrapeConfig: {enabled: true, labels: {release: prometheus}}"))
	agent := pod(t, one[*apps.DaemonSet](t, objects))
	config := one[*scraping.ScrapeConfig](t, objects)
	require.Equal(t, "prometheus", config.Labels["release"])
	require.Contains(t, *config.Spec.JobName, "tcpdiag")
	keep := config.Spec.RelabelConfigs[0]
	labels := map[monitoring.LabelName]string{
		"__meta_kubernetes_pod_label_app_kubernetes_io_name":     agent.Labels["app.kubernetes.io/name"],
		"__meta_kubernetes_pod_label_app_kubernetes_io_instance": agent.Labels["app.kubernetes.io/instance"],
		"__meta_kubernetes_pod_container_port_name":              agent.Spec.Containers[0].Ports[0].Name,
	}
	kept := func(name monitoring.LabelName, value string) bool {
		var all []string
		for _, source := range keep.SourceLabels {
			if source == name {
				all = append(all, value)
			} else {
				all = append(all, labels[source])
			}
		}
		return regexp.MustCompile("^(?:" + keep.Regex + ")$").MatchString(strings.Join(all, *keep.Separator))
	}
	require.Equal(t, "keep", keep.Action)
	require.True(t, kept("", ""))
	for name := range labels {
		require.False(t, kept(name, "other"), name)
	}
	annotated := pod(t, one[*apps.DaemonSet](t, lasting(t, values(t, "{scrapeAnnotations: true, port: 9101}"))))
	require.Subset(t, annotated.Annotations, map[string]string{
		"prometheus.io/scrape": "true", "prometheus.io/port": "9101", "prometheus.io/path": "/metrics",
	})
	require.NotContains(t, agent.Annotations, "prometheus.io/scrape")
}

// The pod of helm test asks the agents, is none of them for any selector, needs no privilege, and is let
// through.
func TestHelmTest(t *testing.T) {
	with := values(t, "networkPolicy: {enabled: true, from: [{podSelector: {matchLabels: {app: prometheus}}}]}")
	asked, agent := hooks(t, with), pod(t, one[*apps.DaemonSet](t, rendered(t, with)))
	service, asker := one[*core.Service](t, asked), one[*core.Pod](t, asked)
	requireSelected(t, service.Spec.Selector, agent.Labels)
	require.NotSubset(t, asker.Labels, service.Spec.Selector, "a DaemonSet would adopt it")
	require.Equal(t, "--address=http://"+service.Name+"."+service.Namespace+".svc:10889", asker.Spec.Containers[0].Args[1])
	require.Empty(t, forbidden(t, api.LevelRestricted, &core.PodTemplateSpec{ObjectMeta: asker.ObjectMeta, Spec: asker.Spec}))
	policy := one[*networking.NetworkPolicy](t, rendered(t, with))
	from := policy.Spec.Ingress[0].From
	require.Len(t, from, 2)
	requireSelected(t, from[1].PodSelector.MatchLabels, asker.Labels)
}

// values.yaml is the source: of its comments and lines the schema and the README's table are made.
func TestValuesAreTheSource(t *testing.T) {
	files, err := ofValues()
	require.NoError(t, err)
	require.Len(t, files, 2)
	for path, want := range files {
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s is stale: run make manifests", path)
	}
	text, err := os.ReadFile(valuesFile)
	require.NoError(t, err)
	all, err := chartValues(text)
	require.NoError(t, err)
	var each func(all []*value)
	each = func(all []*value) {
		for _, v := range all {
			if v.children == nil {
				require.NotEmpty(t, v.brief(), "%s: a comment above it", v.path)
			}
			each(v.children)
		}
	}
	each(all)
	_, err = chartValues([]byte("list: []\n"))
	require.NoError(t, err)
	bare, err := chartValues([]byte("# A list.\nlist: []\n"))
	require.NoError(t, err)
	_, err = renderSchema(bare)
	require.ErrorContains(t, err, "list", "nobody said of what")
}

// Whoever may scrape reaches the agent's port, and the agent reaches nobody.
func TestNetworkPolicy(t *testing.T) {
	objects := rendered(t, values(t, "networkPolicy: {enabled: true, from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}"))
	policy, agent := one[*networking.NetworkPolicy](t, objects), pod(t, one[*apps.DaemonSet](t, objects))
	requireSelected(t, policy.Spec.PodSelector.MatchLabels, agent.Labels)
	require.Len(t, policy.Spec.PolicyTypes, 2)
	require.Empty(t, policy.Spec.Egress)
	require.Len(t, policy.Spec.Ingress, 1)
	require.Equal(t, agent.Spec.Containers[0].Ports[0].Name, policy.Spec.Ingress[0].Ports[0].Port.StrVal)
	require.Len(t, policy.Spec.Ingress[0].From, 2, "and helm test")
	require.Equal(t, "monitoring", policy.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels["kubernetes.io/metadata.name"])
	require.Empty(t, every[*networking.NetworkPolicy](rendered(t, values(t, "networkPolicy: null"))), "an upgrade with --reuse-values of an older release")
}

// What Artifact Hub shows of the chart: the image is that of the chart, and its own lists are YAML.
func TestArtifactHub(t *testing.T) {
	c, err := loader.Load(chartFolder)
	require.NoError(t, err)
	var images, changes, links []map[string]any
	for key, out := range map[string]*[]map[string]any{"images": &images, "changes": &changes, "links": &links} {
		require.NoError(t, yaml.UnmarshalStrict([]byte(c.Metadata.Annotations["artifacthub.io/"+key]), out), key)
		require.NotEmpty(t, *out, key)
	}
	require.Equal(t, pod(t, one[*apps.DaemonSet](t, rendered(t, nil))).Spec.Containers[0].Image, images[0]["image"])
	for _, change := range changes {
		require.Contains(t, []string{"added", "changed", "deprecated", "removed", "fixed", "security"}, change["kind"])
	}
}

func TestRulesAreThoseOfDeployPrometheus(t *testing.T) {
	objects := every[*monitoring.PrometheusRule](rendered(t, everything()))
	require.Len(t, objects, 3)
	for _, rule := range objects {
		file := strings.TrimPrefix(rule.Name, "tcpdiag-")
		source, err := os.ReadFile("../prometheus/" + file + ".rules.yml")
		require.NoError(t, err)
		var want monitoring.PrometheusRuleSpec
		require.NoError(t, yaml.UnmarshalStrict(source, &want))
		require.NotEmpty(t, want.Groups)
		require.Equal(t, want.Groups, rule.Spec.Groups)
	}
	alertsOnly := rendered(t, values(t, "prometheusRule: {enabled: true, recordingRules: false}"))
	require.Equal(t, "tcpdiag-alerting", one[*monitoring.PrometheusRule](t, alertsOnly).Name)
}

func TestDashboardsAreThoseOfTheFolder(t *testing.T) {
	sources, err := filepath.Glob("../../dashboards/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	data := map[string]string{}
	for _, o := range every[*core.ConfigMap](rendered(t, everything())) {
		require.Equal(t, "1", o.Labels["grafana_dashboard"])
		for name, text := range o.Data {
			data[name] = text
		}
	}
	require.Len(t, data, len(sources))
	for _, path := range sources {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(source), data["tcpdiag-"+filepath.Base(path)])
	}
}

// Nothing in the chart's folder is a copy of a file that exists elsewhere.
func TestChartLinksToTheSources(t *testing.T) {
	links := 0
	require.NoError(t, filepath.WalkDir(filepath.Join(chartFolder, "files"), func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			require.NotZero(t, d.Type()&os.ModeSymlink, "%s is no symbolic link", path)
			links++
		}
		return err
	}))
	require.Equal(t, 5, links)
}

// `helm package` puts into the archive what the links point to.
func TestPackagedChartIsTheSame(t *testing.T) {
	c, err := loader.Load(chartFolder)
	require.NoError(t, err)
	archive, err := chartutil.Save(c, t.TempDir())
	require.NoError(t, err)
	want, err := renderChart(t.Context(), chartFolder, everything())
	require.NoError(t, err)
	got, err := renderChart(t.Context(), archive, everything())
	require.NoError(t, err)
	require.Equal(t, want, got)
}
