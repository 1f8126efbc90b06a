package cluster

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// keda has the CRDs that the examples are held against.
const keda = "github.com/kedacore/keda/v2@v2.21.0"

// TestScaling has what stands between the pods and an autoscaler: kube-state-metrics, Prometheus with the
// rules, prometheus-adapter with the example's configuration, and KEDA's CRDs in the API server. The pods
// are made and never run: what an agent says of them is said here.
func TestScaling(t *testing.T) {
	if os.Getenv(enable) == "" {
		t.Skip(whySkipped)
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("Debian: prometheus")
	}
	c := startCluster(t)
	c.addNode(t)
	c.run(t, "kubectl create namespace shop")
	c.run(t, "kubectl -n shop create deployment orders --image=orders --replicas=2")
	c.pods(t, "shop", "app=orders", 2)
	t.Run("KEDA", func(t *testing.T) { testKEDA(t, c) })
	c.run(t, "kubectl apply --validate=strict -f deploy/kubernetes/scaling/hpa.yaml")
	require.Contains(t, c.run(t, "kubectl -n shop get hpa orders"), "Deployment/orders")

	p := c.startMetrics(t)
	const queue = `workload:tcpdiag_accept_queue_used_ratio:scalable`
	within(t, time.Minute, "the workload's backlog", func() bool {
		return len(p.query(t, queue+`{namespace="shop",workload="orders",workload_kind="Deployment"} == 0.5`)) == 1
	})
	t.Run("adapter", func(t *testing.T) { testAdapter(t, c, p) })

	// Both pods are replaced by others, of another template: the workload's history is one series.
	began := time.Now()
	c.run(t, `kubectl -n shop patch deployment orders --patch '{"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}, "template": {"metadata": {"labels": {"version": "2"}}}}}'`)
	within(t, time.Minute, "the new pods", func() bool { // without a kubelet nobody else ends the others
		c.run(t, "kubectl -n shop delete pods --selector app=orders,version!=2 --force --grace-period=0")
		list, err := c.client.CoreV1().Pods("shop").List(t.Context(), meta.ListOptions{LabelSelector: "version=2"})
		return err == nil && len(list.Items) == 2
	})
	fresh := c.pods(t, "shop", "version=2", 2)
	within(t, time.Minute, "the new pods' workload", func() bool {
		return len(p.query(t, fmt.Sprintf(`listener:tcpdiag_workload:info{workload="orders",pod=~"%s|%s"}`, fresh[0].Name, fresh[1].Name))) == 2
	})
	require.Len(t, p.query(t, "count_over_time("+queue+`{workload="orders"}[10m])`), 1)
	require.Empty(t, p.query(t, fmt.Sprintf(`changes((count(%s{workload="orders"}) > 1)[%ds:1s])`, queue, int(time.Since(began).Seconds())+30)), "never two")
}

// testKEDA applies the example to the CRD of KEDA itself, which finds what is planted.
func testKEDA(t *testing.T, c *cluster) {
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", keda).Output()
	require.NoError(t, err, "%s", out)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &module))
	c.run(t, "kubectl create -f "+filepath.Join(module.Dir, "config/crd/bases/keda.sh_scaledobjects.yaml"))
	within(t, time.Minute, "the CRD is established", func() bool {
		return c.command(t.Context(), "kubectl apply --validate=strict -f deploy/kubernetes/scaling/keda.yaml").Run() == nil
	})
	c.run(t, "kubectl -n shop delete scaledobject orders")
	c.run(t, applyScaler)
	require.Contains(t, c.run(t, "kubectl -n shop get scaledobject orders --output name"), "orders")
	text, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/scaling/keda.yaml"))
	require.NoError(t, err)
	for was, is := range map[string]string{"triggers:": "trigger:", "metricType:": "metricsType:", "maxReplicaCount: 10": "maxReplicaCount: ten"} {
		path := filepath.Join(t.TempDir(), "keda.yaml")
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), was, is, 1)), 0o600))
		_, err := c.sh(t, "kubectl apply --validate=strict --dry-run=server -f "+path)
		require.Error(t, err, is)
	}
}

// prometheus is one that runs, with the rules.
type prometheus struct{ url string }

