// Command picture draws what a terminal showed as an SVG: one screen, or several one
// after the other as a moving picture that begins again at its end. A screen is a file of
// text with the colours that tcpdiag writes (ANSI "select graphic rendition").
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	out := flag.String("o", "", "file to write (default: standard output)")
	columns := flag.Int("columns", 80, "width of the screen")
	rows := flag.Int("rows", 0, "height of the screen (default: that of the longest)")
	every := flag.Duration("every", time.Second, "how long each screen stays")
	title := flag.String("title", "", "what the picture shows, for those who do not see it")
	white := flag.Bool("light", false, "a terminal with a white ground")
	flag.Parse()
	colours := dark()
	if *white {
		colours = light()
	}
	if err := run(flag.Args(), *out, picture{columns: *columns, rows: *rows, every: *every, title: *title, theme: colours}); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

func run(files []string, out string, p picture) error {
	if len(files) == 0 {
		return fmt.Errorf("give the files of the screens")
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		p.add(parse(string(text)))
	}
	if out == "" {
		_, err := os.Stdout.Write(p.svg())
		return err
	}
	return os.WriteFile(out, p.svg(), 0o644)
}
