package command

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	document "github.com/tcpdiag/tcpdiag/internal/api"
)

// cluster is as much of an API server as is asked here: pods, one workload, agents behind the
// proxy, and rights that are denied in a real server's words.
type cluster struct {
	t          *testing.T
	config     string
	mu         sync.Mutex
	pods       map[string]*core.Pod         // by namespace/name
	answers    map[string]map[string][]byte // by namespace/name:port, then by path
	denied     map[string]bool              // "get pods/proxy", …
	asks       map[string]int               // of each agent
	ephemerals []core.EphemeralContainer
	replicas   int                         // of the Deployment orders
	starts     func(*core.ContainerStatus) // what becomes of an ephemeral container, nil for running
	instead    http.HandlerFunc            // answers for every agent, where it is given
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, pods: map[string]*core.Pod{}, answers: map[string]map[string][]byte{}, denied: map[string]bool{}, asks: map[string]int{}, replicas: 1}
	server := httptest.NewTLSServer(c) // a token is given to no other
	t.Cleanup(server.Close)
	config := api.NewConfig()
	config.Clusters["c"] = &api.Cluster{Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	config.AuthInfos["u"] = &api.AuthInfo{Token: "t"}
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u", Namespace: "shop"}
	config.CurrentContext = "x"
	c.config = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, c.config))
	return c
}

// add is a running pod of the Deployment orders on a node, perhaps with a sidecar.
func (c *cluster) add(name, node string, containers ...string) *core.Pod {
	pod := &core.Pod{ObjectMeta: meta.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("uid-" + name), Labels: map[string]string{"app": "orders"}}}
	pod.Spec.NodeName, pod.Status.Phase = node, core.PodRunning
	for _, name := range containers {
		pod.Spec.Containers = append(pod.Spec.Containers, core.Container{Name: name})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, core.ContainerStatus{
			Name: name, ContainerID: "containerd://" + name, State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Now()}},
		})
	}
	c.pods["shop/"+name] = pod
	return pod
}

// addAgent is the agent of a node.
func (c *cluster) addAgent(node string) {
	pod := c.add("agent-"+node, node, "tcpdiag")
	delete(c.pods, "shop/"+pod.Name)
	pod.Namespace, pod.Labels = "tcpdiag", map[string]string{"app.kubernetes.io/name": "tcpdiag"}
	c.pods["tcpdiag/"+pod.Name] = pod
}

// answer is what an agent says.
func (c *cluster) answer(at, path string, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.answers[at] == nil {
		c.answers[at] = map[string][]byte{}
	}
	c.answers[at][path] = body
}

// overloaded is a snapshot of a Tomcat that is overloaded, of that pod and container.
func overloaded(t *testing.T, pod *core.Pod, change func(*document.Snapshot)) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../../internal/render/testdata/a5_overload.json")
	require.NoError(t, err)
	var s document.Snapshot
	require.NoError(t, json.Unmarshal(text, &s))
	s.IntervalSeconds = 3
	s.Listeners[0].Process.PodUID, s.Listeners[0].Process.Container = string(pod.UID), pod.Spec.Containers[0].Name
	if change != nil {
		change(&s)
	}
	text, err = json.Marshal(&s)
	require.NoError(t, err)
	return text
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	verb, resource, namespace, name, rest := c.asked(r, parts)
	if c.denied[verb+" "+resource] || c.denied[verb+" "+resource+" in "+namespace] {
		c.status(w, http.StatusForbidden, fmt.Sprintf(`pods %q is forbidden: User "jane" cannot %s resource %q in API group "" in the namespace %q`, name, verb, resource, namespace))
		return
	}
	switch resource {
	case "deployments":
		if name != "orders" {
			c.status(w, http.StatusNotFound, fmt.Sprintf("deployments.apps %q not found", name))
			return
		}
		_, _ = fmt.Fprintf(w, `{"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"orders"}}}}`, c.replicas)
	case "pods/proxy":
		c.asks[namespace+"/"+name]++
		if c.instead != nil {
			c.instead(w, r)
			return
		}
		body, ok := c.answers[namespace+"/"+name]["/"+rest]
		if !ok {
			c.status(w, http.StatusServiceUnavailable, "error trying to reach service: connection refused")
			return
		}
		_, _ = w.Write(body)
	case "pods/ephemeralcontainers":
		if namespace == "guarded" {
			c.status(w, http.StatusForbidden, fmt.Sprintf(`pods %q is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true`, name))
			return
		}
		c.patch(w, r, namespace, name)
	case "pods":
		c.list(w, r, namespace, name)
	default:
		c.status(w, http.StatusNotFound, "no such resource")
	}
}

