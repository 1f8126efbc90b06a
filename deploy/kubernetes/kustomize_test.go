package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// built is a folder's kustomization.
func built(t *testing.T, folder string) []byte {
	t.Helper()
	return builtFrom(t, filesys.MakeFsOnDisk(), folder)
}

func builtFrom(t *testing.T, files filesys.FileSystem, folder string) []byte {
	t.Helper()
	text, err := kustomize(files, folder)
	require.NoError(t, err)
	return text
}
