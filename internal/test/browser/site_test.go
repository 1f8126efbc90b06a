package browser

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// site serves the documentation as `make site` builds it, and is its address.
func site(t *testing.T) string {
	t.Helper()
	const base = "/tcpdiag" // of deploy/site/hugo.toml
	built := filepath.Join("..", "..", "..", "dist", "site")
	if _, err := os.Stat(filepath.Join(built, "index.html")); err != nil {
		t.Skipf("the documentation is not built (make site): %v", err)
	}
	server := httptest.NewServer(http.StripPrefix(base, http.FileServer(http.Dir(built))))
	t.Cleanup(server.Close)
	return server.URL + base + "/"
}

// A stranger's questions, as they are typed: the first that is found has the answer, and Enter opens it.
func TestSiteSearch(t *testing.T) {
	chromium(t)
	url := site(t)
	b := openTab(t, 1280, 900)
	for question, page := range map[string]string{
		"which way for my pods":   "deploy/kubernetes/",
		"what does stalled mean":  "docs/model/#clients",
		"is it safe":              "security/",
		"what does it cost":       "docs/results/bench/",
		"how do I add a cause":    "contributing/#how-to-add-",
		"max_connections":         "docs/troubleshooting/#max_connections",
		"no such word as qwertyz": "",
	} {
		t.Run(question, func(t *testing.T) {
			b.open(t, url)
			b.run(t, chromedp.KeyEvent("/"), chromedp.KeyEvent(question))
			b.until(t, `!document.getElementById("found").hidden`)
			if page == "" {
				b.until(t, `document.getElementById("found").textContent === "Nothing has these words."`)
				return
			}
			b.until(t, `document.querySelector("#found a") !== null`)
			b.run(t, chromedp.KeyEvent(kb.Enter))
			b.until(t, `location.pathname !== "/tcpdiag/"`)
			require.Equal(t, url+page, eval[string](t, b, "location.href"))
		})
	}
	for _, asked := range b.asked {
		require.True(t, strings.HasPrefix(asked, url), "%s: nothing comes from elsewhere", asked)
	}
	require.Empty(t, b.complaints())
}

// What a reader has chosen, dark or light, is kept on the next page.
func TestSiteTheme(t *testing.T) {
	chromium(t)
	url := site(t)
	b := openTab(t, 1280, 900)
	b.scheme(t, "light")
	b.open(t, url)
	const colour = "getComputedStyle(document.body).backgroundColor"
	light := eval[string](t, b, colour)
	b.run(t, chromedp.Click("#theme", chromedp.ByQuery))
	dark := eval[string](t, b, colour)
	require.NotEqual(t, light, dark)
	b.open(t, url+"docs/model/")
	require.Equal(t, dark, eval[string](t, b, colour))
}

// The kinds of pages there are, on a desktop and on a phone, light and dark.
func TestSiteAccessible(t *testing.T) {
	source := axe(t)
	chromium(t)
	url := site(t)
	for size, width := range map[string]int64{"desktop": 1280, "phone": 390} {
		for _, scheme := range []string{"light", "dark"} {
			for _, page := range []string{"", "docs/", "docs/model/", "deploy/", "deploy/kubernetes/", "contributing/", "docs/results/"} {
				t.Run(strings.Join([]string{size, scheme, page}, "/"), func(t *testing.T) {
					b := openTab(t, width, 900)
					b.scheme(t, scheme)
					b.open(t, url+page)
					requireAccessible(t, b, source)
					require.LessOrEqual(t, eval[int64](t, b, "document.documentElement.scrollWidth"), width, "nothing is scrolled sideways")
				})
			}
		}
	}
}
