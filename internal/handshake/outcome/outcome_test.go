package outcome

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each outcome is explained where the words are.
func TestOutcomesAreExplained(t *testing.T) {
	page, err := os.ReadFile("../../../docs/model.md")
	require.NoError(t, err)
	for o := range NumOutcomes {
		require.Contains(t, string(page), fmt.Sprintf("\n| `%s` | ", o), "docs/model.md, Clients")
	}
}