// asked is a request in the words of RBAC.
func (c *cluster) asked(r *http.Request, parts []string) (verb, resource, namespace, name, rest string) {
	verb = map[string]string{http.MethodGet: "get", http.MethodPatch: "patch", http.MethodPost: "create"}[r.Method]
	for i, p := range parts {
		if p != "namespaces" && (p == "pods" || p == "deployments") {
			resource = p
			if i > 1 && parts[i-2] == "namespaces" {
				namespace = parts[i-1]
			}
			parts = parts[i+1:]
			break
		}
	}
	if len(parts) == 0 {
		return "list", resource, namespace, "", ""
	}
	name = parts[0]
	if len(parts) > 1 {
		resource += "/" + parts[1]
		rest = strings.Join(parts[2:], "/")
	}
	if strings.HasSuffix(resource, "/portforward") {
		verb = "create"
	}
	return verb, resource, namespace, name, rest
}

func (c *cluster) list(w http.ResponseWriter, r *http.Request, namespace, name string) {
	if name != "" {
		pod, ok := c.pods[namespace+"/"+name]
		if !ok {
			c.status(w, http.StatusNotFound, fmt.Sprintf("pods %q not found", name))
			return
		}
		_ = json.NewEncoder(w).Encode(pod)
		return
	}
	selector, err := meta.ParseToLabelSelector(r.URL.Query().Get("labelSelector"))
	require.NoError(c.t, err)
	of, err := meta.LabelSelectorAsSelector(selector)
	require.NoError(c.t, err)
	var list core.PodList
	for _, pod := range c.pods {
		if (namespace == "" || pod.Namespace == namespace) && of.Matches(labels.Set(pod.Labels)) {
			list.Items = append(list.Items, *pod)
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

// patch starts the container at once, and what is in it answers.
func (c *cluster) patch(w http.ResponseWriter, r *http.Request, namespace, name string) {
	var patch struct {
		Spec struct{ EphemeralContainers []core.EphemeralContainer }
	}
	require.NoError(c.t, json.NewDecoder(r.Body).Decode(&patch))
	pod := c.pods[namespace+"/"+name]
	for _, one := range patch.Spec.EphemeralContainers {
		c.ephemerals = append(c.ephemerals, one)
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, one)
		status := core.ContainerStatus{Name: one.Name, State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Now()}}}
		if c.starts != nil {
			c.starts(&status)
		}
		pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, status)
	}
	_ = json.NewEncoder(w).Encode(pod)
}

func (c *cluster) status(w http.ResponseWriter, code int32, message string) {
	reason := map[int32]meta.StatusReason{http.StatusForbidden: meta.StatusReasonForbidden, http.StatusNotFound: meta.StatusReasonNotFound}[code]
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(code))
	_ = json.NewEncoder(w).Encode(meta.Status{
		TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure, Code: code, Message: message, Reason: reason,
		Details: &meta.StatusDetails{Kind: strings.Trim(strings.SplitN(message, " ", 2)[0], ":")},
	})
}

// run runs the command line.
func (c *cluster) run(args ...string) (stdout, stderr string, code int) {
	var out, complaints bytes.Buffer
	code = Main(c.t.Context(), append([]string{"--kubeconfig", c.config}, args...), &out, &complaints)
	return out.String(), complaints.String(), code
}
