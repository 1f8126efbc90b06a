package kube

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is a kind of object that has pods.
type Kind struct {
	Names []string // as kubectl accepts them; the last is the resource
	Group string
}

func (k Kind) resource() string { return k.Names[len(k.Names)-1] }

// Kinds are all but pods.
func Kinds() []Kind {
	return []Kind{
		{[]string{"deploy", "deployment", "deployments"}, "apps"},
		{[]string{"sts", "statefulset", "statefulsets"}, "apps"},
		{[]string{"ds", "daemonset", "daemonsets"}, "apps"},
		{[]string{"rs", "replicaset", "replicasets"}, "apps"},
		{[]string{"job", "jobs"}, "batch"},
	}
}

// KindNamed is the kind that a user writes so, perhaps with the group, as kubectl get -o name does.
func KindNamed(name string) (Kind, bool) {
	name, group, qualified := strings.Cut(name, ".")
	for _, k := range Kinds() {
		if slices.Contains(k.Names, name) && (!qualified || group == k.Group) {
			return k, true
		}
	}
	return Kind{}, false
}

func (k Kind) access(verb, namespace string) access {
	return access{verb, k.Group, k.resource(), namespace}
}

func (k Kind) path(namespace, name string) string {
	return path.Join("/apis", k.Group, "v1/namespaces", url.PathEscape(namespace), k.resource(), url.PathEscape(name))
}

// Workload is by which labels an object knows its pods, and how many it is to have.
type Workload struct {
	Selector string
	Replicas *int32 // nil where its kind has no such number
}

// Workload reads one.
func (c *Client) Workload(ctx context.Context, kind Kind, namespace, name string) (*Workload, error) {
	var object struct {
		Spec struct {
			Selector *meta.LabelSelector `json:"selector"`
			Replicas *int32              `json:"replicas"`
		} `json:"spec"`
	}
	if err := c.get(ctx, kind.access("get", namespace), &object, kind.path(namespace, name), nil); err != nil {
		return nil, err
	}
	selector, err := meta.LabelSelectorAsSelector(object.Spec.Selector)
	if err != nil {
		return nil, err
	}
	if selector.Empty() { // it would select every pod of the namespace
		return nil, fmt.Errorf("%s/%s selects no pods", kind.Names[0], name)
	}
	return &Workload{selector.String(), object.Spec.Replicas}, nil
}

// Workloads are the names of one kind, for completion.
func (c *Client) Workloads(ctx context.Context, kind Kind, namespace string) ([]string, error) {
	return c.names(ctx, kind.access("list", namespace), path.Dir(kind.path(namespace, "any")))
}

// Namespaces are their names, for completion.
func (c *Client) Namespaces(ctx context.Context) ([]string, error) {
	return c.names(ctx, access{"list", "", "namespaces", ""}, "/api/v1/namespaces")
}

func (c *Client) names(ctx context.Context, what access, address string) (names []string, err error) {
	var list meta.PartialObjectMetadataList
	if err := c.get(ctx, what, &list, address, url.Values{"limit": {page}}); err != nil {
		return nil, err
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, nil
}
