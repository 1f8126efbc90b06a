// Package kube is the little that kubectl tcpdiag asks of the API server: pods and what
// selects them, an agent's answers by the pod proxy or a forwarded port, a command in a
// container, one more ephemeral container. What is denied says which right is missing.
package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// Client asks one cluster, as one user.
type Client struct {
	config *rest.Config
	rest   *rest.RESTClient
}

// New is a client by a kubeconfig's settings.
func New(config *rest.Config, agent string) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := core.AddToScheme(scheme); err != nil {
		return nil, err
	}
	meta.AddToGroupVersion(scheme, core.SchemeGroupVersion)
	limited := rest.CopyConfig(config)
	limited.UserAgent = agent
	limited.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{next} })
	limited.QPS, limited.Burst = 50, 100
	limited.WarningHandler = rest.NoWarnings{}
	limited.APIPath, limited.GroupVersion = "/api", &core.SchemeGroupVersion
	limited.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(limited)
	if err != nil {
		return nil, err
	}
	return &Client{limited, client}, nil
}

// access is what is asked for, in the words of RBAC.
type access struct {
	verb, group, resource, namespace string
}

// podPath is a pod's address below /api/v1, of a subresource where one is given.
func podPath(namespace, name string, sub ...string) string {
	return path.Join(append([]string{"/api/v1/namespaces", url.PathEscape(namespace), "pods", url.PathEscape(name)}, sub...)...)
}

// get reads a document.
func (c *Client) get(ctx context.Context, what access, into any, address string, query url.Values) error {
	r := c.rest.Get().AbsPath(address)
	for name, values := range query {
		for _, v := range values {
			r = r.Param(name, v)
		}
	}
	result := r.Do(ctx)
	if err := result.Error(); err != nil { // Raw's error lacks the server's words
		if api.IsNotFound(err) && !NotThere(err) {
			return &answered{"what answers there is no API server of Kubernetes, or one that does not know " + what.resource + ": kubectl cluster-info and kubectl config current-context say which one it is", err}
		}
		return explain(err, what)
	}
	raw, err := result.Raw()
	if err != nil {
		return explain(err, what)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("the API server's answer cannot be read: %w", err)
	}
	return nil
}

// Pod is one pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (*core.Pod, error) {
	pod := new(core.Pod)
	return pod, c.get(ctx, access{"get", "", "pods", namespace}, pod, podPath(namespace, name), nil)
}

// page is how many pods are asked for at a time.
const page = "500"

// Pods are those of a namespace, "" for all, that the selectors select.
func (c *Client) Pods(ctx context.Context, namespace, labels, fields string) (pods []core.Pod, err error) {
	address := "/api/v1/pods"
	if namespace != "" {
		address = path.Join("/api/v1/namespaces", url.PathEscape(namespace), "pods")
	}
	query := url.Values{"limit": {page}}
	if labels != "" {
		query.Set("labelSelector", labels)
	}
	if fields != "" {
		query.Set("fieldSelector", fields)
	}
	for {
		var list core.PodList
		if err := c.get(ctx, access{"list", "", "pods", namespace}, &list, address, query); err != nil {
			return nil, err
		}
		pods = append(pods, list.Items...)
		if list.Continue == "" {
			return pods, nil
		}
		query.Set("continue", list.Continue)
	}
}

// Log is what a container has printed, bounded.
func (c *Client) Log(ctx context.Context, namespace, pod, container string) ([]byte, error) {
	result := c.rest.Get().AbsPath(podPath(namespace, pod, "log")).Param("container", container).Param("limitBytes", "65536").Do(ctx)
	if err := result.Error(); err != nil {
		return nil, explain(err, access{"get", "", "pods/log", namespace})
	}
	return result.Raw()
}

// AddEphemeral starts one more container in a pod. It can be neither changed nor removed.
func (c *Client) AddEphemeral(ctx context.Context, namespace, pod string, container *core.EphemeralContainer) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"ephemeralContainers": []*core.EphemeralContainer{container}}})
	if err != nil {
		return err
	}
	err = c.rest.Patch(types.StrategicMergePatchType).AbsPath(podPath(namespace, pod, "ephemeralcontainers")).Body(patch).Do(ctx).Error()
	return explain(err, access{"patch", "", "pods/ephemeralcontainers", namespace})
}

// execTimeout is for a thread dump, of which an agent waits for five seconds.
const execTimeout = 30 * time.Second

// Exec runs a command in a container; what it prints.
func (c *Client) Exec(ctx context.Context, namespace, pod, container string, command ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, execTimeout)
	defer cancel()
	what := access{"create", "", "pods/exec", namespace}
	r := c.rest.Post().AbsPath(podPath(namespace, pod, "exec")).
		Param("container", container).Param("stdout", "true").Param("stderr", "true")
	for _, word := range command {
		r = r.Param("command", word)
	}
	u := r.URL()
	old, err := remotecommand.NewSPDYExecutor(c.config, http.MethodPost, u)
	if err != nil {
		return nil, err
	}
	websocket, err := remotecommand.NewWebSocketExecutor(c.config, http.MethodGet, u.String())
	if err != nil {
		return nil, err
	}
	executor, err := remotecommand.NewFallbackExecutor(websocket, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return nil, err
	}
	stdout, stderr := &buffer{most: mostBody}, &buffer{most: 64 << 10}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
	switch {
	case err != nil && stderr.Len() > 0:
		return nil, fmt.Errorf("%s says: %s", command[0], Printable(errors.New(string(bytes.TrimSpace(stderr.Bytes())))))
	case err != nil:
		return nil, explain(err, what)
	}
	return stdout.Bytes(), nil
}

// buffer takes so much and no more.
type buffer struct {
	bytes.Buffer
	most int
}

func (b *buffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, errors.New("too much was printed")
	}
	return b.Buffer.Write(p)
}
