package site

import (
	"encoding/json"
	"flag"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

const (
	checkout   = "../../.."
	base       = "/tcpdiag/" // of deploy/site/hugo.toml
	repository = "https://github.com/tcpdiag/tcpdiag/"
)

var built = flag.String("built", "", "folder of the site that was built")

// page is what a reader can see and click on.
type page struct {
	text  string
	ids   map[string]bool
	links []link
	uses  []string // pictures, scripts, styles
}

type link struct{ text, href string }

// site is all pages by their addresses: "/tcpdiag/docs/model/".
func site(t *testing.T) map[string]*page {
	t.Helper()
	if *built == "" {
		t.Skip("make site builds it")
	}
	pages := make(map[string]*page)
	require.NoError(t, filepath.WalkDir(*built, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Base(name) != "index.html" {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		tree, err := html.Parse(file)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(*built, filepath.Dir(name))
		pages[path.Join(base, filepath.ToSlash(relative))+"/"] = read(tree)
		return err
	}))
	require.Greater(t, len(pages), 40)
	return pages
}

func read(tree *html.Node) *page {
	p := &page{ids: map[string]bool{"": true}}
	var text strings.Builder
	for n := range tree.Descendants() {
		if n.Type == html.TextNode {
			text.WriteString(n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				p.ids[a.Val] = true
			case a.Key == "href" && n.Data == "a":
				p.links = append(p.links, link{strings.TrimSpace(textOf(n)), a.Val})
			case a.Key == "href", a.Key == "src":
				p.uses = append(p.uses, a.Val)
			}
		}
	}
	p.text = text.String()
	return p
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// resolve is the page that a link of a page leads to, and the heading; "" is no page of the site.
func resolve(t *testing.T, from, href string) (address, fragment string) {
	t.Helper()
	at, err := url.Parse("https://site" + from)
	require.NoError(t, err)
	to, err := at.Parse(href)
	require.NoError(t, err, "%s: %s", from, href)
	if to.Host != "site" {
		return "", ""
	}
	return to.Path, to.Fragment
}

// Each link leads to a page and a heading that there is, or to a file of the repository.
func TestSiteLinks(t *testing.T) {
	pages := site(t)
	checked := 0
	for from, p := range pages {
		for _, l := range p.links {
			checked++
			if file, ok := strings.CutPrefix(l.href, repository); ok {
				requireFile(t, from, file)
				continue
			}
			address, fragment := resolve(t, from, l.href)
			if address == "" {
				require.True(t, strings.HasPrefix(l.href, "https://") || strings.HasPrefix(l.href, "http://") || strings.HasPrefix(l.href, "mailto:"), "%s: %s", from, l.href)
				continue
			}
			to := pages[address]
			if to == nil && path.Ext(address) != "" {
				require.FileExists(t, filepath.Join(*built, strings.TrimPrefix(address, base)), "%s: %s", from, l.href)
				continue
			}
			require.NotNil(t, to, "%s links to %s", from, l.href)
			require.True(t, to.ids[fragment], "%s links to %s: no such heading", from, l.href)
		}
		// Nothing comes from anywhere else: no network but the site's own is needed.
		for _, used := range p.uses {
			address, _ := resolve(t, from, used)
			require.NotEmpty(t, address, "%s: %s", from, used)
			require.FileExists(t, filepath.Join(*built, strings.TrimPrefix(address, base)), "%s: %s", from, used)
		}
	}
	require.Greater(t, checked, 1000)
}

func requireFile(t *testing.T, from, file string) {
	t.Helper()
	file, _, _ = strings.Cut(file, "#")
	for _, kind := range []string{"blob/main/", "tree/main/"} {
		if inside, ok := strings.CutPrefix(file, kind); ok {
			_, err := os.Stat(filepath.Join(checkout, inside))
			require.NoError(t, err, "%s: %s", from, file)
		}
	}
}

// Each page of docs is there, and is found by clicking.
func TestSiteIsWhole(t *testing.T) {
	pages := site(t)
	files, err := filepath.Glob(checkout + "/docs/*.md")
	require.NoError(t, err)
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".md"); name != "README" {
			require.Contains(t, pages, base+"docs/"+name+"/")
		}
	}
	seen, next := map[string]bool{base: true}, []string{base}
	for len(next) > 0 {
		from := next[0]
		next = next[1:]
		for _, l := range pages[from].links {
			to, _ := resolve(t, from, l.href)
			if pages[to] != nil && !seen[to] {
				seen[to], next = true, append(next, to)
			}
		}
	}
	for address := range pages {
		require.True(t, seen[address], "no link leads to %s", address)
	}
}

// Five questions of a stranger, each answered in three clicks at most from the first page.
func TestSiteAnswers(t *testing.T) {
	pages := site(t)
	for question, tt := range map[string]struct {
		clicks []string // texts of links
		answer string
	}{
		"which way for my pods":  {[]string{"Which way for my pods"}, "run an application, and may change its Deployment"},
		"what does stalled mean": {[]string{"What its words mean"}, "believed that it was connected"},
		"is it safe":             {[]string{"Is it safe"}, "reads, and changes nothing"},
		"what does it cost":      {[]string{"What it costs"}, "agent’s resident memory"},
		"how do I add a cause":   {[]string{"Add a cause, a case, a page"}, "its name in internal/model/verdict.go, its file"},
	} {
		require.LessOrEqual(t, len(tt.clicks), 3)
		at := base
		for _, text := range tt.clicks {
			i := slices.IndexFunc(pages[at].links, func(l link) bool { return l.text == text })
			require.GreaterOrEqual(t, i, 0, "%s: %s has no link %q", question, at, text)
			at, _ = resolve(t, at, pages[at].links[i].href)
			require.NotNil(t, pages[at], question)
		}
		require.Contains(t, pages[at].text, tt.answer, "%s: %s", question, at)
	}
}

// The search has each section, with an address that there is.
func TestSiteSearch(t *testing.T) {
	pages := site(t)
	text, err := os.ReadFile(filepath.Join(*built, "index.json"))
	require.NoError(t, err)
	require.Less(t, len(text), 512<<10, "it is read by phones")
	var entries []struct{ T, H, U, X string }
	require.NoError(t, json.Unmarshal(text, &entries))
	require.Greater(t, len(entries), 200)
	for _, e := range entries {
		require.NotEmpty(t, e.T)
		address, fragment := resolve(t, base, e.U)
		require.NotNil(t, pages[address], e.U)
		require.True(t, pages[address].ids[fragment], e.U)
	}
	require.True(t, slices.ContainsFunc(entries, func(e struct{ T, H, U, X string }) bool { return e.H == "max_connections" }))
}
