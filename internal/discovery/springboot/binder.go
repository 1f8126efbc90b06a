package springboot

import "strings"

// found is a property as a document has it, placeholders not yet replaced.
type found struct {
	text string
	name string // as the document spells it
	doc  *document
}

// lookup returns the first document's value of the canonical name.
func lookup(docs []*document, name string) (found, bool) {
	key := uniform(name)
	for _, d := range docs {
		if n, ok := d.findAs(name, key); ok {
			return found{d.values[n], n, d}, true
		}
	}
	return found{}, false
}

// lookupList returns a list property: the elements of the first document that
// has any, written with commas or with indexes.
func lookupList(docs []*document, name string, r *resolver) ([]string, error) {
	for _, d := range docs {
		list, ok, err := d.list(name, r)
		if ok || err != nil {
			return list, err
		}
	}
	return nil, nil
}

func (d *document) list(name string, r *resolver) ([]string, bool, error) {
	if n, ok := d.find(name); ok {
		text, err := r.resolve(d.values[n])
		if err == nil && strings.Count(text, ",") >= maxElements {
			return nil, true, errElements
		}
		return splitComma(text), true, err
	}
	var list []string
	for i := range maxElements {
		n, ok := d.find(indexed(name, i))
		if !ok {
			break
		}
		text, err := r.resolve(d.values[n])
		if err != nil {
			return nil, true, err
		}
		list = append(list, text)
	}
	return list, len(list) > 0, nil
}

func splitComma(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		parts[i] = strings.TrimSpace(part)
	}
	return parts
}

// lookupMap returns the lists below a prefix, by key; of one key the first
// document's counts.
func lookupMap(docs []*document, prefix string, r *resolver) (map[string][]string, error) {
	out := map[string][]string{}
	for _, d := range docs {
		for _, key := range d.keysBelow(prefix) {
			if _, taken := out[key]; taken {
				continue
			}
			list, ok, err := d.list(prefix+"."+key, r)
			if err != nil {
				return nil, err
			}
			if ok {
				out[key] = list
			}
		}
	}
	return out, nil
}

// keysBelow are the distinct next elements of the names below prefix.
func (d *document) keysBelow(prefix string) []string {
	var keys []string
	seen := map[string]bool{}
	want := uniform(prefix) + "."
	for _, name := range d.names {
		full := uniform(name)
		rest := name
		if d.env {
			if full = uniformEnv(name); strings.HasPrefix(full, want) {
				rest = full[len(want):]
			}
		} else if strings.HasPrefix(full, want) {
			rest = dropElements(name, strings.Count(want, "."))
		}
		if !strings.HasPrefix(full, want) {
			continue
		}
		key, _, _ := strings.Cut(strings.Trim(rest, "[]"), "[")
		if key = strings.TrimSuffix(key, "]"); key != "" && !seen[key] && len(keys) < maxGroups {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// dropElements drops the first n dotted elements of a name.
func dropElements(name string, n int) string {
	for range n {
		_, name, _ = strings.Cut(name, ".")
	}
	return name
}

// newResolver looks placeholders up in every document, by every spelling if the
// placeholder is written canonically, else as it is written. used hears what was put in
// a placeholder's place; it may be nil.
func newResolver(docs []*document, escapes bool, used func(key, value string)) *resolver {
	return &resolver{escapes: escapes, used: used, lookup: func(name string) (string, bool) {
		if canonical(name) {
			if f, ok := lookup(docs, name); ok {
				return f.text, true
			}
		}
		return rawLookup(docs, name)
	}}
}

// rawLookup returns the first document's value of a name as it is written.
func rawLookup(docs []*document, name string) (string, bool) {
	for _, d := range docs {
		if v, ok := d.raw(name); ok {
			return v, true
		}
	}
	return "", false
}
