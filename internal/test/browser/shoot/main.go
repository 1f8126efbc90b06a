// Command shoot takes the pictures of a page that the documentation shows: on a
// desktop, on a wide screen and on a phone, in light and in dark.
//
//	go run ./shoot http://127.0.0.1:10889/ ../../../docs/pictures/page-losing
//	go run ./shoot -site ../../../dist/site -ask "is it safe" / ../../../docs/pictures/site-search
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// quality of the pictures (WebP): text stays sharp, and they stay small, unless they are long.
const (
	quality     = 55
	longQuality = 22
	long        = 3000 // pixels
)

// settles is how long the page may take to be drawn.
const settles = 2500 * time.Millisecond

// widths are those of the screens, in pixels.
func widths() map[string]int64 { return map[string]int64{"desktop": 1180, "wide": 1600, "phone": 390} }

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "shoot:", err)
		os.Exit(1)
	}
}

func run() error {
	until := flag.String("until", "", "wait for what this CSS selector finds, instead of "+settles.String())
	site := flag.String("site", "", "folder of the documentation as it was built, of which URL is a path; the first screen of it is taken")
	ask := flag.String("ask", "", "what is typed into the documentation's search first")
	flag.Parse()
	if flag.NArg() < 2 {
		return errors.New("usage: shoot [-until SELECTOR] [-site FOLDER [-ask TEXT]] URL PREFIX [SCREEN-light|SCREEN-dark]...   SCREEN: desktop, wide or phone")
	}
	drawn := chromedp.Sleep(settles)
	if *until != "" {
		drawn = chromedp.WaitReady(*until, chromedp.ByQuery)
	}
	url, whole := flag.Arg(0), true
	if *site != "" {
		const base = "/tcpdiag" // of deploy/site/hugo.toml
		server := httptest.NewServer(http.StripPrefix(base, http.FileServer(http.Dir(*site))))
		defer server.Close()
		url, whole = server.URL+base+url, false
	}
	if *ask != "" {
		drawn = chromedp.Tasks{chromedp.SendKeys(`input[type="search"]`, *ask, chromedp.ByQuery), chromedp.WaitVisible("#found", chromedp.ByQuery)}
	}
	return shoot(url, flag.Arg(1), drawn, whole, flag.Args()[2:])
}

func shoot(url, prefix string, drawn chromedp.Action, whole bool, which []string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	if len(which) == 0 {
		which = []string{"desktop-light", "desktop-dark", "phone-light", "phone-dark"}
	}
	for _, name := range which {
		screen, colours, _ := strings.Cut(name, "-")
		width, known := widths()[screen]
		if !known || colours != "light" && colours != "dark" {
			return fmt.Errorf("no screen is called %q", name)
		}
		scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: colours}
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 800), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
			chromedp.Navigate(url), drawn, capture(prefix+"-"+name+".webp", whole)); err != nil {
			return err
		}
	}
	return nil
}

// capture writes the whole page, or its first screen.
func capture(path string, whole bool) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		_, _, _, _, _, size, err := page.GetLayoutMetrics().Do(ctx)
		if err != nil {
			return err
		}
		var q int64 = quality
		if whole && size.Height > long {
			q = longQuality
		}
		b, err := page.CaptureScreenshot().WithCaptureBeyondViewport(whole).WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(q).Do(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o644)
	})
}
