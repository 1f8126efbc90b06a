package structure

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the project's folder.
const root = "../../.."

// TestPlainWords: comments and pages are in the words of today's technical English.
func TestPlainWords(t *testing.T) {
	require.FileExists(t, filepath.Join(root, "go.mod"))
	found, err := Words(root, byHand)
	require.NoError(t, err)
	require.Empty(t, found, "words.go has plain ones instead")
}

// byHand says which pages are not written by a program: those quote what it says.
func byHand(path string) bool {
	path = filepath.ToSlash(path)
	if path == root+"/docs/metrics.md" || strings.Contains(path, "/docs/results/") {
		return false
	}
	return !strings.Contains(path, "/internal/test/")
}

// TestWordsAreFound: in comments and pages, with their lines, and some in strings.
func TestWordsAreFound(t *testing.T) {
	found, err := Words("testdata/words", func(string) bool { return true })
	require.NoError(t, err)
	require.Equal(t, []string{
		"testdata/words/page.md:3: seldom",
		"testdata/words/words.go:1: tells of",
		"testdata/words/words.go:4: So many",
		"testdata/words/words.go:7: told apart",
		"testdata/words/words.go:5: as far as",
	}, found)

	found, err = Words("testdata/words", func(string) bool { return false })
	require.NoError(t, err)
	require.Len(t, found, 4, "a page that is not asked for is not read")
}

// TestNamesAreTerms: what is declared is called by the terms of the field, as comments and pages are.
func TestNamesAreTerms(t *testing.T) {
	for _, folder := range []string{internal, filepath.Join(root, "cmd")} {
		found, err := Names(folder, internal+"/test")
		require.NoError(t, err)
		require.Empty(t, found, "names.go has the words instead")
	}
}

// TestNamesAreFound: functions, types, fields and constants, and what is local.
func TestNamesAreFound(t *testing.T) {
	found, err := Names("testdata/names")
	require.NoError(t, err)
	require.Equal(t, []string{
		"testdata/names/names.go:4: formerState: previous, before",
		"testdata/names/names.go:5: lastLook: sample, scan, snapshot, reading; as a verb: read, add, search",
		"testdata/names/names.go:9: mostLooks: samples, scans, snapshots, readings",
		"testdata/names/names.go:12: Vanished: closed",
		"testdata/names/names.go:13: look: sample, scan, snapshot, reading; as a verb: read, add, search",
	}, found)
}
