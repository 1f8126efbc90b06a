package browser

import (
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// A listener begins to lose clients under an open page: title, band and advice
// change, the elements stay, and nothing else moves.
func TestUpdatesInPlace(t *testing.T) {
	chromium(t)
	s := listen(t, 3)
	a := startAgent(t)
	b := openTab(t, 1280, 900)
	b.open(t, a.url())
	b.live(t)
	require.Contains(t, eval[string](t, b, "document.title"), "ok")
	b.run(t, chromedp.Evaluate(`document.querySelector("article").mark = 7; window.shifts = 0`, nil))
	s.overload(t)
	b.until(t, `document.title.startsWith("losing ")`)
	b.until(t, `document.querySelector("article").className === "losing"`)
	require.Equal(t, 7, eval[int](t, b, `document.querySelector("article").mark`), "in place")
	require.Contains(t, eval[string](t, b, `document.querySelector("article .band").textContent`), s.Addr().String())
	b.until(t, `document.querySelectorAll("#incidents a").length === 1`)
	require.Empty(t, b.elsewhere(a), "nothing is loaded from elsewhere")
	require.Empty(t, b.complaints())
}

// Numbers and charts change, and nothing moves.
func TestNothingMoves(t *testing.T) {
	chromium(t)
	s := listen(t, 3)
	s.overload(t)
	a := startAgent(t)
	a.until(t, "api/v1/incidents", func(body string) bool { return len(body) > 200 })
	b := openTab(t, 1280, 900)
	b.open(t, a.url())
	b.live(t)
	b.until(t, `document.querySelector("article .plot") !== null`)
	b.run(t, chromedp.Evaluate(`window.changes = 0;
		new MutationObserver(() => window.changes++).observe(document.getElementById("main"), { subtree: true, childList: true })`, nil))
	b.until(t, `window.changes >= 12`) // every text has been as long as it gets
	b.run(t, chromedp.Evaluate(`window.shifts = 0; window.moved = []; window.changes = 0`, nil))
	b.until(t, `window.changes >= 8`)
	require.Less(t, eval[float64](t, b, "window.shifts"), .01, eval[[]string](t, b, "window.moved"))
}

func TestConnectsAgainToAnotherAgent(t *testing.T) {
	chromium(t)
	s := listen(t, 3)
	a := startAgent(t)
	b := openTab(t, 1280, 900)
	b.open(t, a.url())
	b.live(t)
	b.run(t, chromedp.Evaluate(`window.same = true`, nil))
	a.stop()
	b.until(t, `document.getElementById("live").textContent.startsWith("Not live")`)
	require.Contains(t, eval[string](t, b, `document.querySelector("article .band").textContent`), s.Addr().String(), "what was seen last stays")
	s.overload(t)
	a.start(t)
	b.live(t)
	b.until(t, `document.title.startsWith("losing ")`)
	require.True(t, eval[bool](t, b, "window.same"), "it was not loaded again")
}

// Every link can be reached and is seen to be; what has the focus keeps it while
// the page changes.
func TestKeyboard(t *testing.T) {
	chromium(t)
	s := listen(t, 3)
	s.overload(t)
	a := startAgent(t)
	a.until(t, "api/v1/incidents", func(body string) bool { return len(body) > 200 })
	b := openTab(t, 1280, 900)
	b.open(t, a.url())
	b.live(t)
	const focused = `document.activeElement.getAttribute("href")`
	b.run(t, chromedp.KeyEvent(kb.Tab))
	first := eval[string](t, b, focused)
	require.Contains(t, first, "?port=", "the worst listener's own page comes first")
	require.Equal(t, "3px", eval[string](t, b, `getComputedStyle(document.activeElement).outlineWidth`))
	b.run(t, chromedp.Evaluate(`window.changes = 0;
		new MutationObserver(() => window.changes++).observe(document.getElementById("main"), { subtree: true, childList: true })`, nil))
	b.until(t, `window.changes >= 3`)
	require.Equal(t, first, eval[string](t, b, focused), "the focus stays")
	links := eval[int](t, b, `document.querySelectorAll("a[href]").length`)
	seen := map[string]bool{first: true}
	for range links + 2 {
		b.run(t, chromedp.KeyEvent(kb.Tab))
		seen[eval[string](t, b, `document.activeElement.getAttribute("href") || ""`)] = true
	}
	for _, link := range eval[[]string](t, b, `[...document.querySelectorAll("a[href]")].map((a) => a.getAttribute("href"))`) {
		require.True(t, seen[link], link)
	}
	b.run(t, chromedp.Evaluate(`document.querySelector("article a").focus()`, nil), chromedp.KeyEvent(kb.Enter))
	b.until(t, `location.search.startsWith("?port=") && document.querySelectorAll("article").length === 1`)
}

// With scripts switched off the page is whole and loads itself again.
func TestWithoutScript(t *testing.T) {
	chromium(t)
	s := listen(t, 3)
	a := startAgent(t)
	b := openTab(t, 1280, 900)
	b.run(t, emulation.SetScriptExecutionDisabled(true))
	b.open(t, a.url())
	require.Contains(t, eval[string](t, b, "document.title"), "ok")
	require.Equal(t, 1, eval[int](t, b, `document.querySelectorAll("article svg").length > 2 ? 1 : 0`))
	s.overload(t)
	b.until(t, `document.title.startsWith("losing ")`)
	require.Empty(t, b.elsewhere(a))
}

// What a stranger might get into the page does not run: not within it, and not
// from elsewhere.
func TestPolicyHoldsScriptsOff(t *testing.T) {
	chromium(t)
	listen(t, 3)
	a := startAgent(t)
	b := openTab(t, 1280, 900)
	b.open(t, a.url())
	b.live(t)
	b.run(t, chromedp.Evaluate(`(() => {
		window.ran = [];
		const inline = document.createElement("script"); inline.textContent = "window.ran.push('inline')"; document.body.append(inline);
		const other = document.createElement("script"); other.src = "http://127.0.0.1:9/x.js"; document.body.append(other);
		const image = document.createElement("img"); image.src = "http://127.0.0.1:9/x.png"; document.body.append(image);
		const handler = document.createElement("div"); handler.innerHTML = "<a id=h onclick=\"window.ran.push('handler')\">x</a>"; document.body.append(handler);
		document.getElementById("h").click();
	})()`, nil))
	require.Eventually(t, func() bool { return len(b.complaints()) >= 4 && len(b.elsewhere(a)) == 0 }, patience, 20*time.Millisecond)
	require.Empty(t, eval[[]string](t, b, "window.ran"))
	b.mu.Lock()
	defer b.mu.Unlock()
	require.ElementsMatch(t, []string{"http://127.0.0.1:9/x.js", "http://127.0.0.1:9/x.png"}, b.refused)
}
