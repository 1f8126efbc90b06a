package kube

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tcpdiag/tcpdiag/internal/test/golden"
)

// The files that an administrator applies are what the errors show. UPDATE=1 writes them.
func TestRolesAreThoseOfTheFiles(t *testing.T) {
	roles := []Role{RoleOfAgents(), RoleOfThreadDump(), RoleOfForward()}
	for _, way := range Ways() {
		roles = append(roles, RoleOf(way))
	}
	for _, r := range roles {
		golden.Equal(t, filepath.Join("../../../../deploy/kubernetes/plugin", r.Name[len("tcpdiag-"):]+".yaml"), r.YAML(""))
	}
}

// No role has a wildcard, a secret, or a right to change more than what its comment says.
func TestRolesGrantNoMore(t *testing.T) {
	changes := map[string]string{ // beyond get and list
		"pods/ephemeralcontainers": "patch", "pods/exec": "create", "pods/portforward": "create",
	}
	mayChange := []string{"tcpdiag-ephemeral", "tcpdiag-thread-dump", "tcpdiag-host-network"}
	roles := []Role{RoleOfAgents(), RoleOfThreadDump(), RoleOfForward()}
	for _, way := range Ways() {
		roles = append(roles, RoleOf(way))
	}
	for _, r := range roles {
		for _, one := range r.rules {
			require.Contains(t, []string{"", "apps", "batch"}, one.group, r.Name)
			for _, resource := range one.resources {
				if one.group == "" {
					require.Contains(t, []string{"pods", "pods/proxy", "pods/log", "pods/ephemeralcontainers", "pods/exec", "pods/portforward"}, resource, r.Name)
				} else {
					require.Contains(t, []string{"deployments", "statefulsets", "daemonsets", "replicasets", "jobs"}, resource, r.Name)
				}
				for _, verb := range one.verbs {
					if verb == "get" || verb == "list" {
						continue
					}
					require.Equal(t, changes[resource], verb, "%s: %s", r.Name, resource)
					require.True(t, slices.Contains(mayChange, r.Name), "%s changes %s", r.Name, resource)
				}
			}
		}
	}
}
