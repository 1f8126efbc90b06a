package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize is `kustomize build` of a folder, with its own restrictions.
func kustomize(t *testing.T, files filesys.FileSystem, folder string) []byte {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, folder)
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	return text
}
