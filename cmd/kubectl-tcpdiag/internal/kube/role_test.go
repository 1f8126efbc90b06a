package kube

import (
	"path/filepath"
	"testing"

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
