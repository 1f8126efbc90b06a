package browser

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const (
	paperWidth  = 720 // A4 without its margins, in pixels
	paperHeight = 1040
	emptyPage   = 200 // bytes that draw nothing
)

// The page and a report on paper: the answer and its date are on the first page, and none is empty.
func TestPrints(t *testing.T) {
	chromium(t)
	s := listen(t, 3)
	a := startAgent(t)
	file := filepath.Join(t.TempDir(), "report.html")
	for _, status := range []string{"ok", "losing"} {
		if status == "losing" {
			s.overload(t)
		}
		b := openTab(t, paperWidth, paperHeight)
		b.open(t, a.url())
		b.until(t, `document.querySelector("article").className === "`+status+`"`)
		b.printed(t)
		_ = exec.Command(program, "snapshot", "--pid", strconv.Itoa(os.Getpid()), "--report", file).Run() // the exit code is the status
		b.open(t, "file://"+file)
		require.Contains(t, eval[string](t, b, `document.querySelector(".when").innerText`), "As of 20")
		b.printed(t)
	}
}

// printed holds what is on the paper.
func (b *tab) printed(t *testing.T) {
	t.Helper()
	b.run(t, emulation.SetEmulatedMedia().WithMedia("print"))
	require.Less(t, eval[float64](t, b, `document.querySelector(".answer").getBoundingClientRect().bottom + scrollY`), float64(paperHeight))
	require.Contains(t, eval[string](t, b, `document.querySelector(".when").innerText`), "20", "the date")
	var pdf []byte
	b.run(t, chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPrintBackground(true).Do(ctx)
		return err
	}), emulation.SetEmulatedMedia())
	pages := regexp.MustCompile(`(?s)/Type /Page\b[^s].*?/Contents (\d+) 0 R`).FindAllSubmatch(pdf, -1)
	require.NotEmpty(t, pages)
	for i, p := range pages {
		length := regexp.MustCompile(`(?s)\n` + string(p[1]) + ` 0 obj\s*<<.*?/Length (\d+)`).FindSubmatch(pdf)
		require.NotNil(t, length)
		n, err := strconv.Atoi(string(length[1]))
		require.NoError(t, err)
		require.Greater(t, n, emptyPage, "page %d of %d is empty", i+1, len(pages))
	}
}
