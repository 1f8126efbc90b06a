package structure

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesAreTerms: what is declared is called by the terms of the field, as comments and pages are.
func TestNamesAreTerms(t *testing.T) {
	for _, folder := range []string{internal, filepath.Join(root, "cmd")} {
		found, err := Names(folder, internal+"/test")
		require.NoError(t, err)
		require.Empty(t, found, "names.go has the words instead")
	}
}

// TestNamesAreFound: functions, types, fields and constants, not what is local.
func TestNamesAreFound(t *testing.T) {
	found, err := Names("testdata/names")
	require.NoError(t, err)
	require.Equal(t, []string{
		"testdata/names/names.go:4: formerState: previous, before",
		"testdata/names/names.go:5: lastLook: sample, scan, snapshot, reading; as a verb: read, add, search",
		"testdata/names/names.go:9: mostLooks: samples, scans, snapshots, readings",
		"testdata/names/names.go:12: Vanished: closed",
	}, found)
}
