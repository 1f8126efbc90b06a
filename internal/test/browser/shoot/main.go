// Command shoot takes the pictures of a page that the documentation shows: on a
// desktop, on a wide screen and on a phone, in light and in dark.
//
//	go run ./shoot http://127.0.0.1:10889/ ../../../docs/pictures/page-losing
package main

import (
	"context"
	"flag"
	"fmt"
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
	until := flag.String("until", "", "wait for what this CSS selector finds, instead of "+settles.String())
	flag.Parse()
	if flag.NArg() < 2 {
		fmt.Fprintln(os.Stderr, "usage: shoot [-until SELECTOR] URL PREFIX [SCREEN-light|SCREEN-dark]...   SCREEN: desktop, wide or phone")
		os.Exit(2)
	}
	drawn := chromedp.Sleep(settles)
	if *until != "" {
		drawn = chromedp.WaitReady(*until, chromedp.ByQuery)
	}
	if err := shoot(flag.Arg(0), flag.Arg(1), drawn, flag.Args()[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "shoot:", err)
		os.Exit(1)
	}
}

func shoot(url, prefix string, drawn chromedp.Action, which []string) error {
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
			chromedp.Navigate(url), drawn, capture(prefix+"-"+name+".webp")); err != nil {
			return err
		}
	}
	return nil
}

// capture writes the whole page.
func capture(path string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		_, _, _, _, _, size, err := page.GetLayoutMetrics().Do(ctx)
		if err != nil {
			return err
		}
		var q int64 = quality
		if size.Height > long {
			q = longQuality
		}
		b, err := page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(q).Do(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o644)
	})
}
