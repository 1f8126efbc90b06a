package browser

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// chromium is the browser's program; without one the test is skipped.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("TCPDIAG_BROWSER"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: install Debian's chromium, or name one by TCPDIAG_BROWSER")
	return ""
}

// tab is a page that is open in the browser, and what it asked for.
type tab struct {
	ctx context.Context

	mu      sync.Mutex
	refused []string // those that the policy let nobody ask
	asked   map[network.RequestID]string
	errors  []string // of the console: a refusal by the policy is one
}

// observe counts the shifts of the layout (Layout Instability API).
const observe = `window.shifts = 0; window.moved = [];
new PerformanceObserver((list) => { for (const e of list.getEntries()) { window.shifts += e.value;
  for (const s of e.sources || []) window.moved.push((s.node && (s.node.id || s.node.className || s.node.nodeName)) + ""); } }).observe({ type: "layout-shift", buffered: true });`

func openTab(t *testing.T, width, height int64) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox,
		chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(patience))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &tab{ctx: ctx, asked: make(map[network.RequestID]string)}
	chromedp.ListenTarget(ctx, b.hear)
	b.run(t, network.Enable(), log.Enable(), runtime.Enable(), chromedp.EmulateViewport(width, height), chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(observe).Do(ctx)
		return err
	}))
	return b
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.asked[e.RequestID] = e.Request.URL
	case *network.EventLoadingFailed:
		if e.BlockedReason == network.BlockedReasonCsp {
			b.refused = append(b.refused, b.asked[e.RequestID])
			delete(b.asked, e.RequestID)
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError && e.Entry.Source == log.SourceSecurity {
			b.errors = append(b.errors, e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Error())
	}
}

func (b *tab) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	require.NoError(t, chromedp.Run(b.ctx, actions...))
}

func (b *tab) open(t *testing.T, url string) {
	t.Helper()
	b.run(t, chromedp.Navigate(url), chromedp.WaitReady("body"))
}

// eval is the value of an expression.
func eval[T any](t *testing.T, b *tab, expression string) (out T) {
	t.Helper()
	b.run(t, chromedp.Evaluate(expression, &out, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return out
}

// until waits for an expression to be true.
func (b *tab) until(t *testing.T, expression string) {
	t.Helper()
	require.Eventually(t, func() bool {
		var ok bool
		return chromedp.Run(b.ctx, chromedp.Evaluate(expression, &ok)) == nil && ok
	}, patience, 20*time.Millisecond, expression)
}

// live waits until the page is kept current.
func (b *tab) live(t *testing.T) {
	t.Helper()
	b.until(t, `document.getElementById("live").textContent === "Live"`)
}

// scheme chooses "dark" or "light".
func (b *tab) scheme(t *testing.T, name string) {
	t.Helper()
	b.run(t, emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}))
}

// elsewhere are the requests that did not go to the agent.
func (b *tab) elsewhere(a *agent) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.asked {
		if !strings.HasPrefix(r, a.url()) && !strings.HasPrefix(r, "data:") {
			out = append(out, r)
		}
	}
	return out
}

func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.errors...)
}