// startMetrics runs kube-state-metrics and a Prometheus that scrapes it, and what an agent would say of
// each pod that is there: half of its accept queue is in use.
func (c *cluster) startMetrics(t *testing.T) prometheus {
	t.Helper()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pods, err := c.client.CoreV1().Pods("shop").List(r.Context(), meta.ListOptions{})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		for i := range pods.Items {
			listener := fmt.Sprintf(`netns="%d",listener="[::]:8080"`, 1000+i)
			fmt.Fprintf(w, "tcpdiag_listener_info{%s,namespace=\"shop\",pod=\"%s\",container=\"orders\"} 1\n", listener, pods.Items[i].Name)
			fmt.Fprintf(w, "tcpdiag_listener_accept_queue_peak{%[1]s} 50\ntcpdiag_listener_accept_queue_capacity{%[1]s} 100\ntcpdiag_listener_clients_turned_away_total{%[1]s} 0\n", listener)
		}
	}))
	t.Cleanup(agent.Close)
	state, own := freePort(t), freePort(t)
	start(t, c.dir, c.program("kube-state-metrics"), "--kubeconfig="+c.file("admin.kubeconfig"), "--host=127.0.0.1", "--port="+state, "--telemetry-host=127.0.0.1", "--telemetry-port="+freePort(t), "--resources=pods,replicasets")
	rules, err := filepath.Abs(filepath.Join(root, "deploy/prometheus/recording.rules.yml"))
	require.NoError(t, err)
	config := map[string]any{
		"global":     map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files": []string{rules},
		"scrape_configs": []any{
			map[string]any{"job_name": "kube-state-metrics", "honor_labels": true, "static_configs": []any{map[string]any{"targets": []string{"127.0.0.1:" + state}}}},
			map[string]any{"job_name": "tcpdiag", "static_configs": []any{map[string]any{"targets": []string{strings.TrimPrefix(agent.URL, "http://")}}}},
		},
	}
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.file("prometheus.yml"), text, 0o600))
	path, err := exec.LookPath("prometheus")
	require.NoError(t, err)
	start(t, c.dir, path, "--config.file=prometheus.yml", "--storage.tsdb.path=prometheus", "--web.listen-address=127.0.0.1:"+own)
	return prometheus{"http://127.0.0.1:" + own}
}

// query is what an expression gives now, nothing while Prometheus starts.
func (p prometheus) query(t *testing.T, expr string) []any {
	t.Helper()
	var answer struct {
		Status string
		Data   struct{ Result []any }
	}
	resp, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	if json.Unmarshal(body, &answer) != nil || answer.Status != "success" {
		require.NotEqual(t, http.StatusBadRequest, resp.StatusCode, "%s: %s", expr, body)
		return nil
	}
	return answer.Data.Result
}

// testAdapter asks prometheus-adapter for what the example's HPA asks for.
func testAdapter(t *testing.T, c *cluster, p prometheus) {
	var values struct {
		Rules struct {
			External []any `json:"external"`
		} `json:"rules"`
	}
	text, err := os.ReadFile(filepath.Join(root, "deploy/kubernetes/scaling/adapter-values.yaml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &values))
	config, err := yaml.Marshal(map[string]any{"externalRules": values.Rules.External}) // as its chart writes it
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.file("adapter.yaml"), config, 0o600))
	port, admin := freePort(t), c.file("admin.kubeconfig")
	start(t, c.dir, c.program("adapter"), "--lister-kubeconfig="+admin, "--authentication-kubeconfig="+admin, "--authorization-kubeconfig="+admin,
		"--prometheus-url="+p.url, "--config=adapter.yaml", "--bind-address=127.0.0.1", "--secure-port="+port, "--tls-cert-file=kube-apiserver.crt", "--tls-private-key-file=kube-apiserver.key",
		"--client-ca-file=ca.crt", "--metrics-relist-interval=2s")
	cert, err := tls.LoadX509KeyPair(c.file("admin.crt"), c.file("admin.key"))
	require.NoError(t, err)
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{cert}}}}
	ask := func(metric string) string {
		resp, err := client.Get("https://" + net.JoinHostPort("127.0.0.1", port) + "/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/" + metric + "?labelSelector=workload%3Dorders")
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return string(body)
	}
	for metric, want := range map[string]string{"tcpdiag_accept_queue_used_ratio": `"value":"500m"`, "tcpdiag_clients_turned_away_per_second": `"value":"0"`} {
		said := ""
		defer func() { t.Logf("%s: %s", metric, said) }()
		within(t, time.Minute, metric, func() bool {
			said = ask(metric)
			return strings.Contains(said, want)
		})
	}
}
