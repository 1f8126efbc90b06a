package kube

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The files that an administrator applies are what the errors show. UPDATE=1 writes them.
func TestRolesAreThoseOfTheFiles(t *testing.T) {
	roles := []Role{RoleOfAgents(), RoleOfThreadDump(), RoleOfForward()}
	for _, way := range Ways() {
		roles = append(roles, RoleOf(way))
	}
	for _, r := range roles {
		file := filepath.Join("../../../../deploy/kubernetes/plugin", r.Name[len("tcpdiag-"):]+".yaml")
		if os.Getenv("UPDATE") != "" {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			require.NoError(t, os.WriteFile(file, []byte(r.YAML("")), 0o644))
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, r.YAML(""), string(text))
	}
}
