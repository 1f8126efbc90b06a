package configdata

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// minRedacted is the shortest value that is worth hiding: replacing shorter
// ones would garble the text and hide nothing.
const minRedacted = 4

// redactions are the values that were put in the place of placeholders in names
// of files, locations and profiles: file:/etc/${TOKEN}.yml is shown as it was
// written.
type redactions map[string]string

func (r redactions) used(key, value string) {
	if len(value) >= minRedacted {
		r[value] = "${" + key + "}"
	}
}

// apply replaces the values, the longest first.
func (r redactions) apply(text string) string {
	values := slices.SortedFunc(maps.Keys(r), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	for _, value := range values {
		text = strings.ReplaceAll(text, value, r[value])
	}
	return text
}
