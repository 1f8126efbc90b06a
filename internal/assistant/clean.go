package assistant

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/foreign"
)

// clean makes every string of a document, which v points to, safe to show, and
// bounds strings, lists and maps.
func clean(v any) { foreign.Rewrite(v, plain) }

// plain is a string without controls, and without what begins a block of Markdown
// or a tag: a name cannot end the block that it is quoted in.
func plain(s string) string {
	s = strings.ReplaceAll(foreign.Printable(s), "`", `\x60`)
	return tag.ReplaceAllString(s, `\x3c$1`)
}

var tag = regexp.MustCompile(`<([A-Za-z/!?|])`)

// quoteNames puts what the listener's process and its configuration chose, and is
// not one plain word, into quotation marks where the sentences of the verdict
// repeat it.
func quoteNames(l *api.Listener) {
	var names []string
	collect := func(s string) string {
		if len(s) >= 3 && sentence.MatchString(s) {
			names = append(names, s)
		}
		return s
	}
	foreign.Rewrite(l.Process, collect)
	foreign.Rewrite(l.Connector, collect)
	foreign.Rewrite(l.Elsewhere, collect)
	foreign.Rewrite(l.Draining, collect)
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	if names = slices.Compact(names); len(names) == 0 {
		return
	}
	pairs := make([]string, 0, 2*len(names))
	for _, name := range names {
		pairs = append(pairs, name, `"`+strings.ReplaceAll(name, `"`, "'")+`"`)
	}
	quoted := strings.NewReplacer(pairs...)
	foreign.Rewrite(&l.Verdict, quoted.Replace)
}

// sentence is what is more than one word.
var sentence = regexp.MustCompile(`[\s"\\]`)
