package kube

import (
	"fmt"
	"strings"
)

// Way is how an agent is asked.
type Way string

// The ways, in the order in which they are tried.
const (
	Sidecar   Way = "sidecar"
	Node      Way = "node"
	Ephemeral Way = "ephemeral"
)

// Ways are all of them.
func Ways() []Way { return []Way{Sidecar, Node, Ephemeral} }

// rule is one of a Role's.
type rule struct {
	group     string
	resources []string
	verbs     []string
}

func workloads() []rule {
	return []rule{
		{"apps", []string{"deployments", "statefulsets", "daemonsets", "replicasets"}, []string{"get"}},
		{"batch", []string{"jobs"}, []string{"get"}},
	}
}

// The least that each needs. Where the proxy is not granted, create of pods/portforward
// does the same.
func pods() rule    { return rule{"", []string{"pods"}, []string{"get", "list"}} }
func proxied() rule { return rule{"", []string{"pods/proxy"}, []string{"get"}} }

// Role is what somebody is to be granted, as a document for kubectl apply.
type Role struct {
	Name    string
	Comment string
	rules   []rule
}

// RoleOf is the least that a way needs in the namespace of the pods.
func RoleOf(way Way) Role {
	r := Role{Name: "tcpdiag-" + string(way), rules: append([]rule{pods()}, workloads()...)}
	switch way {
	case Sidecar:
		r.Comment = "kubectl tcpdiag asks the sidecars of this namespace."
		r.rules = append(r.rules, proxied())
	case Node:
		r.Comment = "kubectl tcpdiag finds the pods of this namespace, and asks the agents of their nodes (agents.yaml)."
	case Ephemeral:
		r.Comment = "kubectl tcpdiag adds an ephemeral container to pods of this namespace. Whoever may do that may run any image there,\n# with what the pod has: its network, its service account's name, the target's processes."
		r.rules = append(r.rules, rule{"", []string{"pods/ephemeralcontainers"}, []string{"patch"}}, proxied(), rule{"", []string{"pods/log"}, []string{"get"}})
	}
	return r
}

// RoleOfAgents is what the namespace of the node agents needs, besides.
func RoleOfAgents() Role {
	return Role{Name: "tcpdiag-agents", Comment: "kubectl tcpdiag asks the node agents, in their namespace. They answer for every pod of their node.", rules: []rule{
		{"", []string{"pods"}, []string{"list"}}, proxied(),
	}}
}

// RoleOfThreadDump is what --thread-dump needs, besides. An API server before Kubernetes 1.35
// asks for get where the command's streams are a websocket.
func RoleOfThreadDump() Role {
	return Role{Name: "tcpdiag-thread-dump", Comment: "kubectl tcpdiag --thread-dump runs a command in tcpdiag's own container. Whoever may do that may run any\n# command in any container of the namespace.", rules: []rule{
		{"", []string{"pods/exec"}, []string{"create", "get"}},
	}}
}

// Grant is the command that gives somebody the role that YAML writes.
func (r Role) Grant(namespace string) string {
	if namespace == "*" {
		return fmt.Sprintf("kubectl create clusterrolebinding %[1]s --clusterrole=%[1]s --user=YOU", r.Name)
	}
	return fmt.Sprintf("kubectl -n %[2]s create rolebinding %[1]s --role=%[1]s --user=YOU", r.Name, namespace)
}

// RoleOfForward is what a pod in its node's network needs, besides.
func RoleOfForward() Role {
	return Role{Name: "tcpdiag-host-network", Comment: "kubectl tcpdiag asks the ephemeral container of a pod with hostNetwork over a forwarded port: it serves at the\n# node's loopback alone. Whoever may forward ports may connect to every port of the namespace's pods.", rules: []rule{
		{"", []string{"pods/portforward"}, []string{"create", "get"}},
	}}
}

// YAML is the document, for one namespace, or for all where it is "*"; "" leaves it to -n.
func (r Role) YAML(namespace string) string {
	var b strings.Builder
	kind, where := "Role", ""
	switch namespace {
	case "*":
		kind = "ClusterRole"
	case "":
	default:
		where = "\n  namespace: " + namespace
	}
	fmt.Fprintf(&b, "# %s\napiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata:\n  name: %s%s\nrules:\n", r.Comment, kind, r.Name, where)
	for _, one := range r.rules {
		fmt.Fprintf(&b, "  - apiGroups: [%q]\n    resources: [%s]\n    verbs: [%s]\n", one.group, strings.Join(one.resources, ", "), strings.Join(one.verbs, ", "))
	}
	return b.String()
}
