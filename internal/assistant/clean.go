package assistant

import (
	"cmp"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/tcpdiag/tcpdiag/internal/api"
	"github.com/tcpdiag/tcpdiag/internal/model"
)

// What a document may hold. Those of an agent that runs well hold far less.
const (
	maxText  = 2000 // bytes of a string
	maxList  = 4000 // elements of a list: an incident has one a second
	maxNames = 64   // keys of a map
)

// clean makes every string of a document, which v points to, safe to show, and
// bounds strings, lists and maps.
func clean(v any) { rewrite(reflect.ValueOf(v), plain) }

// rewrite gives every string below v what f makes of it. What list and map hold
// beyond their bounds goes.
func rewrite(v reflect.Value, f func(string) string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			rewrite(v.Elem(), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() { // time.Time has none
				rewrite(v.Field(i), f)
			}
		}
	case reflect.Slice:
		if v.Len() > maxList {
			v.SetLen(maxList)
		}
		for i := range v.Len() {
			rewrite(v.Index(i), f)
		}
	case reflect.Map:
		rewriteKeys(v, f)
	case reflect.String:
		v.SetString(f(v.String()))
	}
}

// rewriteKeys is for maps from names to numbers.
func rewriteKeys(v reflect.Value, f func(string) string) {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
	for i, key := range keys {
		value, name := v.MapIndex(key), f(key.String())
		if i >= maxNames || name != key.String() {
			v.SetMapIndex(key, reflect.Value{})
		}
		if i < maxNames {
			v.SetMapIndex(reflect.ValueOf(name), value)
		}
	}
}

// plain is a string without controls, and without what begins a block of Markdown
// or a tag: a name cannot end the block that it is quoted in.
func plain(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + "…"
	}
	s = strings.ReplaceAll(model.Printable(s), "`", `\x60`)
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
	rewrite(reflect.ValueOf(l.Process), collect)
	rewrite(reflect.ValueOf(l.Connector), collect)
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	if names = slices.Compact(names); len(names) == 0 {
		return
	}
	pairs := make([]string, 0, 2*len(names))
	for _, name := range names {
		pairs = append(pairs, name, `"`+strings.ReplaceAll(name, `"`, "'")+`"`)
	}
	quoted := strings.NewReplacer(pairs...)
	rewrite(reflect.ValueOf(&l.Verdict), quoted.Replace)
}

// sentence is what is more than one word.
var sentence = regexp.MustCompile(`[\s"\\]`)
