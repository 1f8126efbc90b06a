package structure

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// A tag of another's action can be moved after it was reviewed, a commit cannot.
func TestActionsArePinnedByCommit(t *testing.T) {
	files, err := filepath.Glob("../../../.github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: ([^\s.][^\s]*)(.*)$`)
	pinned := regexp.MustCompile(`@[0-9a-f]{40}$`)
	for _, name := range append(files, "../../../deploy/pipelines/action.yml") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, m := range uses.FindAllStringSubmatch(string(text), -1) {
			require.Regexp(t, pinned, m[1], name)
			require.Regexp(t, `^ # v\d+\.\d+\.\d+$`, m[2], "%s: %s without the version that the commit is", name, m[1])
		}
	}
}
