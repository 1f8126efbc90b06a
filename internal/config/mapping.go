package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// field is a key that a mapping may have.
type field struct {
	key  string
	read func(*yaml.Node)
}

// mapping reads the keys of a mapping. A key without any value under it
// ("targets:", its entries commented out) is a mapping without keys.
func (p *parser) mapping(n *yaml.Node, what string, fields []field) {
	p.pairs(n, what, func(key, value *yaml.Node) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == key.Value })
		if i < 0 {
			p.unknown(key, fields)
			return
		}
		fields[i].read(resolve(value))
	})
}

// pairs hands out the keys and values of a mapping, each key once.
func (p *parser) pairs(n *yaml.Node, what string, each func(key, value *yaml.Node)) {
	n = resolve(n)
	if null(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		p.problemf(n.Line, `%s: give keys and values, each as "key: value"%s`, what, got(n))
		return
	}
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		first, twice := lines[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.problemf(key.Line, "%s: a key must be a word", what)
		case key.ShortTag() == "!!merge":
			p.problemf(key.Line, "merge keys (<<) are not understood: write the keys out")
		case twice:
			p.problemf(key.Line, "key %q is given twice (first on line %d)", key.Value, first)
		default:
			lines[key.Value] = key.Line
			each(key, n.Content[i+1])
		}
	}
}

// unknown names the nearest key, or the place where the key belongs, or all
// that would do.
func (p *parser) unknown(key *yaml.Node, fields []field) {
	known := make([]string, len(fields))
	for i, f := range fields {
		known[i] = f.key
	}
	hint := "known here: " + strings.Join(known, ", ")
	if near := nearest(key.Value, known); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	} else if parent := belongs(key.Value, known); parent != "" {
		hint = fmt.Sprintf("it belongs under %q", parent)
	}
	p.problemf(key.Line, "unknown key %q: %s", short(key.Value), hint)
}

// belongs finds the key of this mapping under which a key would be known.
func belongs(key string, known []string) string {
	inside := []struct {
		parent string
		keys   []string
	}{
		{"limits", []string{"max_connections", "accept_count", "max_threads"}},
		{"targets", []string{"port", "ports", "pid"}},
	}
	for _, in := range inside {
		if slices.Contains(known, in.parent) && nearest(key, in.keys) != "" {
			return in.parent
		}
	}
	return ""
}

// resolve follows an alias (*name) to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// null is a value that was left out, or ~.
func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// got says what a node is, for errors.
func got(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return ", not keys and values"
	case yaml.SequenceNode:
		return ", not a list"
	}
	return fmt.Sprintf(", not %q", short(n.Value))
}

// short keeps a value that an error quotes to a readable length.
func short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// nearest is the word that was probably meant, "" when none is near. Spellings
// of other places ("maxConnections", "scan-interval") are the same word.
func nearest(word string, known []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if d := distance(plain(word), plain(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// plain is a word without case, hyphens and underscores.
func plain(word string) string {
	return strings.NewReplacer("-", "", "_", "", ".", "").Replace(strings.ToLower(word))
}

// distance is how many letters must be put in, taken out, replaced, or swapped
// with their neighbour (Damerau and Levenshtein's).
func distance(a, b string) int {
	if len(a) > 2*maxLabelName {
		return len(a)
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
