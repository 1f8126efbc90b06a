// Command shoot takes the pictures of a page that the documentation shows: on a
// desktop and on a phone, in light and in dark.
//
//	go run ./shoot http://127.0.0.1:10889/ ../../../docs/pictures/page-losing
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// quality of the pictures (WebP): text stays sharp, and they stay small.
const quality = 55

// settles is how long the page may take to be drawn.
const settles = 2500 * time.Millisecond

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: shoot URL PREFIX [desktop-light|desktop-dark|phone-light|phone-dark]...")
		os.Exit(2)
	}
	if err := shoot(os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "shoot:", err)
		os.Exit(1)
	}
}

func shoot(url, prefix string, which []string) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, stop = chromedp.NewContext(ctx)
	defer stop()
	if len(which) == 0 {
		which = []string{"desktop-light", "desktop-dark", "phone-light", "phone-dark"}
	}
	for _, name := range which {
		var width int64 = 1180
		if name[:5] == "phone" {
			width = 400
		}
		scheme := &emulation.MediaFeature{Name: "prefers-color-scheme", Value: name[len(name)-4:]}
		if scheme.Value != "dark" {
			scheme.Value = "light"
		}
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 800), emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{scheme}),
			chromedp.Navigate(url), chromedp.Sleep(settles), capture(prefix+"-"+name+".webp")); err != nil {
			return err
		}
	}
	return nil
}

// capture writes the whole page.
func capture(path string) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		b, err := page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithFormat(page.CaptureScreenshotFormatWebp).WithQuality(quality).Do(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o644)
	})
}
