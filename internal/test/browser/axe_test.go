package browser

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// axe is the source of axe-core, which `make prove PROOF=browser` fetches.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "..", ".cache", "browser", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skipf("no axe-core here (make prove PROOF=browser fetches it with npm): %v", err)
	}
	return string(source)
}

// requireAccessible has axe-core examine the page: contrast, names, roles, order.
func requireAccessible(t *testing.T, b *tab, source string) {
	t.Helper()
	b.run(t, chromedp.Evaluate(source+"; 0", nil))
	found := eval[string](t, b, `axe.run().then((r) => JSON.stringify({ passes: r.passes.length, violations:
		r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target + " " + n.failureSummary).join(" | ")) }))`)
	var result struct {
		Passes     int
		Violations []string
	}
	require.NoError(t, json.Unmarshal([]byte(found), &result))
	require.Greater(t, result.Passes, 15)
	require.Empty(t, result.Violations)
}

// A page with listeners in trouble and others, and an incident's report: on a
// desktop and on a phone, light and dark.
func TestAccessible(t *testing.T) {
	source := axe(t)
	chromium(t)
	for range 5 {
		listen(t, 100)
	}
	listen(t, 3).overload(t)
	listen(t, 9).fill(t, 9) // nearly full
	a := startAgent(t)
	body := a.until(t, "api/v1/incidents", func(body string) bool {
		return strings.Contains(strings.ReplaceAll(body, " ", ""), `"status":"losing"`)
	})
	var list struct{ Incidents []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	for size, width := range map[string]int64{"desktop": 1280, "phone": 390} {
		for _, scheme := range []string{"light", "dark"} {
			for name, path := range map[string]string{"page": "", "report": "incidents/" + list.Incidents[0].ID} {
				t.Run(strings.Join([]string{size, scheme, name}, "/"), func(t *testing.T) {
					b := openTab(t, width, 900)
					b.scheme(t, scheme)
					b.open(t, a.url()+path)
					if path == "" {
						b.live(t)
						b.until(t, `document.querySelector("article .plot") !== null && document.querySelector(".row") !== null`)
					}
					requireAccessible(t, b, source)
					require.LessOrEqual(t, eval[int64](t, b, "document.documentElement.scrollWidth"), width, "nothing is cut or scrolled sideways")
				})
			}
		}
	}
}
